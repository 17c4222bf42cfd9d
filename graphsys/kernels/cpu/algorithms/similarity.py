"""Scores of node pairs from their common neighbors, in the simple undirected graph.

Each common neighbor adds an integer: 1, or a weight in units of 2**-40. Integers add up
to the same in any order, so scores and ties do not depend on how nodes are numbered.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.jit import inline_jit, jit


@inline_jit
def _score(shared: Any, degree: Any, other_degree: Any, unit: Any) -> Any:
    """Divide the shared part by the union (a ratio) or by the unit of the weights."""
    if unit == 0.0:
        return shared / (degree + other_degree - shared)
    return shared / unit


@jit
def pair_scores(
    thread: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    gains: npt.NDArray[np.int64],
    unit: float,
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    counter: npt.NDArray[np.int64],
    out: npt.NDArray[np.float64],
) -> None:
    """Score given pairs by merging their rows; the longer row is searched if far longer.

    Args:
        begins: Where each row of the simple undirected graph begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Sorted neighbors ``[E]``.
        gains: What each common neighbor adds, int64 ``[N]``.
        unit: Divide by this; 0: by the size of the union of both rows.
        left: One node of every pair ``[P]``.
        right: The other node ``[P]``.
        out: Receives the scores, float64 ``[P]``; 0 for two nodes without neighbors.
    """
    block = 64
    for pair in claimed_range(0, len(left), block, counter):
        u, v = np.int64(left[pair]), np.int64(right[pair])
        if ends[u] - begins[u] > ends[v] - begins[v]:
            u, v = v, u
        a, a_end = np.int64(begins[u]), np.int64(ends[u])
        b, b_end = np.int64(begins[v]), np.int64(ends[v])
        degree, other_degree = a_end - a, b_end - b
        shared = np.int64(0)
        # A search jumps through memory, a merge reads on: only far longer rows are worth
        # it.
        if other_degree > 32 * degree:
            row = indices[b:b_end]
            for k in range(a, a_end):
                place = np.searchsorted(row, indices[k])
                if place < len(row) and row[place] == indices[k]:
                    shared += gains[indices[k]]
        else:
            while a < a_end and b < b_end:
                if indices[a] < indices[b]:
                    a += 1
                elif indices[a] > indices[b]:
                    b += 1
                else:
                    shared += gains[indices[a]]
                    a += 1
                    b += 1
        score = 0.0
        if degree + other_degree > 0:
            score = _score(shared, degree, other_degree, unit)
        out[pair] = score


@inline_jit
def _is_before(score: Any, place: Any, other_score: Any, other_place: Any) -> Any:
    return score > other_score or (score == other_score and place < other_place)


@inline_jit
def _sift_down(scores: Any, places: Any, nodes: Any, size: Any, top: Any) -> None:
    """Restore a heap whose root is the last of the kept entries."""
    while True:
        # The worst of the kept is at the root, where a better one replaces it.
        child = 2 * top + 1
        if child >= size:
            return
        if child + 1 < size and _is_before(
            scores[child], places[child], scores[child + 1], places[child + 1]
        ):
            child += 1
        if _is_before(scores[child], places[child], scores[top], places[top]):
            return
        scores[top], scores[child] = scores[child], scores[top]
        places[top], places[child] = places[child], places[top]
        nodes[top], nodes[child] = nodes[child], nodes[top]
        top = child


@inline_jit
def _best(scores: Any, places: Any, nodes: Any, size: Any, keep: Any) -> Any:
    """Move the ``keep`` first entries by (falling score, place) to the front, sorted."""
    kept = min(size, keep)
    for top in range(kept // 2 - 1, -1, -1):
        _sift_down(scores, places, nodes, kept, top)
    for k in range(kept, size):
        if _is_before(scores[k], places[k], scores[0], places[0]):
            scores[0], places[0], nodes[0] = scores[k], places[k], nodes[k]
            _sift_down(scores, places, nodes, kept, 0)
    for last in range(kept - 1, 0, -1):
        scores[0], scores[last] = scores[last], scores[0]
        places[0], places[last] = places[last], places[0]
        nodes[0], nodes[last] = nodes[last], nodes[0]
        _sift_down(scores, places, nodes, last, 0)
    return kept


@jit
def rows_within_two_hops(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    gains: npt.NDArray[np.int64],
    unit: float,
    ranks: npt.NDArray[Any],
    low: int,
    high: int,
    threshold: float,
    keep: int,
    is_chosen: npt.NDArray[np.bool_],
    sums: npt.NDArray[np.int64],
    touched: npt.NDArray[Any],
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64]]:
    """Score the nodes of some rows with all nodes that share a neighbor with them.

    Args:
        begins: Where each row of the simple undirected graph begins ``[N]``.
        ends: Where it ends ``[N]``.
        gains: What each common neighbor adds, int64 ``[N]``, all above 0.
        unit: Divide by this; 0: by the size of the union of both rows.
        ranks: Rank of every node's id; breaks ties ``[N]``; empty for 0, 1, 2 ...
        low: First row.
        high: End of the rows.
        threshold: Smallest score to keep.
        keep: Keep this many of the best of each row, ties to the smaller rank; 0 keeps
            all, each unordered pair once, in the row of the smaller rank.
        is_chosen: Whether pairs may have a node ``[N]``; empty: all.
        sums: Scratch of zeros, int64 ``[N]``; left as zeros.
        touched: Scratch ``[N]``.

    Returns:
        Row, other node and score of every pair kept, row after row.
    """
    size = 1024
    rows = np.empty(size, dtype=touched.dtype)
    others = np.empty(size, dtype=touched.dtype)
    values = np.empty(size, dtype=np.float64)
    scores = np.empty(256, dtype=np.float64)
    places = np.empty(256, dtype=np.int64)
    nodes = np.empty(256, dtype=touched.dtype)
    filled = 0
    for u in range(low, high):
        if len(is_chosen) and not is_chosen[u]:
            continue
        place = np.int64(ranks[u]) if len(ranks) else u
        num_touched = 0
        for k in range(np.int64(begins[u]), np.int64(ends[u])):
            w = np.int64(indices[k])
            for j in range(np.int64(begins[w]), np.int64(ends[w])):
                v = indices[j]
                # Gains are above 0, so that a sum of 0 says that v was not met yet.
                if sums[v] == 0:
                    touched[num_touched] = v
                    num_touched += 1
                sums[v] += gains[w]
        if num_touched > len(scores):
            scores = np.empty(2 * num_touched, dtype=np.float64)
            places = np.empty(2 * num_touched, dtype=np.int64)
            nodes = np.empty(2 * num_touched, dtype=touched.dtype)
        degree = np.int64(ends[u]) - np.int64(begins[u])
        num_found = 0
        for k in range(num_touched):
            v = np.int64(touched[k])
            other_degree = np.int64(ends[v]) - np.int64(begins[v])
            score = _score(sums[v], degree, other_degree, unit)
            # Cleared in passing, also where the pair is dropped: the next row expects
            # zeros.
            sums[v] = 0
            other_place = np.int64(ranks[v]) if len(ranks) else v
            if v == u or score < threshold or (keep == 0 and other_place < place):
                continue
            if len(is_chosen) and not is_chosen[v]:
                continue
            scores[num_found] = score
            places[num_found] = other_place
            nodes[num_found] = v
            num_found += 1
        if keep > 0:
            num_found = _best(scores, places, nodes, num_found, keep)
        if filled + num_found > size:
            size = 2 * (filled + num_found)
            # Doubled, so that all copies together are O(result).
            rows, others, values = (
                _grown(rows, size, filled),
                _grown(others, size, filled),
                _grown(values, size, filled),
            )
        for k in range(num_found):
            rows[filled] = u
            others[filled] = nodes[k]
            values[filled] = scores[k]
            filled += 1
    return rows[:filled].copy(), others[:filled].copy(), values[:filled].copy()


@inline_jit
def _grown(array: Any, size: Any, filled: Any) -> Any:
    longer = np.empty(size, dtype=array.dtype)
    longer[:filled] = array[:filled]
    return longer
