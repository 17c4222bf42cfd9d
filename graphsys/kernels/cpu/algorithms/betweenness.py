"""Brandes' betweenness: path counts down the levels of a search, dependencies up again.

After a breadth-first search the nodes lie level by level in ``order``. The number of
shortest paths of a level is summed from the level above, then the dependencies of a level
from the level below; who looks is the side with fewer edges. Whether a neighbor lies in
the other level is a bit in a bitmap, not a distance. Repeated edges lie next to each
other in a row and count once.

Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociol. 25(2), 2001;
Beamer et al., SC 2012, for looking from the cheaper side.

``share`` holds, for a node whose dependency is known, (1 + dependency) / paths: what each
path to it passes up.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.bits import Words, clear_bit, has_bit, set_bit
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.rows.csr import CsrArrays
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
PUSH_COST = 2  # an edge pushed, with an atomic, costs so many pulled


class DagLevels(NamedTuple):
    """Nodes by distance from the source.

    Attributes:
        order: Nodes reached, level by level ``[R]``.
        starts: Start of every level in ``order`` ``[L + 1]``.
        out_edges: Out-edges of all nodes of a level ``[L]``.
        in_edges: In-edges of all nodes of a level ``[L]``.
    """

    order: npt.NDArray[Any]
    starts: Integers
    out_edges: Integers
    in_edges: Integers


@lean_inline_jit
def _degree(rows: Any, node: Any) -> np.int64:
    return np.int64(rows.ends[node]) - np.int64(rows.begins[node])


@lean_jit
def sort_by_level(
    distance: Integers,
    reached: Words,
    out_rows: CsrArrays,
    in_rows: CsrArrays,
    levels: DagLevels,
    cursor: Integers,
) -> None:
    """Fill ``levels``, whose ``starts`` and edge counts come in as zeros.

    Args:
        distance: Distance of each node ``[N]``.
        reached: Nodes reached.
        out_rows: Out-neighbors.
        in_rows: In-neighbors.
        levels: Receives the nodes.
        cursor: Scratch ``[L]``.
    """
    num_nodes = len(distance)
    for node in range(num_nodes):
        if has_bit(reached, node):
            level = distance[node]
            levels.starts[level + 1] += 1
            levels.out_edges[level] += _degree(out_rows, node)
            levels.in_edges[level] += _degree(in_rows, node)
    for level in range(len(cursor)):
        # A counting sort: counts stand one place on, so that their running sum gives the
        # starts.
        cursor[level] = levels.starts[level]
        levels.starts[level + 1] += levels.starts[level]
    for node in range(num_nodes):
        if has_bit(reached, node):
            level = distance[node]
            levels.order[cursor[level]] = node
            cursor[level] += 1


@lean_jit
def sum_neighbors(
    thread: int,
    rows: CsrArrays,
    order: npt.NDArray[Any],
    begin: int,
    end: int,
    counter: Integers,
    other_level: Words,
    values: Floats,
    sums: Floats,
) -> None:
    """Sum the values of the neighbors in another level, for the nodes of a level.

    Args:
        rows: Neighbors towards the other level.
        order: Nodes by level.
        begin: Start of the level.
        end: End of the level.
        other_level: The other level as a bitmap.
        values: Values of the nodes there ``[N]``.
        sums: Receives the sums of the nodes here ``[N]``.
    """
    # block by block: claimed_range was measured as no faster here
    for block in claimed_range(0, (end - begin + 63) >> 6, 1, counter):
        first = begin + 64 * block
        for k in range(first, min(first + 64, end)):
            node = order[k]
            total = 0.0
            last = np.int64(-1)
            for e in range(np.int64(rows.begins[node]), np.int64(rows.ends[node])):
                other = np.int64(rows.indices[e])
                if has_bit(other_level, other) and other != last:
                    total += values[other]
                    last = other
            sums[node] = total


@lean_jit
def add_to_neighbors(
    thread: int,
    rows: CsrArrays,
    order: npt.NDArray[Any],
    begin: int,
    end: int,
    counter: Integers,
    other_level: Words,
    values: Floats,
    sums: Floats,
) -> None:
    """Add the values of the nodes of a level to their neighbors in another one.

    Args:
        rows: Neighbors towards the other level.
        order: Nodes by level.
        begin: Start of the level.
        end: End of the level.
        other_level: The other level as a bitmap.
        values: Values of the nodes here ``[N]``.
        sums: Sums of the nodes there, zeros before ``[N]``.
    """
    # block by block: claimed_range was measured as no faster here
    for block in claimed_range(0, (end - begin + 63) >> 6, 1, counter):
        first = begin + 64 * block
        for k in range(first, min(first + 64, end)):
            node = order[k]
            last = np.int64(-1)
            for e in range(np.int64(rows.begins[node]), np.int64(rows.ends[node])):
                other = np.int64(rows.indices[e])
                if has_bit(other_level, other) and other != last:
                    atomic_add(sums, other, values[node])
                    last = other


@lean_inline_jit
def _mark(words: Any, order: Any, begin: Any, end: Any, is_in: Any) -> None:
    for k in range(begin, end):
        if is_in:
            set_bit(words, order[k])
        else:
            clear_bit(words, order[k])


@lean_jit
def mark_level(
    words: Words, order: npt.NDArray[Any], begin: int, end: int, is_in: bool
) -> None:
    """Put the nodes of a level into a bitmap, or take them out."""
    _mark(words, order, begin, end, is_in)


@lean_jit
def count_paths(
    level: int,
    most_edges: int,
    out_rows: CsrArrays,
    in_rows: CsrArrays,
    levels: DagLevels,
    marks: Words,
    paths: Floats,
    counter: Integers,
) -> int:
    """Count the shortest paths to the nodes of one level after the other, in one thread.

    Args:
        level: First level.
        most_edges: Stop at a level that costs more.
        out_rows: Out-neighbors.
        in_rows: In-neighbors.
        levels: Nodes by level.
        marks: Scratch bitmap, zeros; zeros again after.
        paths: Numbers of paths, known above ``level``, zeros elsewhere ``[N]``.
        counter: Scratch ``[1]``.

    Returns:
        The level that is next.
    """
    order, starts = levels.order, levels.starts
    while level < len(starts) - 1:
        above, begin, end = starts[level - 1], starts[level], starts[level + 1]
        # The cheaper side writes: pushing reads the edges of the level above but needs
        # atomics, pulling reads all in-edges of this one.
        push_cost = PUSH_COST * levels.out_edges[level - 1]
        if min(push_cost, levels.in_edges[level]) > most_edges:
            break
        counter[0] = 0
        if push_cost < levels.in_edges[level]:
            _mark(marks, order, begin, end, True)
            add_to_neighbors(0, out_rows, order, above, begin, counter, marks, paths, paths)
            _mark(marks, order, begin, end, False)
        else:
            _mark(marks, order, above, begin, True)
            sum_neighbors(0, in_rows, order, begin, end, counter, marks, paths, paths)
            _mark(marks, order, above, begin, False)
        level += 1
    return level


@lean_inline_jit
def _finish(
    order: Any, begin: Any, end: Any, paths: Any, sums: Any, share: Any, scores: Any
) -> None:
    for k in range(begin, end):
        node = order[k]
        dependency = paths[node] * sums[node]
        share[node] = (1.0 + dependency) / paths[node]
        scores[node] += dependency


@lean_jit
def finish_level(
    order: npt.NDArray[Any],
    begin: int,
    end: int,
    paths: Floats,
    sums: Floats,
    share: Floats,
    scores: Floats,
) -> None:
    """Turn the sums of a level's nodes into dependencies, and add them to the scores."""
    _finish(order, begin, end, paths, sums, share, scores)


@lean_jit
def sum_dependencies(
    level: int,
    most_edges: int,
    out_rows: CsrArrays,
    in_rows: CsrArrays,
    levels: DagLevels,
    marks: Words,
    paths: Floats,
    sums: Floats,
    share: Floats,
    scores: Floats,
    counter: Integers,
) -> int:
    """Add up the dependencies of one level after the other, upwards, in one thread.

    Args:
        level: First level, not the last one there is; stops above level 1.
        most_edges: Stop at a level that costs more.
        out_rows: Out-neighbors.
        in_rows: In-neighbors.
        levels: Nodes by level.
        marks: Scratch bitmap, zeros; zeros again after.
        paths: Numbers of paths ``[N]``.
        sums: Zeros for this level and those above ``[N]``.
        share: Known below ``level`` ``[N]``.
        scores: Receives the dependencies ``[N]``.
        counter: Scratch ``[1]``.

    Returns:
        The level that is next; 0 when done.
    """
    order, starts = levels.order, levels.starts
    while level > 0:
        begin, end, below = starts[level], starts[level + 1], starts[level + 2]
        push_cost = PUSH_COST * levels.in_edges[level + 1]
        if min(push_cost, levels.out_edges[level]) > most_edges:
            break
        counter[0] = 0
        if push_cost < levels.out_edges[level]:
            _mark(marks, order, begin, end, True)
            add_to_neighbors(0, in_rows, order, end, below, counter, marks, share, sums)
            _mark(marks, order, begin, end, False)
        else:
            _mark(marks, order, end, below, True)
            sum_neighbors(0, out_rows, order, begin, end, counter, marks, share, sums)
            _mark(marks, order, end, below, False)
        _finish(order, begin, end, paths, sums, share, scores)
        level -= 1
    return level


@lean_jit
def accumulate_sources(
    thread: int,
    rows: CsrArrays,
    sources: Integers,
    counter: Integers,
    queues: npt.NDArray[Any],
    distances: npt.NDArray[np.int32],
    paths: Floats,
    shares: Floats,
    scores: Floats,
) -> None:
    """Add the dependencies of whole sources, each in one thread: for small graphs.

    Args:
        rows: Out-neighbors.
        sources: Sources ``[S]``.
        queues: Scratch ``[T, N]``.
        distances: Scratch, -1 everywhere ``[T, N]``; the same after.
        paths: Scratch ``[T, N]``.
        shares: Scratch ``[T, N]``.
        scores: Each thread's sums ``[T, N]``; updated.
    """
    queue, distance, path = queues[thread], distances[thread], paths[thread]
    share, score = shares[thread], scores[thread]
    for place in claimed_range(0, len(sources), 1, counter):
        source = sources[place]
        queue[0] = source
        distance[source] = 0
        path[source] = 1.0
        end = 1
        k = 0
        while k < end:
            node = queue[k]
            k += 1
            last = np.int64(-1)
            for e in range(np.int64(rows.begins[node]), np.int64(rows.ends[node])):
                other = np.int64(rows.indices[e])
                if other == last:
                    continue
                last = other
                if distance[other] < 0:
                    distance[other] = distance[node] + 1
                    path[other] = 0.0
                    queue[end] = other
                    end += 1
                if distance[other] == distance[node] + 1:
                    path[other] += path[node]
        # Backwards through the queue, so farthest first; the source itself gets nothing.
        for k in range(end - 1, 0, -1):
            node = queue[k]
            total = 0.0
            last = np.int64(-1)
            for e in range(np.int64(rows.begins[node]), np.int64(rows.ends[node])):
                other = np.int64(rows.indices[e])
                if distance[other] == distance[node] + 1 and other != last:
                    total += share[other]
                    last = other
            score[node] += path[node] * total
            share[node] = total + 1.0 / path[node]
        # Only what was reached: clearing all would cost O(N) a source.
        for k in range(end):
            distance[queue[k]] = -1
