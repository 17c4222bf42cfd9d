"""Breadth-first levels, pushed from a queue or pulled through bitmaps.

A level is pushed (every node of the frontier looks for new neighbors) while the frontier
has few edges, and pulled (every node not yet seen looks for a neighbor in the frontier)
while it has many. Pushing keeps the frontier as a slice of one queue that holds every node
once; pulling keeps it as a bitmap. Rows are cut at multiples of 64 nodes, so that pulling
needs no atomics; pushing claims nodes with an atomic or on the bitmap of seen nodes.

Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search", SC 2012; GAPBS
(bfs.cc). Unlike there, only distances are written: bitmaps of seen nodes fit the second
level cache, parents do not. ``state`` is ``(begin, end, edges of the frontier, edges not
yet looked at)`` of the slice that is the frontier.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_add, atomic_or
from graphsys.kernels.cpu.bits import Words, has_bit, lowest_bit, num_bits, set_bit
from graphsys.kernels.cpu.loops import claimed_range, claimed_rows, claimed_words
from graphsys.kernels.jit import lean_jit

PULL_SHARE = 15  # pull once the frontier has more than 1/15 of the edges left (GAPBS)


@lean_jit
def mark_without_edges(
    thread: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    words: Words,
) -> None:
    """Put nodes without entries, and the bits behind the last node, into the set."""
    num_nodes = len(begins)
    for k in claimed_words(bounds, counter):
        word = np.uint64(0)
        first = k * 64
        for bit in range(64):
            node = first + bit
            if node >= num_nodes or begins[node] == ends[node]:
                word |= np.uint64(1) << np.uint64(bit)
        words[k] = word


@lean_jit
def push_levels(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    queue: npt.NDArray[Any],
    state: npt.NDArray[np.int64],
    seen: Words,
    distance: npt.NDArray[np.int64],
    level: int,
    most_edges: int,
) -> int:
    """Push one level after the other while their frontiers stay small.

    Many levels of a few nodes each stay inside this one call, in one thread.

    Args:
        begins: Where each row of the out-neighbors begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Out-neighbors ``[E]``.
        queue: Nodes in the order in which they were found ``[N]``.
        state: See the module; updated.
        seen: Nodes found, and those that nothing leads to; updated.
        distance: Receives the level of each node found ``[N]``.
        level: Distance of the nodes of the frontier.
        most_edges: Return when a frontier has more edges than this.

    Returns:
        Distance of the nodes of the frontier that is left, which may be empty.
    """
    begin, end, edges, left = state[0], state[1], state[2], state[3]
    while begin < end and edges <= most_edges and edges <= left // PULL_SHARE:
        left -= edges
        edges = np.int64(0)
        level += 1
        tail = end
        for k in range(begin, end):
            node = queue[k]
            for e in range(np.int64(begins[node]), np.int64(ends[node])):
                other = indices[e]
                if not has_bit(seen, other):
                    set_bit(seen, other)
                    distance[other] = level
                    queue[tail] = other
                    tail += 1
                    edges += np.int64(ends[other]) - np.int64(begins[other])
        begin = end
        end = tail
    state[0], state[1], state[2], state[3] = begin, end, edges, left
    return level


@lean_jit
def push_level(
    thread: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    queue: npt.NDArray[Any],
    begin: int,
    end: int,
    counters: npt.NDArray[np.int64],
    buffers: npt.NDArray[Any],
    seen: Words,
    distance: npt.NDArray[np.int64],
    level: int,
) -> np.int64:
    """Push one level, together with other threads.

    Args:
        begins: Where each row of the out-neighbors begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Out-neighbors ``[E]``.
        queue: Nodes found; new ones are appended ``[N]``.
        begin: Start of the frontier in the queue.
        end: End of the frontier.
        counters: Next slice of the frontier; end of the queue.
        buffers: Scratch ``[T, B]``.
        seen: Nodes found, and those that nothing leads to; updated.
        distance: Receives ``level`` for each node found ``[N]``.
        level: Distance of the new nodes.

    Returns:
        How many edges the nodes have that this thread found.
    """
    buffer = buffers[thread]
    held = 0
    edges = np.int64(0)
    for k in claimed_range(begin, end, 64, counters):
        node = queue[k]
        for e in range(np.int64(begins[node]), np.int64(ends[node])):
            other = indices[e]
            if has_bit(seen, other):
                continue
            word = np.int64(other) >> 6
            bit = np.uint64(1) << (np.uint64(other) & np.uint64(63))
            # The plain look before may be stale; the atomic decides which thread has found
            # it.
            if atomic_or(seen, word, bit) & bit != 0:
                continue
            distance[other] = level
            edges += np.int64(ends[other]) - np.int64(begins[other])
            buffer[held] = other
            held += 1
            # One atomic for a buffer of nodes, where one for each would be what threads
            # wait for.
            if held == len(buffer):
                place = atomic_add(counters, 1, held)
                for b in range(held):
                    queue[place + b] = buffer[b]
                held = 0
    place = atomic_add(counters, 1, held)
    for b in range(held):
        queue[place + b] = buffer[b]
    return edges


@lean_jit
def pull_level(
    thread: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    frontier: Words,
    found: Words,
    seen: Words,
    distance: npt.NDArray[np.int64],
    level: int,
) -> np.int64:
    """Pull one level, together with other threads.

    Args:
        begins: Where each row of the in-neighbors begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: In-neighbors ``[E]``.
        bounds: Chunks of rows, multiples of 64 ``[C + 1]``.
        frontier: Nodes at ``level - 1``.
        found: Receives the nodes at ``level``.
        seen: Nodes found, and those that nothing leads to; updated.
        distance: Receives ``level`` for each node found ``[N]``.
        level: Distance of the new nodes.

    Returns:
        How many nodes this thread found.
    """
    num_found = np.int64(0)
    for k in claimed_words(bounds, counter):
        # Bits behind the last node and of nodes without edges are set from the start.
        unseen = ~seen[k]
        new = np.uint64(0)
        while unseen != 0:
            bit = lowest_bit(unseen)
            unseen &= unseen - np.uint64(1)
            node = 64 * k + bit
            for e in range(np.int64(begins[node]), np.int64(ends[node])):
                if has_bit(frontier, indices[e]):
                    new |= np.uint64(1) << np.uint64(bit)
                    distance[node] = level
                    break
        # Written even where empty: the words still hold the level before the last.
        found[k] = new
        if new != 0:
            seen[k] |= new
            num_found += num_bits(new)
    return num_found


@lean_jit
def find_parents(
    thread: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    seen: Words,
    distance: npt.NDArray[np.int64],
    rank: npt.NDArray[Any],
    parent: npt.NDArray[Any],
) -> None:
    """Give every node found the in-neighbor one step closer that has the least rank.

    Args:
        begins: Where each row of the in-neighbors begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: In-neighbors, rows sorted ``[E]``.
        seen: Nodes found.
        distance: Distance of each node found ``[N]``.
        rank: Places of the nodes in the order that decides ``[N]``, or has length 0 where
            that is the order of the numbers.
        parent: Receives the parents; others keep what they have ``[N]``.
    """
    for node in claimed_rows(bounds, counter):
        if not has_bit(seen, node) or distance[node] == 0:
            continue
        closer = distance[node] - 1
        best = np.int64(-1)
        for e in range(np.int64(begins[node]), np.int64(ends[node])):
            other = np.int64(indices[e])
            if distance[other] != closer or not has_bit(seen, other):
                continue
            # Rows are sorted, so that the first is the least.
            if len(rank) == 0:
                best = other
                break
            if best < 0 or np.int64(rank[other]) < np.int64(rank[best]):
                best = other
        parent[node] = best
