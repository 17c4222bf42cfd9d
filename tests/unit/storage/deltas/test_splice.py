"""Arrays that are merged: in memory, in files without names, and on full disks."""

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import StorageFullError
from graphsys.kernels.cpu.rows import splice as kernels
from graphsys.storage.deltas import splice
from graphsys.storage.deltas.splice import MergedSpace, spliced

LIMIT = 1 << 20  # bytes from which on arrays lie in files


def edited(base: Any, dropped: Any, places: Any, values: Any) -> list[Any]:
    """Return what a list edited entry by entry holds."""
    out: list[Any] = []
    for k in range(len(base) + 1):
        out += [v for v, place in zip(values, places, strict=True) if place == k]
        out += [base[k]] if k < len(base) and k not in dropped else []
    return out


@pytest.mark.parametrize("piece", [1, 3, 8, 1 << 18])
@pytest.mark.parametrize("size", [0, 1, 8, 30])
def test_an_edited_list_is_the_same_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, size: int
) -> None:
    monkeypatch.setattr(splice, "_PIECE", piece)
    rng = np.random.default_rng(size)
    base = rng.integers(0, 1000, size).astype(np.uint32)
    dropped = np.flatnonzero(rng.random(size) < 0.3)
    places = np.sort(rng.integers(0, size + 1, 12))
    values = np.arange(2000, 2012, dtype=np.uint32)
    expected = edited(base.tolist(), dropped.tolist(), places, values.tolist())
    for limit in (LIMIT, 0):  # in memory, and in a file
        monkeypatch.setattr(splice, "_IN_MEMORY", limit)
        found = spliced(base, dropped, places, values, MergedSpace(tmp_path))
        assert found.tolist() == expected
        assert found.dtype == np.uint32
        assert not found.flags.writeable
    wide = spliced(base, dropped, places, values, MergedSpace(tmp_path), np.int64)
    assert wide.tolist() == expected
    assert wide.dtype == np.int64
    assert not list(tmp_path.iterdir())


def lies_in_a_file(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(getattr(array, "obj", array), mmap.mmap)


@pytest.mark.parametrize("missing", [1, 0, -1])
def test_arrays_of_a_megabyte_lie_in_files(tmp_path: Path, missing: int) -> None:
    space, size = MergedSpace(tmp_path), LIMIT // 8 - missing
    values = np.arange(size)

    def fill(out: Any) -> None:
        out[:] = values

    def fill_piece(k: int, out: Any) -> None:
        out[:] = values[k * 70_000 : (k + 1) * 70_000]

    pieces = space.put_together([0, 70_000, size], np.int64, fill_piece)
    for found in (space.filled(size, np.int64, fill), pieces):
        np.testing.assert_array_equal(found, values)
        assert not found.flags.writeable
        assert lies_in_a_file(found) == (missing < 1)


def test_writes_cut_short_are_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole(fd, data[:1000], at))
    monkeypatch.setattr(splice, "_IN_MEMORY", 0)
    base = np.arange(3000)
    none = np.empty(0, np.int64)
    found = spliced(base, none, none, none, MergedSpace(tmp_path))
    np.testing.assert_array_equal(found, base)


def test_a_full_disk_is_told_with_what_is_lacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, begin: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    space = MergedSpace(tmp_path / "gen-1")
    text = r"takes 1048584 bytes of disk, which are not there \(no space left on device\)"
    with pytest.raises(StorageFullError, match=text):
        space.filled(LIMIT // 8 + 1, np.int64, lambda out: None)
    with pytest.raises(StorageFullError, match=text):
        space.put_together([0, LIMIT // 8 + 1], np.int64, lambda k, out: None)


def test_where_nothing_can_be_written_files_are_temporary_ones(tmp_path: Path) -> None:
    found = MergedSpace(tmp_path / "none").filled(LIMIT, np.uint8, lambda out: out.fill(7))
    assert found.min() == found.max() == 7
    assert len(found) == LIMIT


def test_a_file_is_closed_with_the_array_in_it(tmp_path: Path) -> None:
    def num_open() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = num_open()
    found = [MergedSpace(tmp_path).filled(LIMIT, np.uint8, lambda _: None) for _ in "abc"]
    assert num_open() <= before + len(found)
    found.clear()
    assert num_open() == before


def test_mapped_arrays_and_others_are_merged_by_one_machine_code(tmp_path: Path) -> None:
    base, values = np.arange(9, dtype=np.int16), np.array([7], dtype=np.int16)
    mapped, nowhere = base.copy(), np.empty(0, dtype=np.int64)
    mapped.flags.writeable = False  # as mapped files are
    for given, put in ((base, values), (mapped, values), (mapped, mapped[:1])):
        spliced(given, nowhere, np.array([3]), put, MergedSpace(tmp_path))
    kernel: Any = kernels.splice
    of_int16 = [it for it in kernel.signatures if it[0].dtype.name == "int16"]
    assert len(of_int16) == 1
