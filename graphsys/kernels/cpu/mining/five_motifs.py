"""What the counts of all connected 5-motifs need beyond degrees, triangles and cliques.

Nodes are numbered by descending degree; rows are sorted and hold both directions;
``pairs`` numbers the edges (``squares.number_edges``), ``triangles`` counts those of every
edge, ``thirds`` lists them from ``starts`` on (``squares.list_edge_triangles``).

Which few subgraphs suffice is the finding of Pinar, Seshadhri, Vishal, "ESCAPE: efficiently
counting all 5-vertex subgraphs", WWW 2017; the sums here are derived anew.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.loops import claimed_rows
from graphsys.kernels.cpu.mining.big_counts import Sums, add_wide
from graphsys.kernels.cpu.mining.four_cycles import place_of
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

TWICE_SQUARES, BANNERS, BICLIQUES, TWICE_HOUSES, CHORDS = range(5)
"""Places of the sums of :func:`sum_pairs`."""
GEMS, KITES, TWICE_WHEELS, TAILED, HATTED, NEAR_CLIQUES, CLIQUES_4 = range(7)
"""Places of the sums of :func:`sum_neighborhoods`."""


@lean_jit
def sum_pentagons(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    bounds: Offsets,
    counter: Offsets,
    counts: Numbers,
    places: Offsets,
    touched: Numbers,
    sums: Sums,
) -> None:
    """Count closed walks that become the 5-cycles: the first sum less the second.

    At its smallest node ``v`` a 5-cycle is an edge ``b c`` and a wedge from ``v`` to each
    end. The first sum takes all pairs of wedges but those over ``b`` or ``c``, the second
    those over one node: a triangle with a tail to a node smaller than all three.

    Args:
        counts: Scratch, zeros, int32 ``[T, N]``; zeros again after.
        places: Scratch, zeros ``[T, N]``; zeros again after.
        touched: Scratch ``[T, N]``.
        sums: Zeros ``[T, 2 * 2]``; receives the sums.
    """
    count, place, reached = counts[thread], places[thread], touched[thread]
    found = sums[thread]
    for v in claimed_rows(bounds, counter):
        begin, end = indptr[v], indptr[v + 1]
        first = place_of(indices, begin, end, v)
        for e in range(first, end):
            a = indices[e]
            # Plus one, so that 0 says that a is no neighbor behind v.
            place[a] = place_of(indices, indptr[a], indptr[a + 1], v) + 1
        num = np.int64(0)
        for e in range(first, end):
            a = np.int64(indices[e])
            below = first - begin + place[a] - 1 - indptr[a]
            for f in range(place[a], indptr[a + 1]):
                b = np.int64(indices[f])
                if count[b] == 0:
                    reached[num] = b
                    num += 1
                count[b] += 1
                if b > a and place[b]:
                    add_wide(found, 1, below + place[b] - 1 - indptr[b])
        _close_wedges(indptr, indices, count, place, reached, num, found)
        for k in range(num):
            count[reached[k]] = 0
        for e in range(first, end):
            place[indices[e]] = 0


@lean_inline_jit
def _close_wedges(
    indptr: Any,
    indices: Any,
    count: Any,
    place: Any,
    reached: Any,
    num: Any,
    found: Any,
) -> None:
    """Sum up the products of wedges to both ends of edges."""
    for k in range(num):
        b = np.int64(reached[k])
        wedges = np.int64(count[b])
        near = np.int64(place[b] != 0)
        total = np.int64(0)
        # Backwards: larger nodes are at the end, so that the walk stops at the first
        # smaller one.
        for f in range(indptr[b + 1] - 1, indptr[b] - 1, -1):
            c = np.int64(indices[f])
            if c < b:
                break
            others = np.int64(count[c])
            if others:
                total += (wedges - np.int64(place[c] != 0)) * (others - near)
        add_wide(found, 0, total)


@lean_jit
def sum_pairs(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    stops: Offsets,
    pairs: Numbers,
    triangles: Numbers,
    starts: Offsets,
    thirds: Numbers,
    bounds: Offsets,
    counter: Offsets,
    counts: Numbers,
    marks: npt.NDArray[np.uint8],
    sums: Sums,
) -> None:
    """Sum up what follows from the number of common neighbors of two nodes.

    Args:
        stops: Ends of the rows without neighbors of degree 1 ``[N]``: such are in no
            cycle, and in front of hubs too many for pairs of them.
        pairs: Number of the edge of every entry ``[2 M]``.
        triangles: Triangles of every edge ``[M]``.
        starts: Where the triangles of every edge begin ``[M + 1]``.
        thirds: Third nodes of the triangles.
        counts: Scratch, zeros, int32 ``[T, N]``; zeros again after.
        marks: Scratch, zeros ``[T, N]``; zeros again after.
        sums: Zeros ``[T, 2 * 5]``; receives twice the 4-cycles; 4-cycles with a
            further edge at one node; bicliques of 2 and 3 nodes; twice the pairs of a
            4-cycle and a triangle at one edge of it; common neighbors beyond the chord's
            ends of the tips of diamonds.
    """
    count, mark, found = counts[thread], marks[thread], sums[thread]
    for u in claimed_rows(bounds, counter):
        begin, end = indptr[u], indptr[u + 1]
        # A 4-cycle takes two neighbors.
        if end - begin < 2:
            continue
        for e in range(begin, end):
            mark[indices[e]] = 1
            _count_wedges(indptr, indices, stops, u, indices[e], count, found)
        for e in range(begin, end):
            x = np.int64(indices[e])
            # A second pass over the rows: counts of wedges are whole only behind the first.
            _sum_houses(
                indptr,
                indices,
                stops,
                pairs,
                triangles,
                u,
                x,
                triangles[pairs[e]],
                count,
                found,
            )
            for f in range(stops[x] - 1, indptr[x] - 1, -1):
                y = np.int64(indices[f])
                if y < x:
                    break
                if mark[y]:
                    edge, total = np.int64(pairs[f]), np.int64(0)
                    for k in range(starts[edge + 1] - 1, starts[edge] - 1, -1):
                        if np.int64(thirds[k]) <= u:
                            break
                        total += np.int64(count[thirds[k]]) - 2
                    add_wide(found, CHORDS, total)
        for e in range(begin, end):
            x = np.int64(indices[e])
            mark[x] = 0
            for f in range(stops[x] - 1, indptr[x] - 1, -1):
                if np.int64(indices[f]) <= u:
                    break
                count[indices[f]] = 0


@lean_inline_jit
def _count_wedges(
    indptr: Any, indices: Any, stops: Any, u: Any, x: Any, count: Any, found: Any
) -> None:
    """Count the wedges from ``u`` over ``x`` to larger nodes, and what they close."""
    squares, banners, bicliques = np.int64(0), np.int64(0), np.int64(0)
    degree = indptr[u + 1] - indptr[u]
    for f in range(stops[x] - 1, indptr[x] - 1, -1):
        w = np.int64(indices[f])
        if w <= u:
            break
        before = np.int64(count[w])
        count[w] += 1
        squares += before
        banners += before * (degree + indptr[w + 1] - indptr[w] - 4)
        bicliques += before * (before - 1) // 2
    add_wide(found, TWICE_SQUARES, squares)
    add_wide(found, BANNERS, banners)
    add_wide(found, BICLIQUES, bicliques)


@lean_inline_jit
def _sum_houses(
    indptr: Any,
    indices: Any,
    stops: Any,
    pairs: Any,
    triangles: Any,
    u: Any,
    x: Any,
    own: Any,
    count: Any,
    found: Any,
) -> None:
    """Sum up the triangles of both edges of the wedges over ``x`` that 4-cycles have."""
    squares, others = np.int64(0), np.int64(0)
    for f in range(stops[x] - 1, indptr[x] - 1, -1):
        w = np.int64(indices[f])
        if w <= u:
            break
        closed = np.int64(count[w]) - 1
        squares += closed
        others += closed * np.int64(triangles[pairs[f]])
    add_wide(found, TWICE_HOUSES, squares * np.int64(own))
    add_wide(found, TWICE_HOUSES, others)


@lean_jit
def sum_neighborhoods(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    pairs: Numbers,
    starts: Offsets,
    thirds: Numbers,
    bounds: Offsets,
    counter: Offsets,
    counts: Numbers,
    places: Offsets,
    sums: Sums,
) -> None:
    """Sum up what follows from wedges between the neighbors of one node.

    Args:
        pairs: Number of the edge of every entry ``[2 M]``.
        starts: Where the triangles of every edge begin ``[M + 1]``.
        thirds: Third nodes of the triangles.
        counts: Scratch, zeros, int32 ``[T, N]``; zeros again after.
        places: Scratch, zeros ``[T, N]``; zeros again after.
        sums: Zeros ``[T, 2 * 7]``; receives, over all nodes ``v`` and triangles
            ``v a c``: products of the further triangles of both edges at ``v``; triangles
            of one times the further degree of the other's end; 4-cycles around ``v``
            twice; and, weighted by the 4-cliques of the triangle, further degrees of
            ``v``, further triangles of both edges, further 4-cliques, and 1.
    """
    count, place, found = counts[thread], places[thread], sums[thread]
    for v in claimed_rows(bounds, counter):
        begin, end = indptr[v], indptr[v + 1]
        for e in range(begin, end):
            # Plus one, so that 0 says that it is no neighbor.
            place[indices[e]] = e + 1
        for e in range(begin, end):
            a, edge = np.int64(indices[e]), np.int64(pairs[e])
            wheels = np.int64(0)
            for k in range(starts[edge], starts[edge + 1]):
                other = np.int64(pairs[place[thirds[k]] - 1])
                for m in range(starts[other + 1] - 1, starts[other] - 1, -1):
                    c = np.int64(thirds[m])
                    if c <= a:
                        break
                    wheels += np.int64(count[c])
                    count[c] += 1
            add_wide(found, TWICE_WHEELS, wheels)
            _sum_triangles(indptr, pairs, starts, thirds, v, a, edge, count, place, found)
            for k in range(starts[edge], starts[edge + 1]):
                other = np.int64(pairs[place[thirds[k]] - 1])
                for m in range(starts[other + 1] - 1, starts[other] - 1, -1):
                    if np.int64(thirds[m]) <= a:
                        break
                    count[thirds[m]] = 0
        for e in range(begin, end):
            place[indices[e]] = 0


@lean_inline_jit
def _sum_triangles(
    indptr: Any,
    pairs: Any,
    starts: Any,
    thirds: Any,
    v: Any,
    a: Any,
    edge: Any,
    count: Any,
    place: Any,
    found: Any,
) -> None:
    """Sum over the triangles ``v a c`` with ``a < c``, whose 4-cliques are counted."""
    own = starts[edge + 1] - starts[edge]
    degree, a_degree = indptr[v + 1] - indptr[v], indptr[a + 1] - indptr[a]
    for k in range(starts[edge + 1] - 1, starts[edge] - 1, -1):
        c = np.int64(thirds[k])
        if c < a:
            break
        other = np.int64(pairs[place[c] - 1])
        num = starts[other + 1] - starts[other]
        cliques = np.int64(count[c])
        add_wide(found, GEMS, (own - 1) * (num - 1))
        further = (own - 1) * (indptr[c + 1] - indptr[c] - 2) + (num - 1) * (a_degree - 2)
        add_wide(found, KITES, further)
        add_wide(found, TAILED, cliques * max(degree - 3, 0))
        add_wide(found, HATTED, cliques * max(own + num - 4, 0))
        add_wide(found, NEAR_CLIQUES, cliques * (cliques - 1) // 2)
        add_wide(found, CLIQUES_4, cliques)
