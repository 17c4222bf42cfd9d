import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphsys.core.errors import ConfigError, CorruptStoreError, StorageFullError
from graphsys.embedding import EmbeddingConfig, checkpoints, train
from graphsys.embedding import run as runs
from graphsys.storage import Graph
from tests.syncs import require_durable_commits, watch_disk


def make_run(path: Path, epoch: int) -> runs.EmbeddingRunState:
    """Write a run whose one file holds its epoch."""
    state = runs.EmbeddingRunState(graph={"path": "graph"}, epoch=epoch, serial=epoch)
    name = runs.rows_file("node", 0, epoch)
    state.files = {name: runs.write_array(path / name, np.full((4, 2), epoch, np.float32))}
    (path / runs.CONFIG_NAME).write_text("dim = 2\n")
    runs.commit(path, state)
    runs.remove_superseded(path, state)
    return state


def value(path: Path) -> float:
    """Return the value that the checkpoint of a folder holds."""
    (name,) = runs.read_state(path).files
    return float(runs.read_array(path, name)[0, 0])


def test_a_preserved_checkpoint_is_a_run_that_later_ones_do_not_touch(
    tmp_path: Path,
) -> None:
    for epoch in (1, 2, 3):
        checkpoints.preserve(tmp_path, make_run(tmp_path, epoch))
    assert checkpoints.preserved_epochs(tmp_path) == [1, 2, 3]
    assert [value(checkpoints.find_checkpoint(tmp_path, e)) for e in (1, 2, 3)] == [1, 2, 3]
    assert len(list((tmp_path / "rows").rglob("*.npy"))) == 1
    with pytest.raises(ConfigError, match="no checkpoint of epoch 9; preserved: 1, 2, 3"):
        checkpoints.find_checkpoint(tmp_path, 9)


def test_links_take_no_room_and_copies_do_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = make_run(tmp_path, 1)
    checkpoints.preserve(tmp_path, state)
    (name,) = state.files
    assert os.path.samefile(tmp_path / name, tmp_path / "checkpoints/1" / name)

    def refuse(*args: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    checkpoints.preserve(tmp_path, make_run(tmp_path, 2))
    assert value(tmp_path / "checkpoints/2") == 2


def test_restoring_puts_the_files_of_an_epoch_in_place(tmp_path: Path) -> None:
    checkpoints.preserve(tmp_path, make_run(tmp_path, 1))
    state = make_run(tmp_path, 2)
    checkpoints.restore(tmp_path, state, 1)
    runs.commit(tmp_path, state)
    assert value(tmp_path) == 1
    assert runs.read_state(tmp_path).epoch == 2
    assert state.serial == 2


def test_restoring_a_damaged_checkpoint_names_the_file(tmp_path: Path) -> None:
    state = make_run(tmp_path, 1)
    checkpoints.preserve(tmp_path, state)
    (name,) = state.files
    (tmp_path / "checkpoints/1" / name).unlink()
    state = make_run(tmp_path, 2)
    with pytest.raises(CorruptStoreError, match=r"checkpoints/1/rows/.* is missing"):
        checkpoints.restore(tmp_path, state, 1)
    assert value(tmp_path) == 2


def test_pruning_keeps_what_it_is_told_and_removes_litter(tmp_path: Path) -> None:
    for epoch in (1, 2, 3):
        checkpoints.preserve(tmp_path, make_run(tmp_path, epoch))
    (tmp_path / "checkpoints/4.new").mkdir()
    checkpoints.prune(tmp_path, {2})
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["2"]
    checkpoints.prune(tmp_path, set())
    assert not (tmp_path / "checkpoints").exists()


def test_a_full_disk_leaves_no_half_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = make_run(tmp_path, 1)

    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr("shutil.copyfile", fail)
    with pytest.raises(StorageFullError, match="no space left"):
        checkpoints.preserve(tmp_path, state)
    assert checkpoints.preserved_epochs(tmp_path) == []
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_a_commit_follows_all_that_it_lists_to_the_disk(
    make_ring: Callable[[int], Graph],
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = dataclasses.replace(ring_config, epochs=2, checkpoint_seconds=0.0)
    disk, out = watch_disk(monkeypatch), tmp_path / "run"
    commits = require_durable_commits(disk)
    train(make_ring(4), config, out)
    assert len(commits) > 2 * 4  # after every unit of two epochs
    assert "run.json" in disk.folders[out]
    train(make_ring(4), config, out, overwrite=True)
    assert disk.order[-1][0] == "sync"
    assert "run" in disk.folders[tmp_path]
