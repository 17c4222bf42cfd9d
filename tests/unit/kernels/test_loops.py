"""Loops over work that threads share."""

from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

from graphsys.core.threads import ThreadTeam
from graphsys.kernels.cpu.loops import claimed_range, claimed_rows, claimed_words
from graphsys.kernels.jit import lean_jit


@lean_jit
def note_rows(thread: int, bounds: Any, counter: Any, visits: Any) -> int:
    num = 0
    for row in claimed_rows(bounds, counter):
        visits[row] += 1
        if row & 1:
            continue
        num += 1
    return num


@lean_jit
def note_words(thread: int, bounds: Any, counter: Any, visits: Any) -> None:
    for word in claimed_words(bounds, counter):
        visits[word] += 1


@lean_jit
def note_range(
    thread: int, first: int, stop: int, block: int, counter: Any, visits: Any
) -> None:
    for number in claimed_range(first, stop, block, counter):
        visits[number] += thread + 1


@lean_jit
def note_far_rows(thread: int, bounds: Any, counter: Any, base: int, visits: Any) -> None:
    for row in claimed_rows(bounds, counter):
        visits[row - base] += 1


@lean_jit
def note_far_words(thread: int, bounds: Any, counter: Any, base: int, visits: Any) -> None:
    for word in claimed_words(bounds, counter):
        visits[word - base] += 1


@lean_jit
def note_far_range(
    thread: int, first: int, stop: int, block: int, counter: Any, base: int, visits: Any
) -> None:
    for number in claimed_range(first, stop, block, counter):
        visits[number - base] += 1


def counter() -> Any:
    return np.zeros(1, dtype=np.int64)


@pytest.mark.parametrize("bounds", [[0], [0, 0], [0, 7], [0, 3, 3, 3, 10], [4, 4, 6, 9]])
def test_every_row_of_the_chunks_is_visited_once(bounds: list[int]) -> None:
    visits = np.zeros(12, dtype=np.int64)
    expected = np.zeros(12, dtype=np.int64)
    expected[bounds[0] : bounds[-1]] = 1
    num = note_rows(0, np.array(bounds), counter(), visits)
    assert visits.tolist() == expected.tolist()
    assert num == expected[::2].sum()


def test_words_are_those_of_the_rows_of_the_chunks() -> None:
    visits = np.zeros(6, dtype=np.int64)
    note_words(0, np.array([0, 64, 64, 192, 260]), counter(), visits)
    assert visits.tolist() == [1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("block", [1, 4, 100])
@pytest.mark.parametrize(("first", "stop"), [(0, 0), (0, 10), (3, 11), (5, 2)])
def test_numbers_of_a_range_are_visited_once(first: int, stop: int, block: int) -> None:
    visits = np.zeros(12, dtype=np.int64)
    note_range(0, first, stop, block, counter(), visits)
    assert np.flatnonzero(visits == 1).tolist() == list(range(first, stop))
    assert visits.sum() == len(range(first, stop))


@pytest.mark.parametrize("base", [2**31, 2**32, 2**40, 2**62])
def test_rows_and_numbers_beyond_32_bits_are_visited_once(base: int) -> None:
    """A thread that took them for 32 bits would visit others, or none; -3 crosses 2^31."""
    visits = np.zeros(16, dtype=np.int64)
    bounds = base - 3 + np.array([0, 2, 7, 7, 12])
    note_far_rows(0, bounds, counter(), base - 3, visits)
    assert visits.tolist() == [1] * 12 + [0] * 4
    for block in (1, 5, 2**33):
        visits[:] = 0
        note_far_range(0, base - 3, base + 9, block, counter(), base - 3, visits)
        assert visits.tolist() == [1] * 12 + [0] * 4
    visits[:] = 0
    # what others have claimed of a range that begins at 0
    claimed = np.array([base - 3])
    note_far_range(0, 0, base + 9, 5, claimed, base - 3, visits)
    assert visits.tolist() == [1] * 12 + [0] * 4
    assert claimed[0] == base + 17  # three blocks, and one beyond the end


@pytest.mark.parametrize("word", [2**31 - 1, 2**32, 2**56])
def test_words_beyond_32_bits_are_those_of_their_rows(word: int) -> None:
    visits = np.zeros(6, dtype=np.int64)
    bounds = 64 * word + np.array([0, 64, 64, 192, 260])
    note_far_words(0, bounds, counter(), word, visits)
    assert visits.tolist() == [1, 1, 1, 1, 1, 0]


def test_threads_share_the_work_and_each_number_is_one_threads() -> None:
    visits = np.zeros(100_000, dtype=np.int64)
    bounds = np.unique(np.random.default_rng(0).integers(0, 100_001, 500))
    bounds[[0, -1]] = 0, 100_000
    with ThreadTeam(4) as team:
        shared = counter()
        found = team.run(note_rows, bounds, shared, visits)
        assert sum(found) == 50_000
        assert shared[0] == len(bounds) - 1 + 4  # each thread finds the end once
        visits[:] = 0
        team.run(note_range, 0, len(visits), 64, counter(), visits)
    assert set(visits.tolist()) <= {1, 2, 3, 4}


def test_a_kernel_that_begins_late_finds_nothing() -> None:
    visits = np.zeros(10, dtype=np.int64)
    late = np.array([1 << 62])
    assert note_rows(0, np.array([0, 10]), late, visits) == 0
    assert not visits.any()


def test_bounds_of_another_type_do_not_compile() -> None:
    with pytest.raises(
        TypingError, match=r"bounds: got .*int32.*expected a contiguous int64"
    ):
        note_rows(0, np.array([0, 3], dtype=np.int32), counter(), np.zeros(3, np.int64))
