"""Finding the edge back: which entry of sorted rows is the reverse of each entry."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import inline_jit, jit


@inline_jit
def _order(
    weight: npt.NDArray[Any], begin: Any, count: Any, order: npt.NDArray[np.int64]
) -> None:
    """Write the places of ``count`` entries in the order of their weights; stable."""
    for i in range(count):
        place = begin + i
        j = i
        if len(weight):
            while j > 0 and weight[order[j - 1]] > weight[place]:
                order[j] = order[j - 1]
                j -= 1
        order[j] = place


@jit
def match_entries(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    weight: npt.NDArray[Any],
    other_indptr: npt.NDArray[Any],
    other_indices: npt.NDArray[Any],
    other_weight: npt.NDArray[Any],
    cursor: npt.NDArray[np.int64],
    base: int,
    places: npt.NDArray[Any],
) -> None:
    """Match entry (v, u) of some rows with entry (u, v) of others, or of the same.

    Several entries (v, u) are matched in the order of their weights; those left over have
    no partner.

    Args:
        indices: Neighbors, sorted within each row ``[E]``.
        weight: Weights ``[E]``, or length 0.
        other_indptr: Offsets of the other rows ``[N + 1]``.
        other_indices: Their neighbors, sorted ``[F]``.
        other_weight: Their weights ``[F]``, or length 0.
        cursor: First place of every other row ``[N]``; advanced.
        base: Added to every place.
        places: Receives the place of each entry's partner ``[E]``; unmatched ones stay.

    Complexity:
        O(E + F), and m^2 for m entries of the same pair whose weights differ.
    """
    mine = np.empty(16, dtype=np.int64)
    theirs = np.empty(16, dtype=np.int64)
    for v in range(len(indptr) - 1):
        begin, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
        while begin < end:
            u = np.int64(indices[begin])
            count = np.int64(1)
            while begin + count < end and indices[begin + count] == u:
                count += 1
            # rows v are visited in order, so row u is read once from left to right
            place, last = cursor[u], np.int64(other_indptr[u + 1])
            while place < last and other_indices[place] < v:
                place += 1
            found = np.int64(0)
            while place + found < last and other_indices[place + found] == v:
                found += 1
            cursor[u] = place
            if max(count, found) > len(mine):
                mine = np.empty(2 * max(count, found), dtype=np.int64)
                theirs = np.empty(2 * max(count, found), dtype=np.int64)
            _order(weight, begin, count, mine)
            _order(other_weight, place, found, theirs)
            for k in range(min(count, found)):
                places[mine[k]] = theirs[k] + base
            begin += count
