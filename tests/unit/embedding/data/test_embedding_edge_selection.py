import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsys.core.types import Bucket
from graphsys.embedding.data.edge_selection import EdgePart, edges_to_train, held_out_edges

BUCKET = Bucket(0, 1)


@given(num_edges=st.integers(0, 500), fraction=st.floats(0, 0.9), seed=st.integers(0, 9))
def test_as_many_edges_are_held_out_as_by_pbg(
    num_edges: int, fraction: float, seed: int
) -> None:
    held = held_out_edges(seed, fraction, "likes", "train", BUCKET, num_edges)
    assert len(held) == int(num_edges * fraction)  # PBG: train_cpu.py
    assert len(np.unique(held)) == len(held)
    assert not len(held) or held.max() < num_edges
    again = held_out_edges(seed, fraction, "likes", "train", BUCKET, num_edges)
    assert np.array_equal(held, again)


def test_other_buckets_seeds_and_splits_hold_out_other_edges() -> None:
    given = (0, 0.1, "likes", "train", BUCKET, 1000)
    first = held_out_edges(*given)
    for at, other in ((0, 1), (2, "of"), (3, "extra"), (4, Bucket(1, 0))):
        changed = list(given)
        changed[at] = other
        assert not np.array_equal(first, held_out_edges(*changed))  # type: ignore[arg-type]


@given(num_edges=st.integers(0, 300), total=st.integers(1, 7), fraction=st.floats(0, 0.5))
def test_the_parts_and_the_held_out_edges_are_all_edges_once(
    num_edges: int, total: int, fraction: float
) -> None:
    held = held_out_edges(0, fraction, "likes", "train", BUCKET, num_edges)
    pieces = [held]
    for number in range(total):
        part = EdgePart(number=number, total=total)
        chosen = edges_to_train(num_edges, held, part)
        if chosen is None:
            chosen = np.arange(num_edges, dtype=np.uint32)
        assert len(chosen) == part.size(num_edges - len(held))
        pieces.append(chosen)
    assert np.array_equal(np.sort(np.concatenate(pieces)), np.arange(num_edges))


@pytest.mark.parametrize("total", [1, 3])
def test_edges_to_choose_from_may_be_given(total: int) -> None:
    only = np.array([2, 3, 5, 8, 9], dtype=np.uint32)
    held = np.array([3, 4], dtype=np.uint32)
    chosen = [
        edges_to_train(10, held, EdgePart(number=k, total=total), only)
        for k in range(total)
    ]
    assert sorted(np.concatenate(chosen).tolist()) == [2, 5, 8, 9]  # type: ignore[arg-type]


def test_all_edges_need_no_list() -> None:
    none = np.empty(0, dtype=np.uint32)
    assert edges_to_train(10, none, EdgePart()) is None
