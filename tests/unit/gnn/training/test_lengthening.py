"""A training of a network that is made longer when it goes on."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.gnn import run as runs
from graphsys.storage import Graph, NodeChunk
from graphsys.storage.runs import run_folder
from graphsys.storage.verify.run import verify_run
from tests.conftest import Run
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.training.test_api import are_equal, config_of, weights_of

CASES: list[dict[str, Any]] = [
    {"dropout": 0.3, "model": "gat"},
    {"batch_size": 0},
    {"lr_warmup_epochs": 3, "lr_decay": 0.9, "keep": "last"},
    {"task": "link_prediction", "eval_every": 0},
    {"lr_schedule": "plateau", "lr_patience": 1},
    {"learned_rows": "disk", "patience": 3},
]


def same(**changes: Any) -> gnn.GnnConfig:
    return config_of(**{"deterministic": True, "eval_every": 1, **changes})


@pytest.mark.parametrize("changes", CASES)
def test_two_epochs_and_two_more_are_four_bit_by_bit(
    groups: Store, tmp_path: Path, changes: dict[str, Any]
) -> None:
    has_rows = changes.get("learned_rows") == "disk"
    graph = lonely(tmp_path / "lonely") if has_rows else groups(2)
    whole, run = tmp_path / "whole", tmp_path / "run"
    gnn.train(graph, same(epochs=4, **changes), whole)
    gnn.train(graph, same(epochs=2, **changes), run)
    report = gnn.train(graph, same(epochs=4, **changes), run, resume=True)
    assert report.epochs == 4
    assert are_equal(weights_of(run), weights_of(whole))
    mine, theirs = runs.read_state(run), runs.read_state(whole)
    assert mine.losses == theirs.losses
    assert [it[:3] for it in mine.history] == [it[:3] for it in theirs.history]
    for stem in ("best", "optimizer"):
        one, other = (runs.load(at, s, stem) for at, s in ((run, mine), (whole, theirs)))
        assert (one is None) == (other is None)
        assert one is None or other is None or are_equal(one, other)
    assert (run / "config.toml").read_bytes() == (whole / "config.toml").read_bytes()
    assert not verify_run(run).problems
    rows = runs.read_config(run).learned_rows
    assert (rows == "disk") == any(name.startswith("rows/") for name in mine.files)


def lonely(path: Path) -> Graph:
    """Return nodes of 3 classes on a ring, without features: their rows are learned."""
    split = pa.array(["train", "train", "valid", "test"] * 6)
    nodes = NodeChunk(
        ids=np.arange(24), columns={"label": np.arange(24) % 3, "split": split}
    )
    pairs = [(k, (k + step) % 24) for k in range(24) for step in (1, 3)]
    make_store(path, nodes, edge_chunk(pairs), is_directed=False)
    return Graph(path)


def test_what_early_stopping_ended_goes_on_with_other_patience(
    groups: Store, tmp_path: Path
) -> None:
    graph, run = groups(1), tmp_path / "run"
    config = same(epochs=50, lr=1e-9, patience=2)
    ended = gnn.train(graph, config, run).epochs
    assert ended < 50
    longer = same(epochs=60, lr=1e-9, patience=2)
    with pytest.raises(ConfigError, match=r"ended early after .* or --set patience=0"):
        gnn.train(graph, longer, run, resume=True)
    longer = same(epochs=ended + 2, lr=1e-9, patience=0)
    assert gnn.train(graph, longer, run, resume=True).epochs == ended + 2


def test_rates_that_fall_over_all_epochs_are_told_of(groups: Store, tmp_path: Path) -> None:
    graph, run, config = groups(1), tmp_path / "run", same(epochs=2, lr_schedule="cosine")
    gnn.train(graph, config, run)
    with pytest.warns(UserWarning, match="rates of a run of 4 epochs, what is trained had"):
        gnn.train(graph, same(epochs=4, lr_schedule="cosine"), run, resume=True)


def test_weights_that_grow_over_all_epochs_are_told_of(
    groups: Store, tmp_path: Path
) -> None:
    graph, run = groups(1), tmp_path / "run"
    gnn.train(graph, same(epochs=2, sparsity=0.5), run)
    with pytest.warns(UserWarning, match="as in a run of 4, before as in one of 2"):
        gnn.train(graph, same(epochs=4, sparsity=0.5), run, resume=True)


def test_a_resume_cannot_end_before_what_was_trained(groups: Store, tmp_path: Path) -> None:
    graph, run = groups(1), tmp_path / "run"
    gnn.train(graph, same(epochs=3), run)
    with pytest.raises(ConfigError, match=r"got 2, but the run .* expected at least 3"):
        gnn.train(graph, same(epochs=2), run, resume=True)


@pytest.mark.parametrize("last", range(3))
def test_a_kill_as_the_settings_change_leaves_a_whole_run(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    graph, run = groups(1), tmp_path / "run"
    gnn.train(graph, same(epochs=4), tmp_path / "whole")
    gnn.train(graph, same(epochs=2), run)
    left, write = [last], run_folder.write_durably

    def write_or_die(file: Path, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt  # nothing after it is done, as after a kill
        write(file, data)

    with monkeypatch.context() as patched:
        patched.setattr(run_folder, "write_durably", write_or_die)
        with pytest.raises(KeyboardInterrupt):
            gnn.train(graph, same(epochs=4), run, resume=True)
    assert gnn.evaluate(run, split="test")["metrics"]["accuracy"] > 0
    assert not verify_run(run).problems
    assert runs.read_config(run).epochs == (4 if last == 2 else 2)
    gnn.train(graph, same(epochs=4), run, resume=True)
    assert are_equal(weights_of(run), weights_of(tmp_path / "whole"))
    assert "config.toml" in runs.read_state(run).checksums


def test_the_command_makes_a_training_longer(
    groups: Store, tmp_path: Path, run_cli: Run
) -> None:
    graph, run = groups(1), tmp_path / "run"
    gnn.train(graph, same(epochs=2), run)
    more = ("train", "gnn", graph.path, "-o", run, "--resume", "--json")
    done = run_cli(*more, "--set", "epochs=5", "--set", "eval_every=2")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] == 5
    done = run_cli(*more, "--set", "epochs=6", "--set", "dim=8")
    assert done.returncode == 2
    assert "a resume may change epochs, sharding, eval_every, patience" in done.stderr
    assert json.loads(run_cli(*more).stdout)["epochs"] == 5
