"""Counting better candidates, block by block, against plain Python in float64."""

from typing import Any

import numpy as np
import pytest

from graphsys.kernels.cpu.embedding.rank import (
    BIASED_DISTANCE,
    BIASED_SQUARES,
    DISTANCE,
    PRODUCT,
    count_better,
    exact_scores,
)
from graphsys.kernels.cpu.searching import lower_bound

FORMS = {
    "product": PRODUCT,
    "distance": DISTANCE,
    "squares": BIASED_SQUARES,
    "roots": BIASED_DISTANCE,
}


def score_of(form: str, query: Any, candidate: Any) -> float:
    """Return how well a candidate fits, by definition, summed dimension by dimension."""
    q, c = [float(x) for x in query], [float(x) for x in candidate]
    product = square = apart = 0.0
    for x, y in list(zip(q, c, strict=True))[form in ("squares", "roots") :]:
        product, square, apart = product + x * y, square + y * y, apart + (x - y) * (x - y)
    if form == "product":
        return product
    if form == "roots":
        return float(c[0] - np.sqrt(apart))
    return product - (square - (c[0] if form == "squares" else 0)) / 2


def shifts_of(form: str, candidates: Any) -> Any:
    rest = candidates[:, form in ("squares", "roots") :]
    halves = (rest**2).sum(1) / 2
    if form == "product":
        return np.zeros(len(candidates), np.float32)
    return (halves - candidates[:, 0] / 2 if form == "squares" else halves).astype("f4")


def scores_of(form: str, queries: Any, candidates: Any) -> Any:
    found = np.empty(len(queries))
    exact_scores(queries, candidates, FORMS[form], found)
    return found


def check(form: str, queries: Any, candidates: Any, *, first: int = 0) -> Any:
    """Compare counts with plain Python's; the answers are all over and around the block."""
    num, size = len(queries), len(candidates)
    if form != "product":  # as queries are prepared
        queries = np.where(np.arange(queries.shape[1]) == 0, 0, queries).astype("f4")
        if form == "distance":
            queries[:, 0] = candidates[0, 0]
    rng = np.random.default_rng(5)
    own = np.arange(num) % size
    positives = scores_of(form, queries, candidates[own])
    assert positives.tolist() == [
        score_of(form, q, c) for q, c in zip(queries, candidates[own], strict=True)
    ]
    # every third answer is no candidate, every third is one of another block
    targets = np.where(np.arange(num) % 3 == 0, -1, first + own)
    targets[1::3] += size * (np.arange(len(targets[1::3])) % 2)
    lists = [
        sorted({*rng.integers(max(first - 3, 0), first + size + 3, 6).tolist(), first + o})
        for o in own
    ]
    lists[0] = []
    ends = np.cumsum([len(numbers) for numbers in lists])
    known = np.array([j for numbers in lists for j in numbers], dtype=np.int64)
    wanted = np.zeros((num, 4), dtype=np.int64)
    for i, query in enumerate(queries):
        for j, candidate in enumerate(candidates):
            if first + j == targets[i]:
                continue
            score = score_of(form, query, candidate)
            found = [score > positives[i], score == positives[i]]
            wanted[i, :2] += found
            if first + j in lists[i]:
                wanted[i, 2:] += found
    counts = np.full((num, 4), 7, dtype=np.int64)
    count_better(
        queries,
        candidates,
        shifts_of(form, candidates),
        first,
        positives,
        targets,
        ends - [len(numbers) for numbers in lists],
        ends,
        known,
        FORMS[form],
        float(np.sqrt((candidates**2).sum(1).max())),
        np.empty((num, size), np.float32),
        counts,
    )
    assert (counts - 7).tolist() == wanted.tolist()
    return wanted


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("size", [2, 5])
def test_whole_numbers_tie_and_are_counted_exactly(form: str, size: int) -> None:
    rng = np.random.default_rng(1)
    queries = rng.integers(-3, 4, (17, size)).astype(np.float32)
    candidates = rng.integers(-3, 4, (23, size)).astype(np.float32)
    for first in (0, 40):
        wanted = check(form, queries, candidates, first=first)
        assert (wanted.sum(0) > 5).all()


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("scales", [(1, 1), (1000, 1), (1, 1000), (1000, 1000), (1e-3, 1)])
def test_equal_rows_tie_whatever_single_precision_makes_of_them(
    form: str, scales: tuple[float, float]
) -> None:
    rng = np.random.default_rng(2)
    queries = (scales[0] * rng.normal(size=(40, 24))).astype(np.float32)
    candidates = (scales[1] * rng.normal(size=(12, 24))).astype(np.float32)
    wanted = check(form, queries, np.tile(candidates, (4, 1)))
    assert wanted[:, 1].min() >= 3  # its copies, or more where it is no candidate itself
    assert wanted[:, 0].sum() > 100


@pytest.mark.parametrize("form", list(FORMS))
def test_rows_of_zeros_all_tie(form: str) -> None:
    counts = check(form, np.zeros((6, 4), np.float32), np.zeros((9, 4), np.float32))
    assert set(counts[:, 1].tolist()) == {8, 9}
    assert (counts[:, 0] == 0).all()


@pytest.mark.parametrize("form", ["distance", "squares", "roots"])
def test_a_candidate_at_the_query_is_the_best(form: str) -> None:
    rng = np.random.default_rng(3)
    candidates = (100 * rng.normal(size=(15, 8))).astype(np.float32)
    candidates[:, 0] = 0.5
    wanted = check(form, candidates + np.float32(1e-4), candidates)
    assert (wanted[:, 0] == 0).all()


def test_the_first_place_of_a_number_that_is_not_less() -> None:
    numbers = np.array([9, 1, 3, 3, 5, 8, 0])
    for begin, end in ((1, 6), (2, 5), (1, 1), (5, 6)):
        for least in range(10):
            wanted = begin + sum(number < least for number in numbers[begin:end])
            assert lower_bound(numbers, begin, end, least) == wanted
