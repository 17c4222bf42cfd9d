"""Training that goes on: the same bits, its own settings, names nobody gave before."""

import re
import time
from pathlib import Path

import pytest

from graphsys import gnn
from graphsys.core.errors import ConfigError, OutputExistsError
from graphsys.gnn.run import GnnRunState
from tests.syncs import require_durable_commits, watch_disk
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.training.test_api import (
    StopAfter,
    StoppedError,
    are_equal,
    config_of,
    weights_of,
)


@pytest.mark.parametrize(("batch_size", "stop"), [(8, 5), (8, 3), (0, 3)])
def test_resumed_run_is_equal_bit_by_bit(
    groups: Store, tmp_path: Path, batch_size: int, stop: int
) -> None:
    graph = groups(2)
    config = config_of(
        model="gat",
        batch_size=batch_size,
        epochs=4,
        dropout=0.3,
        deterministic=True,
        checkpoint_seconds=0,
        eval_every=1,
        keep="best",
    )
    whole = gnn.train(graph, config, tmp_path / "whole")
    with pytest.raises(StoppedError):
        gnn.train(graph, config, tmp_path / "run", progress=StopAfter(stop))
    report = gnn.train(graph, None, tmp_path / "run", resume=True)
    assert report.epochs == 4
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))
    assert report.metrics["loss"] == whole.metrics["loss"]
    assert report.metrics["best_epoch"] == whole.metrics["best_epoch"]
    names = {file.name.split(".")[0] for file in (tmp_path / "run").iterdir()}
    assert names - {""} == {"best", "config", "optimizer", "run", "weights"}


def test_resume_with_other_settings(groups: Store, tmp_path: Path) -> None:
    graph = groups(1)
    gnn.train(graph, config_of(epochs=1), tmp_path / "run")
    message = "has other settings (dim: 16 -> 8); resume it with its own"
    with pytest.raises(ConfigError, match=re.escape(message)):
        gnn.train(graph, config_of(epochs=1, dim=8), tmp_path / "run", resume=True)
    with pytest.raises(ConfigError, match=r"was trained on another graph \(.*partitions"):
        gnn.train(groups(2), None, tmp_path / "run", resume=True)
    with pytest.raises(ConfigError, match="holds no run to resume"):
        gnn.train(graph, None, tmp_path / "other", resume=True)


def test_runs_are_not_overwritten_unasked(groups: Store, tmp_path: Path) -> None:
    graph, run = groups(1), tmp_path / "run"
    gnn.train(graph, config_of(epochs=1), run)
    with pytest.raises(OutputExistsError, match="holds a run; continue it with --resume"):
        gnn.train(graph, config_of(epochs=1), run)
    before = weights_of(run)
    with pytest.raises(StoppedError):
        gnn.train(graph, config_of(dim=8), run, overwrite=True, progress=StopAfter(2))
    assert are_equal(weights_of(run), before)  # the old one survives
    gnn.train(graph, config_of(epochs=1, dim=8), run, overwrite=True)
    assert gnn.open_run(run).config.dim == 8
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("run")) == ["run"]


def test_files_others_are_told_of_have_names_that_nobody_gave_before(
    groups: Store, tmp_path: Path
) -> None:
    """Who died may have sent files of a checkpoint that was never published."""
    graph, run, told = groups(1), tmp_path / "run", []

    def end(state: GnnRunState) -> None:
        if state.files:
            raise StoppedError

    with pytest.raises(StoppedError):
        gnn.train(graph, config_of(epochs=2, checkpoint_seconds=0), run, on_commit=end)
    begun = time.time_ns() // 1_000_000
    gnn.train(graph, None, run, resume=True, on_commit=lambda it: told.append(it.serial))
    assert min(told) > begun


def test_a_commit_follows_all_that_it_lists_to_the_disk(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, out = watch_disk(monkeypatch), tmp_path / "run"
    commits = require_durable_commits(disk)
    config = config_of(epochs=3, checkpoint_seconds=0, eval_every=1, keep="best")
    gnn.train(groups(1), config, out)
    assert len(commits) > 3
    assert "run.json" in disk.folders[out]
