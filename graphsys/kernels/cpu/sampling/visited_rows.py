"""PinSage's importance neighborhoods: short walks, visit counts, the most visited.

From each seed ``num_walks`` walks start. A walk goes back and forth over pairs of rows
(pin to board, board to pin; on a graph of one type the same rows once), and after each
such traversal it ends with chance ``restart``; it starts anew from the seed until it has
walked ``walk_length`` traversals in all. Visits to nodes of the seed's type are counted,
those to the seed itself are not. Every draw is a hash of (key, seed, walk, step).

Ying et al., "Graph convolutional neural networks for web-scale recommender systems", KDD
2018, section 3.1.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.rows.row_table import (
    INDICES,
    ask_row,
    element,
    find_row,
)
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Wide = npt.NDArray[np.uint8]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SCALE = 4294967296.0


@lean_inline_jit
def _step(offsets: Any, table: Any, wide: Any, node: Any, word: Any) -> Any:
    """Return a neighbor of a node, by the upper half of a random word, or -1."""
    part, begin, end = find_row(offsets, table, wide, node)
    if begin == end:
        return np.int64(-1)
    # Lemire's way to a number below the degree: the upper half of a product, no division.
    high = (word >> np.uint64(32)) * np.uint64(end - begin)
    place = begin + np.int64(high >> np.uint64(32))
    return element(table, wide, part, INDICES, place)


@lean_inline_jit
def _count_visits(
    offsets: Any,
    table: Any,
    wide: Any,
    back_offsets: Any,
    back_table: Any,
    back_wide: Any,
    has_back: Any,
    seed: Any,
    key: Any,
    num_walks: Any,
    walk_length: Any,
    restart: Any,
    walkers: Any,
    slots: Any,
    counts: Any,
    used: Any,
) -> Any:
    """Walk from a seed; return how many different nodes were visited.

    All walks take a step before any takes the next: they do not wait for each other's
    memory. ``slots`` and ``counts`` are an open-addressing table of nodes, ``used`` lists
    its slots in the order of first visits.
    """
    mask = np.int64(len(slots) - 1)
    num_used = 0
    stop = np.uint64(restart * _SCALE)
    for walk in range(num_walks):
        walkers[walk] = seed
    for step in range(walk_length):
        for walk in range(num_walks):
            own = mix64(key ^ (np.uint64(walk) * _GOLDEN))
            word = mix64(own + np.uint64(2 * step) * _GOLDEN)
            node = walkers[walk]
            # a dead end: start anew
            if node < 0 or (step > 0 and (word & np.uint64(0xFFFFFFFF)) < stop):
                node = seed
            node = _step(offsets, table, wide, node, word)
            if node >= 0 and has_back:
                word = mix64(own + np.uint64(2 * step + 1) * _GOLDEN)
                node = _step(back_offsets, back_table, back_wide, node, word)
            walkers[walk] = node
            if node >= 0:
                ask_row(offsets, table, wide, node)
        for walk in range(num_walks):
            node = walkers[walk]
            if node < 0 or node == seed:
                continue
            slot = np.int64(mix64(np.uint64(node))) & mask
            while slots[slot] != -1 and slots[slot] != node:
                slot = (slot + 1) & mask
            if slots[slot] == -1:
                slots[slot] = node
                counts[slot] = 0
                used[num_used] = slot
                num_used += 1
            counts[slot] += 1
    return num_used


@lean_inline_jit
def _is_before(counts: Any, slots: Any, a: Any, b: Any) -> Any:
    """Whether slot a ranks before slot b: more visits, then the smaller number."""
    if counts[a] != counts[b]:
        return counts[a] > counts[b]
    return slots[a] < slots[b]


@lean_inline_jit
def _sift_down(counts: Any, slots: Any, heap: Any, root: Any, size: Any) -> None:
    """Restore a heap whose root ranks last of all in it."""
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and _is_before(counts, slots, heap[child], heap[child + 1]):
            child += 1
        if not _is_before(counts, slots, heap[root], heap[child]):
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child


@lean_inline_jit
def _sort_best(counts: Any, slots: Any, used: Any, num_used: Any, size: Any) -> None:
    """Bring the ``size`` slots that rank first to the front of ``used``, in order."""
    for root in range(size // 2 - 1, -1, -1):
        _sift_down(counts, slots, used, root, size)
    for k in range(size, num_used):
        if _is_before(counts, slots, used[k], used[0]):
            used[0], used[k] = used[k], used[0]
            _sift_down(counts, slots, used, 0, size)
    for last in range(size - 1, 0, -1):
        used[0], used[last] = used[last], used[0]
        _sift_down(counts, slots, used, 0, last)


@lean_jit
def visit_neighborhoods(
    offsets: Ints,
    table: Words,
    wide: Wide,
    back_offsets: Ints,
    back_table: Words,
    back_wide: Wide,
    has_back: bool,
    nodes: Ints,
    low: int,
    high: int,
    key: np.uint64,
    num_walks: int,
    walk_length: int,
    restart: float,
    skip: int,
    num_neighbors: int,
    walkers: Ints,
    slots: Ints,
    counts: npt.NDArray[np.int32],
    used: Ints,
    indptr: Ints,
    row: int,
    neighbors: Ints,
    weights: npt.NDArray[np.float32],
) -> int:
    """Find the most visited nodes around each seed, and their share of the visits.

    Args:
        offsets: First numbers of the partitions of the seeds' type ``[P + 1]``.
        table: Addresses of the rows that leave them (see ``row_table``).
        wide: Their dtypes.
        back_offsets: Partitions of the type in between.
        back_table: Rows that lead back.
        back_wide: Their dtypes.
        has_back: Whether there is a type in between; else walks stay in the first rows.
        nodes: Numbers of nodes, ``low`` to ``high`` are the seeds.
        low: The first.
        high: Behind the last.
        key: Of these draws.
        num_walks: Independent walks from each seed.
        walk_length: Traversals of a walk, restarts included.
        restart: Chance to go back to the seed before a traversal.
        skip: How many of the most visited to leave out (hard negatives begin further down).
        num_neighbors: How many to keep, at most.
        walkers: Scratch ``[num_walks]``.
        slots: Table filled with -1, a power of two > 2 * num_walks * walk_length.
        counts: Of the same length.
        used: Of the same length.
        indptr: ``indptr[row]`` is given; receives the ends of the rows.
        row: Of the first seed in ``indptr``.
        neighbors: Receives numbers, most visited first.
        weights: Receives shares of the visits kept, summing to 1 in each row.

    Returns:
        The end of the last row, or -1 if a seed is not in the graph.
    """
    end = indptr[row]
    for j in range(low, high):
        seed = nodes[j]
        if seed < 0 or seed >= offsets[-1]:
            return -1
        own = mix64(key ^ np.uint64(seed))
        num_used = _count_visits(
            offsets,
            table,
            wide,
            back_offsets,
            back_table,
            back_wide,
            has_back,
            seed,
            own,
            num_walks,
            walk_length,
            restart,
            walkers,
            slots,
            counts,
            used,
        )
        # Those to skip are sorted too: which they are is known only beside the others.
        size = min(num_used, skip + num_neighbors)
        _sort_best(counts, slots, used, num_used, size)
        total = 0
        for k in range(skip, size):
            total += counts[used[k]]
        for k in range(skip, size):
            neighbors[end] = slots[used[k]]
            weights[end] = np.float32(np.float64(counts[used[k]]) / np.float64(total))
            end += 1
        for k in range(num_used):
            # Only what was used, as the table is far longer than one seed's visits.
            slots[used[k]] = -1
        indptr[row + j - low + 1] = end
    return int(end)


@lean_jit
def step_nodes(
    offsets: Ints,
    table: Words,
    wide: Wide,
    nodes: Ints,
    key: np.uint64,
    out: Ints,
) -> None:
    """Take one step of many walks at once.

    Args:
        offsets: First numbers of the partitions ``[P + 1]``.
        table: Addresses of the rows.
        wide: Their dtypes.
        nodes: Where each walk is; -1 for one that has ended ``[n]``.
        key: Of this step's draws; walk k draws number k.
        out: Receives where each walk is then, -1 at a dead end ``[n]``.
    """
    for k in range(len(nodes)):
        out[k] = -1
        if nodes[k] >= 0:
            word = mix64(key + np.uint64(k) * _GOLDEN)
            out[k] = _step(offsets, table, wide, nodes[k], word)
