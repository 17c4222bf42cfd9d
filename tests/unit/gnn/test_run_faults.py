"""Runs of networks whose files do not fit together, or the disk."""

import dataclasses
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from graphsys import gnn
from graphsys.core.errors import CorruptStoreError, StorageFullError
from graphsys.gnn.config import GnnConfig
from tests.unit.gnn.conftest import Store

CONFIG = GnnConfig(epochs=2, dim=8, layers=2, fanouts=(4, 4), batch_size=8, keep="last")
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def run(groups: Store, tmp_path: Path) -> Path:
    """Return a run of two epochs whose training may go on."""
    path = tmp_path / "run"
    gnn.train(groups(1), CONFIG, path)
    return path


def edit(run: Path, stem: str, rename: dict[str, str]) -> None:
    """Give tensors of a file other names, and the file its size in run.json."""
    file = next(run.glob(f"{stem}.*.safetensors"))
    tensors = {rename.get(name, name): value for name, value in load_file(file).items()}
    size = file.stat().st_size
    save_file(tensors, file)
    text = (run / "run.json").read_text().replace(str(size), str(file.stat().st_size))
    (run / "run.json").write_text(text)


def test_a_changed_name_of_a_weight_is_named(run: Path) -> None:
    names = list(load_file(next(run.glob("weights.*.safetensors"))))
    other = names[0][:-1] + ("x" if names[0][-1] != "x" else "y")
    edit(run, "weights", {names[0]: other})
    with pytest.raises(CorruptStoreError, match=r"do not fit its config|checksum"):
        gnn.predict(run)


def test_a_config_that_does_not_fit_the_weights_is_named(run: Path) -> None:
    config = run / "config.toml"
    config.write_text(config.read_text().replace("dim = 8", "dim = 16"))
    with pytest.raises(CorruptStoreError, match=r"do not fit its config|checksum"):
        gnn.predict(run)


def test_weights_that_do_not_fit_are_not_taken_over(groups: Store) -> None:
    from graphsys.gnn.training.api import build_context

    network = build_context(groups(1), CONFIG).network
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    name = next(iter(weights))
    other = {**weights, name: torch.zeros(3, 5)}
    with pytest.raises(CorruptStoreError, match=r"is \(3, 5\) there, expected"):
        network.restore(other, Path("run"))
    with pytest.raises(CorruptStoreError, match=r"'more' is .* there, expected none"):
        network.restore({**weights, "more": torch.zeros(1)}, Path("run"))
    with pytest.raises(CorruptStoreError, match="is missing there, expected"):
        network.restore({k: v for k, v in weights.items() if k != name}, Path("run"))


def test_states_of_another_optimizer_are_named(groups: Store) -> None:
    from graphsys.gnn.process_group import ProcessGroup
    from graphsys.gnn.training.api import build_context
    from graphsys.gnn.training.optimizer import load_optimizer, make_optimizer

    network = build_context(groups(1), CONFIG).network
    for key, value in (
        ("99.exp_avg", torch.zeros(1)),
        ("0.exp_avg", torch.zeros(1, 2, 3)),
        ("x.step", torch.tensor(1.0)),
    ):
        made = make_optimizer(CONFIG, network, ProcessGroup())
        with pytest.raises(CorruptStoreError, match=f"the optimizer's state '{key}'"):
            load_optimizer(made, {key: value}, Path("run"))


def test_a_disk_that_is_too_small_is_said_before_anything_is_written(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, out = groups(1), tmp_path / "small"
    config = dataclasses.replace(CONFIG, dim=256)
    gnn.train(graph, config, tmp_path / "whole")
    needed = gnn.train(graph, config, out, dry_run=True).metrics["planned_disk_bytes"]
    held = sum(file.stat().st_size for file in (tmp_path / "whole").glob("*.safetensors"))
    assert 0.8 * 2 * held < needed < 1.2 * 2 * held  # two checkpoints
    for free in (needed - 1, needed):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: Usage(9, 9, free))
        if free < needed:
            with pytest.raises(StorageFullError, match=r"the run takes .*two checkpoints"):
                gnn.train(graph, config, out)
            assert not out.exists()
        else:
            gnn.train(graph, config, out)
