"""Triangles of every node, by marks on a graph oriented towards high degrees.

Nodes are relabeled by descending degree (ties by number), and every edge points from the
larger label to the smaller: ``plus`` rows hold a node's smaller neighbors, sorted, and
``minus`` rows its larger ones. For every node ``v`` the row ``plus[v]`` is marked in a
bitmap; then for every ``u`` in ``minus[v]`` the part of ``plus[u]`` in front of ``v`` is
looked up in it: every hit ``w`` is a triangle ``w < v < u``, found once. That looks up
every pair of neighbors of larger degree once: on kron20 1.2e9 lookups, where marking
``u`` and scanning ``plus[v]`` takes 4.4e9. Hubs have small labels, so bitmap and counters
stay in the cache.

Chiba, Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J. Comput. 14(1),
1985 (orientation and marks); Ortmann, Brandes, "Triangle listing algorithms: back from the
diversion", ALENEX 2014 (the variant: L+n with prefixes).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.bits import Words, clear_bit, set_bit
from graphsys.kernels.cpu.loops import claimed_range, claimed_rows
from graphsys.kernels.jit import lean_jit

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]


@lean_jit
def order_by_degree(
    degree: Offsets, starts: Offsets, label: Numbers, node: Numbers
) -> None:
    """Label nodes by descending degree, ties by number (a counting sort).

    Args:
        degree: Distinct neighbors of every node ``[N]``.
        starts: Zeros, int64 ``[largest degree + 2]``; destroyed.
        label: Receives the label of every node ``[N]``.
        node: Receives the node of every label ``[N]``.
    """
    num_nodes = len(degree)
    top = len(starts) - 2
    for v in range(num_nodes):
        # Falling degrees: the key is what is missing to the largest.
        starts[top - degree[v] + 1] += 1
    for k in range(1, len(starts)):
        starts[k] += starts[k - 1]
    for v in range(num_nodes):
        key = top - degree[v]
        label[v] = starts[key]
        node[starts[key]] = v
        starts[key] += 1


@lean_jit
def count_larger(
    thread: int,
    begins: Numbers,
    ends: Numbers,
    indices: Numbers,
    other_begins: Numbers,
    other_ends: Numbers,
    other_indices: Numbers,
    label: Numbers,
    bounds: Offsets,
    counter: Offsets,
    degree: Offsets,
    plus_counts: Offsets,
    minus_counts: Offsets,
) -> None:
    """Count the neighbors of every node whose labels are larger, and smaller.

    Args:
        begins: Where each sorted row begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Neighbors; loops and repetitions do not count.
        other_begins: The same of rows of the other direction; empty where there are none.
        other_ends: See ``other_begins``.
        other_indices: See ``other_begins``.
        label: Label of every node ``[N]``.
        degree: Distinct neighbors of every node ``[N]``.
        plus_counts: Receives at ``label + 1`` the smaller ones ``[N + 1]``.
        minus_counts: Receives at ``label + 1`` the larger ones ``[N + 1]``.
    """
    has_other = len(other_begins) > 0
    # chunk by chunk: a loop of a chunk's own nodes is a quarter faster here
    for chunk in claimed_range(0, len(bounds) - 1, 1, counter):
        for v in range(bounds[chunk], bounds[chunk + 1]):
            own = np.int64(label[v])
            a, a_end = np.int64(begins[v]), np.int64(ends[v])
            b, b_end = np.int64(0), np.int64(0)
            if has_other:
                b, b_end = np.int64(other_begins[v]), np.int64(other_ends[v])
            last, larger = np.int64(v), np.int64(0)
            while a < a_end or b < b_end:
                if b >= b_end or (a < a_end and indices[a] <= other_indices[b]):
                    node = np.int64(indices[a])
                    a += 1
                else:
                    node = np.int64(other_indices[b])
                    b += 1
                if node != last and node != v:
                    larger += np.int64(label[node]) > own
                last = node
            plus_counts[own + 1] = degree[v] - larger
            minus_counts[own + 1] = larger


@lean_jit
def fill_minus(
    thread: int,
    begins: Numbers,
    ends: Numbers,
    indices: Numbers,
    other_begins: Numbers,
    other_ends: Numbers,
    other_indices: Numbers,
    label: Numbers,
    node: Numbers,
    bounds: Offsets,
    counter: Offsets,
    minus_indptr: Offsets,
    minus: Numbers,
    values: Numbers,
    minus_values: Numbers,
) -> None:
    """Write the larger neighbors of every label, in any order.

    Args:
        begins: See :func:`count_larger`, as for the next five.
        ends: Where each row ends.
        other_begins: Where each row of the other direction begins.
        other_ends: Where it ends.
        other_indices: Neighbors of the other direction.
        label: Label of every node ``[N]``.
        node: Node of every label ``[N]``.
        minus_indptr: Row offsets ``[N + 1]``.
        minus: Receives the labels of the neighbors.
        values: Value of every entry of ``indices``, where there are no other rows, or has
            length 0.
        minus_values: Receives them in the order of ``minus``.
    """
    has_values, has_other = len(values) > 0, len(other_begins) > 0
    for k in claimed_rows(bounds, counter):
        place = minus_indptr[k]
        if place == minus_indptr[k + 1]:
            continue
        v = np.int64(node[k])
        a, a_end = np.int64(begins[v]), np.int64(ends[v])
        b, b_end = np.int64(0), np.int64(0)
        if has_other:
            b, b_end = np.int64(other_begins[v]), np.int64(other_ends[v])
        last = v
        while a < a_end or b < b_end:
            if b >= b_end or (a < a_end and indices[a] <= other_indices[b]):
                found = np.int64(indices[a])
                a += 1
            else:
                found = np.int64(other_indices[b])
                b += 1
            if found != last and found != v and np.int64(label[found]) > k:
                minus[place] = label[found]
                if has_values:
                    minus_values[place] = values[a - 1]
                place += 1
            last = found


@lean_jit
def fill_plus(
    thread: int,
    minus_indptr: Offsets,
    minus: Numbers,
    bounds: Offsets,
    counter: Offsets,
    cursor: Offsets,
    plus: Numbers,
    minus_values: Numbers,
    plus_values: Numbers,
) -> None:
    """Turn larger neighbors into smaller ones; visiting labels in order sorts the rows.

    Each thread takes a range of rows to be written and looks for their entries among all,
    so that a range is written to memory that stays near, and none is shared.

    Args:
        minus_indptr: Row offsets ``[N + 1]``.
        minus: Larger neighbors.
        bounds: Ranges of labels ``[C + 1]``.
        cursor: First place of every row of smaller neighbors; advanced.
        plus: Receives the smaller neighbors.
        minus_values: Value of every entry, or has length 0.
        plus_values: Receives them in the order of ``plus``.
    """
    has_values = len(minus_values) > 0
    for chunk in claimed_range(0, len(bounds) - 1, 1, counter):
        low, high = bounds[chunk], bounds[chunk + 1]
        for v in range(high):  # rows of larger labels have larger neighbors only
            for e in range(minus_indptr[v], minus_indptr[v + 1]):
                u = np.int64(minus[e])
                if u < low or u >= high:
                    continue
                place = cursor[u]
                cursor[u] = place + 1
                plus[place] = v
                if has_values:
                    plus_values[place] = minus_values[e]


@lean_jit
def count_triangles(
    thread: int,
    plus_indptr: Offsets,
    plus: Numbers,
    minus_indptr: Offsets,
    minus: Numbers,
    bounds: Offsets,
    counter: Offsets,
    marks: Words,
    counts: Offsets,
) -> np.int64:
    """Count the triangles of every label.

    Args:
        plus_indptr: Row offsets ``[N + 1]``.
        plus: Smaller neighbors, rows sorted.
        minus_indptr: Row offsets ``[N + 1]``.
        minus: Larger neighbors.
        marks: Scratch bitmaps, zeros, uint64 ``[T, ceil(N / 64)]``; zeros again after.
        counts: Zeros; receives what each thread found, int64 ``[T, N]``.

    Returns:
        How many triangles this thread found.
    """
    mark = marks[thread]
    count = counts[thread]
    total = np.int64(0)
    for v in claimed_rows(bounds, counter):
        if plus_indptr[v] == plus_indptr[v + 1]:
            continue
        for e in range(plus_indptr[v], plus_indptr[v + 1]):
            set_bit(mark, plus[e])
        of_v = np.int64(0)
        for e in range(minus_indptr[v], minus_indptr[v + 1]):
            u = minus[e]
            place = plus_indptr[u]
            of_u = np.int64(0)
            w = np.uint64(plus[place])
            while w < np.uint64(v):  # v itself is in the row
                # The bit itself is added: a branch on it could not be foreseen.
                bit = (mark[w >> np.uint64(6)] >> (w & np.uint64(63))) & np.uint64(1)
                hit = np.int64(bit)
                count[w] += hit
                of_u += hit
                place += 1
                w = np.uint64(plus[place])
            if of_u:
                count[u] += of_u
                of_v += of_u
        count[v] += of_v
        total += of_v
        for e in range(plus_indptr[v], plus_indptr[v + 1]):
            clear_bit(mark, plus[e])
    return total


@lean_jit
def count_opposite_arcs(
    thread: int,
    plus_indptr: Offsets,
    plus: Numbers,
    plus_arcs: npt.NDArray[np.uint8],
    minus_indptr: Offsets,
    minus: Numbers,
    minus_arcs: npt.NDArray[np.uint8],
    bounds: Offsets,
    counter: Offsets,
    marks: npt.NDArray[np.uint8],
    counts: Offsets,
) -> None:
    """Count, for every label, the arcs between its neighbors.

    Args:
        plus_indptr: Row offsets ``[N + 1]``.
        plus: Smaller neighbors, rows sorted.
        plus_arcs: Arcs between the two ends of each entry, 1 or 2.
        minus_indptr: Row offsets ``[N + 1]``.
        minus: Larger neighbors.
        minus_arcs: Arcs between the two ends of each entry.
        marks: Scratch, zeros, uint8 ``[T, N]``; zeros again after.
        counts: Zeros; receives what each thread found, int64 ``[T, N]``.
    """
    mark = marks[thread]
    count = counts[thread]
    for v in claimed_rows(bounds, counter):
        for e in range(plus_indptr[v], plus_indptr[v + 1]):
            mark[plus[e]] = plus_arcs[e]
        for e in range(minus_indptr[v], minus_indptr[v + 1]):
            u = minus[e]
            uv = np.int64(minus_arcs[e])
            place = plus_indptr[u]
            while np.int64(plus[place]) < v:
                w = plus[place]
                vw = np.int64(mark[w])
                if vw:
                    count[u] += vw
                    count[v] += np.int64(plus_arcs[place])
                    count[w] += uv
                place += 1
        for e in range(plus_indptr[v], plus_indptr[v + 1]):
            mark[plus[e]] = 0


@lean_jit
def count_arcs(
    thread: int,
    indptr: Numbers,
    indices: Numbers,
    out_begins: Numbers,
    out_ends: Numbers,
    out_indices: Numbers,
    in_begins: Numbers,
    in_ends: Numbers,
    in_indices: Numbers,
    bounds: Offsets,
    counter: Offsets,
    arcs: npt.NDArray[np.uint8],
) -> None:
    """Count the arcs between neighbors: 1, or 2 where both directions exist.

    Args:
        indptr: Row offsets of the simple graph ``[N + 1]``.
        indices: Its neighbors, rows sorted ``[S]``.
        out_begins: Where each row of out-neighbors begins ``[N]``.
        out_ends: Where it ends ``[N]``.
        out_indices: Out-neighbors, rows sorted, loops and repetitions allowed.
        in_begins: Where each row of in-neighbors begins ``[N]``.
        in_ends: Where it ends ``[N]``.
        in_indices: In-neighbors, rows sorted.
        arcs: Receives the counts ``[S]``.
    """
    for v in claimed_rows(bounds, counter):
        a, a_end = np.int64(out_begins[v]), np.int64(out_ends[v])
        b, b_end = np.int64(in_begins[v]), np.int64(in_ends[v])
        for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
            other = indices[e]
            while a < a_end and out_indices[a] < other:
                a += 1
            while b < b_end and in_indices[b] < other:
                b += 1
            is_out = a < a_end and out_indices[a] == other
            is_in = b < b_end and in_indices[b] == other
            arcs[e] = np.uint8(is_out) + np.uint8(is_in)
