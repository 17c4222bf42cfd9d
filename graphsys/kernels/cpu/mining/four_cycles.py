"""Triangles of edges, 4-cycles and houses, by marks and by counts of wedges.

In all of these kernels nodes are numbered by descending degree, so that a smaller number
is a larger degree; rows are sorted, without loops and repetitions, and hold both
directions. A 4-cycle is found at its smallest node ``v``: the number ``c`` of wedges from
``v`` to a node over nodes larger than ``v`` gives ``c (c - 1) / 2`` of them, and all
wedges are O(sum over edges of the smaller degree).

Chiba, Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J. Comput. 14(1),
1985; Burkhardt, Harris, "Simple and efficient four-cycle counting on sparse graphs",
Theoretical Computer Science 1046, 2025.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.loops import claimed_rows
from graphsys.kernels.cpu.mining.big_counts import Sums, add_wide
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]
Marks = npt.NDArray[np.uint8]

PATHS, TRIANGLES, TAILED, DIAMONDS, SQUARES = range(5)
"""Places of the sums of :func:`count_small`."""


@lean_inline_jit
def place_of(indices: Any, begin: Any, end: Any, node: Any) -> Any:
    """Return the place of the first entry of a sorted row that is not below ``node``."""
    while begin < end:
        middle = (begin + end) >> 1
        if np.int64(indices[middle]) < node:
            begin = middle + 1
        else:
            end = middle
    return begin


@lean_jit
def count_small(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    bounds: Offsets,
    counter: Offsets,
    marks: Marks,
    counts: Numbers,
    sums: Sums,
) -> None:
    """Sum up what all 3- and 4-motifs but the 4-clique follow from.

    Args:
        marks: Scratch, zeros ``[T, N]``; zeros again after.
        counts: Scratch, zeros, int32 ``[T, N]``; zeros again after.
        sums: Zeros ``[T, 2 * 5]``; receives the sums over edges of the product of the
            degrees less 1, of triangles, of triangles times the degrees less 4, of pairs
            of triangles; and the 4-cycles.
    """
    mark, count, found = marks[thread], counts[thread], sums[thread]
    for v in claimed_rows(bounds, counter):
        begin, end = indptr[v], indptr[v + 1]
        first = place_of(indices, begin, end, v)
        for e in range(begin, end):
            mark[indices[e]] = 1
        for e in range(first, end):
            x = np.int64(indices[e])
            place, stop = indptr[x], indptr[x + 1]
            degree, triangles, squares = stop - place, np.int64(0), np.int64(0)
            while np.int64(indices[place]) < v:
                triangles += np.int64(mark[indices[place]])
                place += 1
            # Behind v itself, which stands in the row: it is the first entry that is not
            # smaller.
            for f in range(place + 1, stop):
                w = indices[f]
                triangles += np.int64(mark[w])
                # The wedges so far to the same end: each closes a 4-cycle with this one.
                squares += np.int64(count[w])
                count[w] += 1
            own = end - begin
            add_wide(found, PATHS, (own - 1) * (degree - 1))
            add_wide(found, TRIANGLES, triangles)
            add_wide(found, TAILED, triangles * max(own + degree - 4, 0))
            add_wide(found, DIAMONDS, triangles * (triangles - 1) // 2)
            add_wide(found, SQUARES, squares)
        for e in range(begin, end):
            mark[indices[e]] = 0
        for e in range(first, end):
            x = np.int64(indices[e])
            for f in range(indptr[x + 1] - 1, indptr[x] - 1, -1):
                if np.int64(indices[f]) <= v:
                    break
                count[indices[f]] = 0


@lean_jit
def count_edge_triangles(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    pairs: Numbers,
    bounds: Offsets,
    counter: Offsets,
    marks: Marks,
    triangles: Numbers,
) -> None:
    """Count the triangles of every edge.

    Args:
        pairs: Number of the edge of every entry (:func:`number_edges`).
        marks: Scratch, zeros ``[T, N]``; zeros again after.
        triangles: Receives the counts ``[M]``.
    """
    mark = marks[thread]
    for v in claimed_rows(bounds, counter):
        begin, end = indptr[v], indptr[v + 1]
        for e in range(begin, end):
            mark[indices[e]] = 1
        for e in range(place_of(indices, begin, end, v), end):
            x = indices[e]
            found = np.int64(0)
            for f in range(indptr[x], indptr[x + 1]):
                found += np.int64(mark[indices[f]])
            triangles[pairs[e]] = found
        for e in range(begin, end):
            mark[indices[e]] = 0


@lean_jit
def list_edge_triangles(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    pairs: Numbers,
    bounds: Offsets,
    counter: Offsets,
    marks: Marks,
    starts: Offsets,
    thirds: Numbers,
) -> None:
    """List the third nodes of the triangles of every edge, ascending.

    Args:
        pairs: Number of the edge of every entry.
        marks: Scratch, zeros ``[T, N]``; zeros again after.
        starts: Where the list of every edge begins ``[M + 1]``.
        thirds: Receives the lists.
    """
    mark = marks[thread]
    for v in claimed_rows(bounds, counter):
        begin, end = indptr[v], indptr[v + 1]
        for e in range(begin, end):
            mark[indices[e]] = 1
        for e in range(place_of(indices, begin, end, v), end):
            x = indices[e]
            place = starts[pairs[e]]
            for f in range(indptr[x], indptr[x + 1]):
                if mark[indices[f]]:
                    thirds[place] = indices[f]
                    place += 1
        for e in range(begin, end):
            mark[indices[e]] = 0


@lean_jit
def number_edges(
    indptr: Offsets, indices: Numbers, cursor: Offsets, pairs: Numbers
) -> None:
    """Number the edges in the order of their smaller node, both entries alike.

    Args:
        cursor: First place of every row ``[N]``; advanced.
        pairs: Receives the number of every entry ``[2 M]``.
    """
    number = 0
    for v in range(len(indptr) - 1):
        for e in range(place_of(indices, indptr[v], indptr[v + 1], v), indptr[v + 1]):
            x = indices[e]
            pairs[e] = number
            # Nodes come in order, so that the larger end's entries are met in the order of
            # its row.
            pairs[cursor[x]] = number
            cursor[x] += 1
            number += 1


@lean_jit
def count_squares(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    bounds: Offsets,
    counter: Offsets,
    counts: Numbers,
    sums: Sums,
) -> None:
    """Count the 4-cycles.

    Args:
        counts: Scratch, zeros, int32 ``[T, N]``; zeros again after.
        sums: Zeros ``[T, 2]``; receives the count.
    """
    count, found = counts[thread], sums[thread]
    for v in claimed_rows(bounds, counter):
        end = indptr[v + 1]
        first = place_of(indices, indptr[v], end, v)
        for e in range(first, end):
            x = np.int64(indices[e])
            squares = np.int64(0)
            for f in range(indptr[x + 1] - 1, indptr[x] - 1, -1):
                w = np.int64(indices[f])
                if w <= v:
                    break
                squares += np.int64(count[w])
                count[w] += 1
            add_wide(found, 0, squares)
        for e in range(first, end):
            x = np.int64(indices[e])
            for f in range(indptr[x + 1] - 1, indptr[x] - 1, -1):
                if np.int64(indices[f]) <= v:
                    break
                count[indices[f]] = 0


@lean_jit
def sum_squares(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    triangles: Numbers,
    bounds: Offsets,
    counter: Offsets,
    counts: Numbers,
    sums: Sums,
) -> None:
    """Sum up, over the edges of every 4-cycle, the triangles of the edge.

    Args:
        triangles: Triangles of the edge of every entry ``[2 M]``.
        counts: Scratch, zeros, int32 ``[T, N]``; zeros again after.
        sums: Zeros ``[T, 2]``; receives the sum.
    """
    count, found = counts[thread], sums[thread]
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
            own, wedges, others = np.int64(triangles[e]), np.int64(0), np.int64(0)
            for f in range(indptr[x + 1] - 1, indptr[x] - 1, -1):
                if np.int64(indices[f]) <= v:
                    break
                # Less the wedge over x itself.
                squares = np.int64(count[indices[f]]) - 1
                wedges += squares
                others += squares * np.int64(triangles[f])
            add_wide(found, 0, own * wedges)
            add_wide(found, 0, others)
        for e in range(first, end):
            x = np.int64(indices[e])
            for f in range(indptr[x + 1] - 1, indptr[x] - 1, -1):
                if np.int64(indices[f]) <= v:
                    break
                count[indices[f]] = 0
