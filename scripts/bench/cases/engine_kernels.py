"""Kernels written by hand: the yardstick for what is generated from vertex programs.

Each does what the vertex program of the same name in ``engine_programs`` does, superstep by
superstep, with the same data structures as a person would write them.
"""

from typing import Any

import numpy as np

from graphsys.kernels.cpu.atomics import atomic_add, atomic_min, compare_exchange
from graphsys.kernels.cpu.bits import has_bit, set_bit, set_bit_atomic
from graphsys.kernels.cpu.node_lists import append_buffer
from graphsys.kernels.jit import jit

Array = Any


@jit
def contributions(
    thread: int, counter: Array, bounds: Array, rank: Array, degree: Array, out: Array
) -> None:
    """PageRank: what each node gives to each of its neighbors."""
    while True:
        c = atomic_add(counter, 0, 1)
        if c >= len(bounds) - 1:
            break
        for v in range(bounds[c], bounds[c + 1]):
            out[v] = rank[v] / degree[v]


@jit
def pagerank(
    thread: int,
    counter: Array,
    bounds: Array,
    indptr: Array,
    indices: Array,
    contribution: Array,
    rank: Array,
    degree: Array,
    damping: float,
    base: float,
    parts: Array,
) -> None:
    """PageRank: gather, update, and the two totals."""
    while True:
        c = atomic_add(counter, 0, 1)
        if c >= len(bounds) - 1:
            break
        change, dangling = 0.0, 0.0
        for v in range(bounds[c], bounds[c + 1]):
            total = 0.0
            for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
                total += contribution[indices[e]]
            new = base + damping * total
            change += abs(new - rank[v])
            rank[v] = new
            if degree[v] == 0:
                dangling += new
        parts[c, 0], parts[c, 1] = change, dangling


@jit
def two_sums(
    thread: int,
    counter: Array,
    bounds: Array,
    indptr: Array,
    indices: Array,
    a: Array,
    b: Array,
    new_a: Array,
    new_b: Array,
) -> None:
    """Two states that gather each other's sums."""
    while True:
        c = atomic_add(counter, 0, 1)
        if c >= len(bounds) - 1:
            break
        for v in range(bounds[c], bounds[c + 1]):
            sum_a, sum_b = np.float32(0), np.float32(0)
            for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
                u = indices[e]
                sum_a += a[u]
                sum_b += b[u]
            new_a[v] = np.float32(0.5) * a[v] + np.float32(1e-7) * sum_b
            new_b[v] = np.float32(0.5) * b[v] + np.float32(1e-7) * sum_a


@jit
def min_label_pull(
    thread: int,
    counter: Array,
    bounds: Array,
    indptr: Array,
    indices: Array,
    sent: Array,
    label: Array,
    changed: Array,
    degree: Array,
    parts: Array,
) -> None:
    """Min-label components: the smallest label among the neighbors."""
    while True:
        c = atomic_add(counter, 0, 1)
        if c >= len(bounds) - 1:
            break
        count, edges = 0, 0
        for v in range(bounds[c], bounds[c + 1]):
            best = label[v]
            for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
                found = sent[indices[e]]
                best = found if found < best else best
            if best < label[v]:
                label[v] = best
                set_bit(changed, v)
                count += 1
                edges += degree[v]
        parts[c, 0], parts[c, 1] = count, edges


@jit
def labels_to_send(
    thread: int, counter: Array, bounds: Array, label: Array, out: Array
) -> None:
    """Min-label components: the labels of the nodes that changed, else the largest."""
    while True:
        c = atomic_add(counter, 0, 1)
        if c >= len(bounds) - 1:
            break
        for v in range(bounds[c], bounds[c + 1]):
            out[v] = label[v]


@jit
def relax_labels(
    thread: int,
    counter: Array,
    nodes: Array,
    count: int,
    indptr: Array,
    indices: Array,
    label: Array,
    best: Array,
    touched: Array,
    touched_list: Array,
    cursor: Array,
) -> None:
    """Min-label components, sparse: lower the neighbors' best labels."""
    buffer = np.empty(1024, dtype=np.int64)
    filled = 0
    while True:
        begin = atomic_add(counter, 0, 64)
        if begin >= count:
            break
        for k in range(begin, min(begin + 64, count)):
            u = nodes[k]
            mine = label[u]
            for e in range(np.int64(indptr[u]), np.int64(indptr[u + 1])):
                v = indices[e]
                if mine < label[v]:
                    atomic_min(best, v, mine)
                    if set_bit_atomic(touched, np.int64(v)):
                        buffer[filled] = v
                        filled += 1
                        if filled == 1024:
                            append_buffer(buffer, filled, touched_list, cursor)
                            filled = 0
    append_buffer(buffer, filled, touched_list, cursor)


@jit
def relax_distances(
    thread: int,
    counter: Array,
    nodes: Array,
    count: int,
    indptr: Array,
    indices: Array,
    weight: Array,
    distance: Array,
    best: Array,
    touched: Array,
    touched_list: Array,
    cursor: Array,
) -> None:
    """Bellman-Ford, sparse: lower the neighbors' best distances."""
    buffer = np.empty(1024, dtype=np.int64)
    filled = 0
    while True:
        begin = atomic_add(counter, 0, 64)
        if begin >= count:
            break
        for k in range(begin, min(begin + 64, count)):
            u = nodes[k]
            mine = distance[u]
            for e in range(np.int64(indptr[u]), np.int64(indptr[u + 1])):
                v = indices[e]
                length = mine + weight[e]
                if length < distance[v]:
                    atomic_min(best, v, length)
                    if set_bit_atomic(touched, np.int64(v)):
                        buffer[filled] = v
                        filled += 1
                        if filled == 1024:
                            append_buffer(buffer, filled, touched_list, cursor)
                            filled = 0
    append_buffer(buffer, filled, touched_list, cursor)


@jit
def take_best(
    thread: int,
    counter: Array,
    nodes: Array,
    count: int,
    best: Array,
    nothing: Any,
    value: Array,
    touched: Array,
    degree: Array,
    fresh: Array,
    cursor: Array,
    edges: Array,
) -> None:
    """After a sparse superstep: take over what was lowered, list the nodes that changed."""
    buffer = np.empty(512, dtype=np.int64)
    while True:
        begin = atomic_add(counter, 0, 512)
        if begin >= count:
            break
        filled, total = 0, 0
        for k in range(begin, min(begin + 512, count)):
            v = nodes[k]
            touched[v >> 6] = np.uint64(0)
            if best[v] < value[v]:
                value[v] = best[v]
                buffer[filled] = v
                filled += 1
                total += degree[v]
            best[v] = nothing
        append_buffer(buffer, filled, fresh, cursor)
        atomic_add(edges, 0, total)


@jit
def pull_distances(
    thread: int,
    counter: Array,
    bounds: Array,
    indptr: Array,
    indices: Array,
    weight: Array,
    distance: Array,
    new: Array,
    changed: Array,
    degree: Array,
    parts: Array,
) -> None:
    """Bellman-Ford, dense: the shortest way over any neighbor."""
    while True:
        c = atomic_add(counter, 0, 1)
        if c >= len(bounds) - 1:
            break
        count, edges = 0, 0
        for v in range(bounds[c], bounds[c + 1]):
            best = distance[v]
            for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
                length = distance[indices[e]] + weight[e]
                best = length if length < best else best
            new[v] = best
            if best < distance[v]:
                set_bit(changed, v)
                count += 1
                edges += degree[v]
        parts[c, 0], parts[c, 1] = count, edges


@jit
def claim(
    thread: int,
    counter: Array,
    nodes: Array,
    count: int,
    indptr: Array,
    indices: Array,
    hops: Array,
    level: Any,
    degree: Array,
    fresh: Array,
    cursor: Array,
    edges: Array,
) -> None:
    """BFS, top-down: claim the unvisited neighbors of the frontier."""
    buffer = np.empty(1024, dtype=np.int64)
    filled, total = 0, 0
    while True:
        begin = atomic_add(counter, 0, 64)
        if begin >= count:
            break
        for k in range(begin, min(begin + 64, count)):
            u = nodes[k]
            for e in range(np.int64(indptr[u]), np.int64(indptr[u + 1])):
                v = indices[e]
                if hops[v] < 0 and compare_exchange(hops, v, np.int32(-1), level):
                    buffer[filled] = v
                    filled += 1
                    total += degree[v]
                    if filled == 1024:
                        append_buffer(buffer, filled, fresh, cursor)
                        filled = 0
    append_buffer(buffer, filled, fresh, cursor)
    atomic_add(edges, 0, total)


@jit
def look_up(
    thread: int,
    counter: Array,
    bounds: Array,
    indptr: Array,
    indices: Array,
    active: Array,
    hops: Array,
    level: Any,
    changed: Array,
    degree: Array,
    parts: Array,
) -> None:
    """BFS, bottom-up: every unvisited node looks for one neighbor in the frontier."""
    while True:
        c = atomic_add(counter, 0, 1)
        if c >= len(bounds) - 1:
            break
        count, edges = 0, 0
        for v in range(bounds[c], bounds[c + 1]):
            if hops[v] >= 0:
                continue
            for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
                if has_bit(active, np.int64(indices[e])):
                    hops[v] = level
                    set_bit(changed, v)
                    count += 1
                    edges += degree[v]
                    break
        parts[c, 0], parts[c, 1] = count, edges
