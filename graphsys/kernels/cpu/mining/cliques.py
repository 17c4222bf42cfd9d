"""Cliques of 3 to 5 nodes, by bitmaps of the larger-degree neighborhoods.

Nodes are numbered by descending degree. Every clique is found at its largest number
``v``: the neighbors of ``v`` with smaller numbers are at most ``sqrt(2 M)``, and the edges
among them are the bits of a small matrix whose rows are intersected by words.

Chiba, Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J. Comput. 14(1), 1985.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.bits import lowest_bit, num_bits
from graphsys.kernels.cpu.loops import claimed_rows
from graphsys.kernels.cpu.mining.big_counts import Sums, add_wide
from graphsys.kernels.cpu.mining.four_cycles import place_of
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]
Words = npt.NDArray[np.uint64]

TRIANGLES, CLIQUES_4, CLIQUES_5 = range(3)
"""Places of the sums of :func:`count_cliques`."""


@lean_jit
def longest_prefix(indptr: Offsets, indices: Numbers) -> np.int64:
    """Return how many smaller neighbors a node has at most."""
    longest = np.int64(0)
    for v in range(len(indptr) - 1):
        begin = indptr[v]
        longest = max(longest, place_of(indices, begin, indptr[v + 1], v) - begin)
    return longest


@lean_jit
def prefix_lengths(indptr: Offsets, indices: Numbers, lengths: Offsets) -> None:
    """Count the smaller neighbors of every node.

    Args:
        lengths: Receives the counts ``[N]``.
    """
    for v in range(len(indptr) - 1):
        lengths[v] = place_of(indices, indptr[v], indptr[v + 1], v) - indptr[v]


@lean_jit
def count_cliques(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    size: int,
    bounds: Offsets,
    counter: Offsets,
    places: Numbers,
    bitmaps: Words,
    common: Words,
    sums: Sums,
) -> None:
    """Count triangles, 4-cliques and 5-cliques.

    Args:
        size: The largest cliques that are counted, 3 to 5.
        places: Scratch, zeros, int32 ``[T, N]``; zeros again after.
        bitmaps: Scratch ``[T, P, ceil(P / 64)]``, P from :func:`longest_prefix`.
        common: Scratch ``[T, ceil(P / 64)]``.
        sums: Zeros ``[T, 2 * 3]``; receives the counts.
    """
    place, rows, both, found = places[thread], bitmaps[thread], common[thread], sums[thread]
    for v in claimed_rows(bounds, counter):
        begin = indptr[v]
        num = place_of(indices, begin, indptr[v + 1], v) - begin
        if num < 2:
            continue
        for i in range(num):
            place[indices[begin + i]] = i + 1
        triangles = _fill_rows(indptr, indices, begin, num, place, rows)
        add_wide(found, TRIANGLES, triangles)
        if size > 3 and triangles > 2:
            _count_within(num, size, rows, both, found)
        for i in range(num):
            place[indices[begin + i]] = 0


@lean_inline_jit
def _fill_rows(
    indptr: Any, indices: Any, begin: Any, num: Any, place: Any, rows: Any
) -> Any:
    """Write the edges among ``num`` neighbors as bits; return how many there are."""
    edges = np.int64(0)
    for i in range(num):
        row = np.int64(indices[begin + i])
        # Rows are triangular: bits of smaller positions alone are set, looked at and
        # cleared.
        for word in range((i + 63) >> 6):
            rows[i, word] = np.uint64(0)
        for f in range(indptr[row], indptr[row + 1]):
            if np.int64(indices[f]) >= row:
                break
            j = np.int64(place[indices[f]])
            if j:
                bit = np.uint64(j - 1)
                rows[i, bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
                edges += 1
    return edges


@lean_inline_jit
def _count_within(num: Any, size: Any, rows: Any, both: Any, found: Any) -> None:
    """Count the triangles among ``num`` neighbors, and the 4-cliques where wanted."""
    for i in range(2, num):
        triangles, cliques = np.int64(0), np.int64(0)
        for word in range((i + 63) >> 6):
            left = rows[i, word]
            while left:
                j = (np.int64(word) << 6) + lowest_bit(left)
                left &= left - np.uint64(1)
                # What both have before j: each triangle is counted at its two larger
                # positions.
                used = (j + 63) >> 6
                for k in range(used):
                    shared = rows[i, k] & rows[j, k]
                    both[k] = shared
                    triangles += num_bits(shared)
                if size > 4:
                    for k in range(used):
                        rest = both[k]
                        while rest:
                            third = (np.int64(k) << 6) + lowest_bit(rest)
                            rest &= rest - np.uint64(1)
                            for m in range((third + 63) >> 6):
                                cliques += num_bits(both[m] & rows[third, m])
        add_wide(found, CLIQUES_4, triangles)
        add_wide(found, CLIQUES_5, cliques)
