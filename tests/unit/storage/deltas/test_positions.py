"""Places of changes in stored rows, against lists that are edited entry by entry."""

import numpy as np
import pytest

from graphsys.graph.csr import Csr
from graphsys.storage.deltas.positions import (
    EdgePositions,
    bucket_places,
    gone_places,
    index_places,
    rows_between,
    with_rows,
)
from graphsys.storage.views import EdgeBucket


@pytest.mark.parametrize("seed", range(5))
def test_edges_are_where_an_edited_list_has_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dropped = np.flatnonzero(rng.random(40) < 0.3)
    places = np.sort(rng.integers(0, 41, 25))
    edited = []
    for position in range(41):
        edited += [("new", k) for k in np.flatnonzero(places == position).tolist()]
        if position < 40 and position not in dropped:
            edited.append(("old", position))
    found = EdgePositions(dropped, places)
    assert found.of_added.tolist() == [edited.index(("new", k)) for k in range(25)]
    stayed = np.setdiff1d(np.arange(40), dropped).astype(np.uint32)
    expected = [edited.index(("old", k)) for k in stayed.tolist()]
    assert found.moved(stayed).tolist() == expected


def index_of(rows: list[list[tuple[int, int, int]]]) -> Csr:
    """Return an index of rows of (neighbor, relation, edge)."""
    entries = np.array([it for row in rows for it in row], dtype=np.uint32).reshape(-1, 3)
    return Csr(
        indptr=np.cumsum([0, *map(len, rows)]).astype(np.uint32),
        indices=entries[:, 0].copy(),
        relation=entries[:, 1].astype(np.uint16),
        weight=entries[:, 2].astype(np.float32),
        time=entries[:, 2].astype(np.int64),
        edge=entries[:, 2].copy(),
    )


ROWS = [[(1, 0, 7), (1, 2, 8), (4, 1, 9)], [], [(0, 1, 3), (0, 1, 4), (4, 0, 5), (4, 1, 6)]]


@pytest.mark.parametrize(
    ("row", "neighbor", "relation", "place"),
    [
        (0, 0, 1, 0),
        (0, 1, 1, 1),  # between two copies of the pair, by the relation
        (0, 1, 2, 2),
        (0, 9, 0, 3),
        (1, 5, 0, 3),
        (2, 0, 0, 3),
        (2, 0, 1, 5),  # behind its equals
        (2, 4, 0, 6),
        (2, 4, 9, 7),
    ],
)
def test_new_entries_go_behind_their_equals(
    row: int, neighbor: int, relation: int, place: int
) -> None:
    index = index_of(ROWS)
    given = np.array([row]), np.array([neighbor], np.uint32), np.array([relation])
    assert index_places(index, *given).tolist() == [place]
    src = np.repeat(np.arange(3, dtype=np.uint32), np.diff(index.indptr))
    bucket = EdgeBucket(src=src, dst=index.indices, relation=index.relation)
    assert bucket_places(bucket, *given).tolist() == [place]


def test_without_relations_new_entries_go_behind_all_copies_of_a_pair() -> None:
    index = index_of(ROWS)
    pairs = np.array([0, 0, 2, 2]), np.array([1, 0, 0, 3], dtype=np.uint32)
    assert index_places(index, *pairs, None).tolist() == [2, 0, 5, 5]
    src = np.repeat(np.arange(3, dtype=np.uint32), np.diff(index.indptr))
    bucket = EdgeBucket(src=src, dst=index.indices)
    assert bucket_places(bucket, *pairs, None).tolist() == [2, 0, 5, 5]
    assert bucket_places(bucket, *pairs, np.full(4, 9)).tolist() == [2, 0, 5, 5]


def test_removed_entries_are_counted_among_the_copies_of_their_pair() -> None:
    rows, neighbors = np.array([0, 0, 2, 2, 2]), np.array([1, 4, 0, 0, 4])
    copies = np.array([1, 0, 0, 1, 1])
    assert gone_places(index_of(ROWS), rows, neighbors, copies).tolist() == [1, 2, 3, 4, 6]


def test_more_rows_are_empty() -> None:
    found = with_rows(index_of(ROWS), 6)
    assert found.indptr.tolist() == [0, 3, 3, 7, 7, 7, 7]
    assert found.indptr.dtype == np.uint32
    assert found.indices.tolist() == index_of(ROWS).indices.tolist()
    assert with_rows(index_of(ROWS), 3).indptr.tolist() == [0, 3, 3, 7]


@pytest.mark.parametrize(("low", "high"), [(0, 3), (0, 1), (1, 2), (1, 3), (2, 3), (3, 3)])
def test_some_rows_are_an_index_of_these_alone(low: int, high: int) -> None:
    whole, expected = index_of(ROWS), index_of(ROWS[low:high])
    found = rows_between(whole, low, high)
    for name in ("indptr", "indices", "weight", "relation", "time", "edge"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    assert np.shares_memory(found.indices, whole.indices) == bool(len(found.indices))
    bare = rows_between(Csr(indptr=whole.indptr, indices=whole.indices), low, high)
    assert bare.weight is bare.relation is bare.time is bare.edge is None
