"""What the 4-node orbits of nodes and edges need: 4-cycles, 4-cliques, sides of triangles.

Nodes are numbered by descending degree; rows are sorted and hold both directions;
``pairs`` numbers the edges (``squares.number_edges``). Counts of an edge that several
threads reach are added to atomically.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.loops import claimed_rows
from graphsys.kernels.cpu.mining.four_cycles import place_of
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

CLIQUES, THIRD_DEGREES, SIDES = range(3)
"""Rows of what :func:`sum_edge_triangles` counts of every edge."""


@lean_jit
def count_edge_squares(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    pairs: Numbers,
    bounds: Offsets,
    counter: Offsets,
    counts: Numbers,
    squares: Offsets,
) -> None:
    """Count the 4-cycles of every edge, each at its smallest node.

    Args:
        pairs: Number of the edge of every entry ``[2 M]``.
        counts: Scratch, zeros, int32 ``[T, N]``; zeros again after.
        squares: Zeros; receives the counts ``[M]``.
    """
    count = counts[thread]
    for v in claimed_rows(bounds, counter):
        end = indptr[v + 1]
        first = place_of(indices, indptr[v], end, v)
        for e in range(first, end):
            x = np.int64(indices[e])
            for f in range(indptr[x + 1] - 1, indptr[x] - 1, -1):
                if np.int64(indices[f]) <= v:
                    break
                count[indices[f]] += 1
        for e in range(first, end):
            x = np.int64(indices[e])
            total = np.int64(0)
            for f in range(indptr[x + 1] - 1, indptr[x] - 1, -1):
                if np.int64(indices[f]) <= v:
                    break
                # Less the wedge over x itself; the rest close a 4-cycle over this edge.
                others = np.int64(count[indices[f]]) - 1
                if others:
                    total += others
                    atomic_add(squares, np.int64(pairs[f]), others)
            if total:
                atomic_add(squares, np.int64(pairs[e]), total)
        for e in range(first, end):
            x = np.int64(indices[e])
            for f in range(indptr[x + 1] - 1, indptr[x] - 1, -1):
                if np.int64(indices[f]) <= v:
                    break
                count[indices[f]] = 0


@lean_jit
def longest_prefixes(indptr: Offsets, indices: Numbers, lengths: Offsets) -> np.int64:
    """Return a bound of the edges among the smaller neighbors of one node.

    Args:
        lengths: Receives the number of smaller neighbors ``[N]``.
    """
    most = np.int64(0)
    for v in range(len(indptr) - 1):
        begin = indptr[v]
        lengths[v] = place_of(indices, begin, indptr[v + 1], v) - begin
        inner = np.int64(0)
        for i in range(lengths[v]):
            # Neighbors before the i-th are i, those it has are known: the smaller is the
            # bound.
            inner += min(i, lengths[indices[begin + i]])
        most = max(most, inner)
    return most


@lean_jit
def sum_edge_triangles(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    pairs: Numbers,
    triangles: Numbers,
    bounds: Offsets,
    counter: Offsets,
    places: Offsets,
    row_starts: Offsets,
    inner: Offsets,
    edge_sums: Offsets,
    flat: Offsets,
    tips: Offsets,
) -> None:
    """Count the 4-cliques of every edge and sum over its triangles, found at the largest.

    Args:
        pairs: Number of the edge of every entry ``[2 M]``.
        triangles: Triangles of every edge ``[M]``.
        places: Scratch, zeros ``[T, N]``; zeros again after.
        row_starts: Scratch ``[T, P + 1]``, P the most smaller neighbors.
        inner: Scratch ``[T, 2, L]``, L from :func:`longest_prefixes`.
        edge_sums: Scratch, zeros ``[T, P, 3]``; zeros again after.
        flat: Zeros ``[3 M]``; receives the 4-cliques of every edge, the sums of the
            third nodes' degrees, and of the triangles of the other two edges.
        tips: Zeros ``[N]``; receives the sums of the triangles of opposite edges.
    """
    place, starts = places[thread], row_starts[thread]
    nodes, numbers, sums = inner[thread, 0], inner[thread, 1], edge_sums[thread]
    for v in claimed_rows(bounds, counter):
        begin = indptr[v]
        num = place_of(indices, begin, indptr[v + 1], v) - begin
        if num < 2:
            continue
        for i in range(num):
            place[indices[begin + i]] = i + 1
        _list_inner(indptr, indices, pairs, begin, num, place, starts, nodes, numbers)
        for i in range(num):
            place[indices[begin + i]] = 0
        _sum_triangles(
            indptr,
            indices,
            pairs,
            triangles,
            v,
            num,
            starts,
            nodes,
            numbers,
            sums,
            flat,
            tips,
        )
        _count_cliques(num, starts, nodes, numbers, place, sums, flat)
        num_edges = len(triangles)
        for i in range(num):
            for k in range(3):
                # One atomic for an edge of v, where one for each triangle would meet at the
                # hubs.
                if sums[i, k]:
                    edge = np.int64(pairs[begin + i])
                    atomic_add(flat, k * num_edges + edge, sums[i, k])
                    sums[i, k] = 0


@lean_inline_jit
def _list_inner(
    indptr: Any,
    indices: Any,
    pairs: Any,
    begin: Any,
    num: Any,
    place: Any,
    starts: Any,
    nodes: Any,
    numbers: Any,
) -> None:
    """List the edges among ``num`` neighbors, each at its larger one, by position."""
    listed = np.int64(0)
    for i in range(num):
        starts[i] = listed
        row = np.int64(indices[begin + i])
        for f in range(indptr[row], indptr[row + 1]):
            if np.int64(indices[f]) >= row:
                break
            if place[indices[f]]:
                nodes[listed] = place[indices[f]] - 1
                numbers[listed] = pairs[f]
                listed += 1
    starts[num] = listed


@lean_inline_jit
def _sum_triangles(
    indptr: Any,
    indices: Any,
    pairs: Any,
    triangles: Any,
    v: Any,
    num: Any,
    starts: Any,
    nodes: Any,
    numbers: Any,
    sums: Any,
    flat: Any,
    tips: Any,
) -> None:
    """Add degrees and triangles of the triangles of ``v`` to their nodes and edges."""
    begin, num_edges = indptr[v], len(triangles)
    own = np.int64(0)
    for i in range(num):
        a = np.int64(indices[begin + i])
        of_a = np.int64(triangles[pairs[begin + i]])
        for k in range(starts[i], starts[i + 1]):
            j, edge = nodes[k], numbers[k]
            b = np.int64(indices[begin + j])
            of_b = np.int64(triangles[pairs[begin + j]])
            inner = np.int64(triangles[edge])
            own += inner
            atomic_add(tips, a, of_b)
            atomic_add(tips, b, of_a)
            atomic_add(flat, num_edges + edge, indptr[v + 1] - begin)
            atomic_add(flat, 2 * num_edges + edge, of_a + of_b)
            sums[i, THIRD_DEGREES] += indptr[b + 1] - indptr[b]
            sums[i, SIDES] += of_b + inner
            sums[j, THIRD_DEGREES] += indptr[a + 1] - indptr[a]
            sums[j, SIDES] += of_a + inner
    if own:
        atomic_add(tips, v, own)


@lean_inline_jit
def _count_cliques(
    num: Any, starts: Any, nodes: Any, numbers: Any, place: Any, sums: Any, flat: Any
) -> None:
    """Count the 4-cliques of one node with its smaller neighbors at all their edges."""
    for i in range(2, num):
        for k in range(starts[i], starts[i + 1]):
            # Plus one, so that 0 says that it is no neighbor of i.
            place[nodes[k]] = k + 1
        for k in range(starts[i], starts[i + 1]):
            j, of_pair = nodes[k], np.int64(0)
            for m in range(starts[j], starts[j + 1]):
                third = place[nodes[m]]
                if third:
                    of_pair += 1
                    sums[nodes[m], CLIQUES] += 1
                    atomic_add(flat, numbers[m], 1)
                    atomic_add(flat, numbers[third - 1], 1)
            if of_pair:
                sums[i, CLIQUES] += of_pair
                sums[j, CLIQUES] += of_pair
                atomic_add(flat, numbers[k], of_pair)
        for k in range(starts[i], starts[i + 1]):
            place[nodes[k]] = 0
