"""Scratch space: in memory while it fits, in files beyond, gone at the end."""

import gc
import os
from pathlib import Path

import numpy as np
import pytest

from graphsys.storage.scratch import Scratch, Segments, Spool


def num_open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(("budget", "is_mapped"), [(10**6, False), (1000, True)])
def test_arrays_go_to_memory_or_to_a_file(
    budget: int, is_mapped: bool, tmp_path: Path
) -> None:
    array = Scratch(tmp_path, budget).array(1000, np.int64)
    array[:] = np.arange(1000)
    assert array.sum() == 499_500
    assert (array.base is not None) == is_mapped
    assert list(tmp_path.iterdir()) == []  # the mapping alone holds the space


def test_memory_that_is_freed_can_be_used_again(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, 16_000)
    first = scratch.array(1000, np.int64)
    second = scratch.array(1000, np.int64)
    assert first.base is None
    assert second.base is not None
    del first
    assert scratch.array(1000, np.int64).base is None


def test_empty_arrays_need_no_file(tmp_path: Path) -> None:
    assert len(Scratch(tmp_path, 0).array(0, np.int64)) == 0
    assert Scratch(tmp_path, 0).zeros(3, np.uint8).tolist() == [0, 0, 0]


def test_names_of_types_never_leave_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    for name in ("../../x", "a/b", "", "n" * 400, "\0"):
        Scratch(folder, 0).file(name).remove()
    Scratch(folder, 0).file("../kept")
    assert [path.name for path in tmp_path.iterdir()] == ["scratch"]


@pytest.mark.parametrize("budget", [10**6, 0])
def test_a_spool_gives_back_what_it_got(budget: int, tmp_path: Path) -> None:
    spool = Spool(Scratch(tmp_path, budget), "x")
    whole = np.arange(20)
    places = [spool.append(array) for array in (whole[3:9], np.empty(0), np.array([1.5]))]
    whole[:] = -1  # a view is copied, so that its owner may go on
    assert spool.read(places[0]).tolist() == [3, 4, 5, 6, 7, 8]
    assert spool.read(places[0], 1, 3).tolist() == [4, 5]
    assert spool.read(places[1]).tolist() == []
    assert spool.read(places[2]).tolist() == [1.5]
    spool.drop(places[0])
    with pytest.raises(ValueError, match="has been dropped"):
        spool.read(places[0])
    spool.remove()


@pytest.mark.parametrize("budget", [10**6, 0, 300])
def test_segments_come_back_by_group(
    budget: int, tmp_path: Path, rng: np.random.Generator
) -> None:
    dtypes: dict[str, np.dtype[np.generic]] = {"a": np.dtype("i8"), "b": np.dtype("u1")}
    segments = Segments(Scratch(tmp_path, budget), "x", dtypes, 4)
    expected: dict[int, list[int]] = {group: [] for group in range(4)}
    for _ in range(5):
        groups = np.sort(rng.integers(0, 3, 30))  # group 3 stays empty
        values = rng.integers(0, 100, 30)
        starts = np.searchsorted(groups, np.arange(5))
        segments.append({"a": values, "b": values}, starts)
        for group, value in zip(groups.tolist(), values.tolist(), strict=True):
            expected[group].append(value)
    for group in (2, 0, 3, 1):
        assert segments.length(group) == len(expected[group])
        columns = segments.read(group)
        assert columns["a"].tolist() == columns["b"].tolist() == expected[group]
        assert columns["b"].dtype == np.uint8
    segments.remove()


def test_files_are_closed_when_nobody_needs_them(tmp_path: Path) -> None:
    before = num_open_files()
    scratch = Scratch(tmp_path, 0)
    kept = [scratch.file("x") for _ in range(5)]
    arrays = [scratch.array(10, np.int64) for _ in range(5)]
    kept[0].remove()
    kept[0].remove()  # again: nothing happens
    assert num_open_files() == before + 4 + 5  # a mapping holds a file of its own
    del kept, arrays
    assert num_open_files() == before


def test_a_file_that_ends_early_is_noticed(tmp_path: Path) -> None:
    file = Scratch(tmp_path, 0).file("x")
    file.append(np.arange(4))
    with pytest.raises(OSError, match="ended early"):
        file.read(0, 5, np.int64)
