"""Rows in files: the last version of each is read, and every checkpoint stays whole."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import CorruptStoreError, StorageFullError
from graphsys.gnn.data import disk_rows
from graphsys.gnn.data.disk_rows import RowFiles

NUM_ROWS, DIM = 50, 3


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_rows, "SEGMENT_BYTES", 16 * 4 * (DIM + 1))


def rows_of(path: Path | None, files: dict[str, int], *, is_writing: bool = True) -> Any:
    rows = RowFiles("my type", NUM_ROWS, DIM, seed=4)
    if path is not None:
        rows.open(path, files, is_writing=is_writing)
    return rows


def read_all(rows: RowFiles) -> tuple[Any, Any]:
    values, states = np.empty((NUM_ROWS, DIM), np.float32), np.empty(NUM_ROWS, np.float32)
    rows.read(np.arange(NUM_ROWS), values, states)
    return values, states


def write_some(rows: RowFiles, rng: np.random.Generator, *tables: Any) -> None:
    """Write a few rows, and to the arrays of a table in memory."""
    chosen = rng.permutation(NUM_ROWS)[: rng.integers(1, 20)]
    values = rng.random((len(chosen), DIM), dtype=np.float32)
    states = rng.random(len(chosen), dtype=np.float32)
    rows.write(chosen, values, states)
    tables[0][chosen], tables[1][chosen] = values, states


def remove_others(path: Path, files: dict[str, int]) -> None:
    """Do what a run does after a commit, and before it goes on."""
    for file in (path / "rows").rglob("*.bin"):
        if file.relative_to(path).as_posix() not in files:
            file.unlink()


def test_first_values_are_normal_and_of_seed_type_and_row() -> None:
    many = RowFiles("a", 20_000, 5, seed=1)
    values, states = np.empty((20_000, 5), np.float32), np.ones(20_000, np.float32)
    many.read(np.arange(20_000), values, states)
    assert abs(values.mean()) < 0.002
    assert values.std(axis=0) == pytest.approx(np.full(5, 0.1), rel=0.02)
    assert abs(np.corrcoef(values.T) - np.eye(5)).max() < 0.03
    assert not states.any()
    for name, seed, is_equal in (("a", 1, True), ("b", 1, False), ("a", 2, False)):
        again = np.empty((1, 5), np.float32)
        RowFiles(name, 99, 5, seed).read(np.array([7]), again, np.empty(1, np.float32))
        assert np.array_equal(again[0], values[7]) == is_equal


@pytest.mark.parametrize("seed", range(4))
def test_checkpoints_hold_what_was_there_when_they_were_made(
    tmp_path: Path, seed: int
) -> None:
    """Rows are written, committed, kept as the best, and lost by kills, in any order."""
    rng = np.random.default_rng(seed)
    files: dict[str, int] = {}
    rows = rows_of(tmp_path, files)
    now = read_all(rows)
    committed: Any = tuple(array.copy() for array in now)
    best: dict[int, Any] = {}
    best_epoch = committed_best = 0
    for step in range(1, 80):
        action = rng.integers(0, 6)
        if action < 3:
            write_some(rows, rng, *now)
        elif action == 3:
            best_epoch = step
            best[step] = tuple(array.copy() for array in now)
            rows.hold_best(step)
        elif action == 4:
            files = rows.flush(step, best_epoch)
            remove_others(tmp_path, files)
            rows.committed()
            committed = tuple(array.copy() for array in now)
            committed_best = best_epoch
        else:  # a kill
            remove_others(tmp_path, files)
            rows = rows_of(tmp_path, files)
            now = tuple(array.copy() for array in committed)
            best_epoch = committed_best
        assert all(map(np.array_equal, read_all(rows), now))
        assert {n: (tmp_path / n).stat().st_size for n in files} == files
        opened = rows_of(tmp_path, files, is_writing=False)
        wanted = best[committed_best] if committed_best else committed
        assert all(map(np.array_equal, read_all(opened), wanted))
    held = sum(f.stat().st_size for f in (tmp_path / "rows").rglob("segment-*"))
    assert 0 < held <= rows.most_bytes + 16 * 4 * (DIM + 1)


def test_places_are_used_again(tmp_path: Path) -> None:
    """Two versions of every row suffice, however often they are written and committed."""
    rows = rows_of(tmp_path, {})
    rng = np.random.default_rng(0)
    now = read_all(rows)
    for serial in range(1, 30):
        for _ in range(5):
            write_some(rows, rng, *now)
        remove_others(tmp_path, rows.flush(serial, 0))
        rows.committed()
    held = sum(f.stat().st_size for f in (tmp_path / "rows").rglob("segment-*"))
    assert held <= (2 * NUM_ROWS + 16) * 4 * (DIM + 1)
    assert len(list((tmp_path / "rows" / "my type").glob("places-*"))) == 1


def test_without_a_folder_rows_are_in_memory() -> None:
    rows = rows_of(None, {})
    now = read_all(rows)
    for seed in range(5):
        write_some(rows, np.random.default_rng(seed), *now)
    rows.touch(np.arange(NUM_ROWS))
    assert all(map(np.array_equal, read_all(rows), now))


def test_a_full_disk_leaves_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(tmp_path, {})
    now = read_all(rows)
    write_some(rows, np.random.default_rng(0), *now)
    files = rows.flush(1, 0)
    rows.committed()

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    more = np.ones((NUM_ROWS, DIM), np.float32)
    with pytest.raises(StorageFullError, match=r"segment-\d+.bin: no space left on device"):
        rows.write(np.arange(NUM_ROWS), more, more[:, 0].copy())
    remove_others(tmp_path, files)
    assert all(map(np.array_equal, read_all(rows_of(tmp_path, files)), now))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, {})
    write_some(rows, np.random.default_rng(0), *read_all(rows))
    files = rows.flush(1, 0)
    places = tmp_path / "rows" / "my type" / "places-1.bin"
    places.write_bytes(np.full(NUM_ROWS, 99, np.int32).tobytes())
    with pytest.raises(CorruptStoreError, match=r"places-1.bin .* expected 50 rows within"):
        rows_of(tmp_path, files)
    (tmp_path / "rows" / "my type" / "segment-0.bin").write_bytes(b"")
    with pytest.raises(CorruptStoreError, match=r"segment-0.bin cannot be read"):
        rows_of(tmp_path, files)
