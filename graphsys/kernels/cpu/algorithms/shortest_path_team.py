"""Bins of middling size, worked through by all threads without a call in between.

In graphs of large diameter there are thousands of bins of some hundred nodes: too few to
wake threads for, and too many to be one thread's. Here threads stay in the kernel and meet
three times a bin: when their bins are gathered, when the frontier is relaxed, and when one
of them has said which bin is next. What a thread's relaxing lets fall into the bin again it
relaxes itself before it comes to meet the others (bucket fusion), so few bins take a
second round. Which nodes are settled is not noted, but told by distances: those of bins
before the current one. A pass over all nodes notes it when threads go.

Zhang, Brahmakshatriya, Chen, Dhulipala, Kamil, Amarasinghe, Shun, "Optimizing ordered graph
algorithms with GraphIt", CGO 2020.
"""

from typing import Any

import numpy as np

from graphsys.kernels.cpu.algorithms.shortest_paths import (
    BASE,
    BIN,
    BLOCK,
    LIMIT,
    NUM_FRONTIER,
    OVERFLOW,
    ROOM,
    ROUNDS,
    SETTLED_EDGES,
    Bins,
    Floats,
    Integers,
    Nodes,
    bin_of,
    degree_of,
    relax,
    weight_shift,
)
from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.barrier import MEETING_SIZE, meet
from graphsys.kernels.cpu.prefetch import prefetch
from graphsys.kernels.cpu.rows.csr import WeightedCsr
from graphsys.kernels.cpu.work_queue import claim, end_of, is_turn, write_piece
from graphsys.kernels.jit import lean_inline_jit, lean_jit

# places in ``meeting`` behind the barrier's, in lines of their own
NUM_PIECES = MEETING_SIZE
SAID = MEETING_SIZE + 8
TEAM_SIZE = MEETING_SIZE + 16
# what is said
GO_ON = 0
EMPTY = 1  # the bins up to the limit, or all of the window, are; or the pool overflowed
UNFIT = 2  # frontiers became few or large
_CHUNK = 32
_MOST_FUSED = 16  # blocks that a thread relaxes without the others
_PATIENCE = 32  # frontiers that are too small before threads go


@lean_inline_jit
def _gather_own(
    thread: Any, nodes: Any, bins: Any, scale: Any, status: Any, meeting: Any, pieces: Any
) -> None:
    """Empty a thread's current bin into pieces of the frontier, where it has room."""
    base = thread * ROOM
    filled = np.int64(0)
    block = bins.heads[thread, status[BIN]]
    fill = bins.fills[thread, status[BIN]]
    # What relaxing lets fall into this bin later begins a list of its own.
    bins.heads[thread, status[BIN]] = -1
    bins.fills[thread, status[BIN]] = 0
    while block >= 0:
        if filled + BLOCK > ROOM:
            _append(thread, filled, nodes, bins, status, meeting, pieces)
            filled = np.int64(0)
        for k in range(block * BLOCK, block * BLOCK + fill):
            node = bins.items[k]
            # Who got nearer since waits in an earlier bin too, and was relaxed from there.
            if bin_of(nodes.distance[node], scale) - status[BASE] == status[BIN]:
                bins.light[base + filled] = node
                filled += 1
        below = bins.following[block]
        bins.following[block] = bins.free[thread, 0]
        bins.free[thread, 0] = block
        block = below
        fill = BLOCK
    if filled:
        _append(thread, filled, nodes, bins, status, meeting, pieces)


@lean_inline_jit
def _append(
    thread: Any, filled: Any, nodes: Any, bins: Any, status: Any, meeting: Any, pieces: Any
) -> None:
    place = atomic_add(status, NUM_FRONTIER, filled)
    if place + filled > len(nodes.frontier):  # some wait several times
        status[OVERFLOW] = 1
        return
    for k in range(filled):
        nodes.frontier[place + k] = bins.light[thread * ROOM + k]
    piece = atomic_add(meeting, NUM_PIECES, 1)
    write_piece(pieces, piece, place, place + filled, thread)


@lean_inline_jit
def _relax_frontier(
    thread: Any,
    rows: Any,
    nodes: Any,
    bins: Any,
    scale: Any,
    status: Any,
    meeting: Any,
    pieces: Any,
) -> None:
    """Relax the own pieces of the frontier, those of others, then the own bin again."""
    num_pieces = meeting[NUM_PIECES]
    # First the own pieces, whose nodes this thread's cache holds; then those of others.
    for k in range(2 * num_pieces):
        piece = k % num_pieces
        if not is_turn(pieces, piece, thread, k < num_pieces):
            continue
        end = end_of(pieces, piece)
        while True:
            first = claim(pieces, piece, _CHUNK)
            if first == end:
                break
            last = min(first + _CHUNK, end)
            # Three rounds of asking, each for what the one before brought: no load waits
            # for another.
            for i in range(first, last):
                prefetch(nodes.distance, np.int64(nodes.frontier[i]))
                prefetch(rows.begins, np.int64(nodes.frontier[i]))
            for i in range(first, last):
                node = nodes.frontier[i]
                begin = np.int64(rows.begins[node])
                prefetch(rows.indices, begin)
                prefetch(rows.weight, begin + weight_shift(rows, node))
            for i in range(first, last):
                node = nodes.frontier[i]
                begin, stop = np.int64(rows.begins[node]), np.int64(rows.ends[node])
                for e in range(begin, min(stop, begin + 8)):
                    prefetch(nodes.distance, np.int64(rows.indices[e]))
            for i in range(first, last):
                node = nodes.frontier[i]
                relax(thread, node, rows, nodes.distance, None, bins, scale, status)
    # What relaxing let fall into this bin is done at once, without the others, but not
    # without bound: a thread that goes on alone holds all the others up.
    fused = 0
    while bins.heads[thread, status[BIN]] >= 0 and fused < _MOST_FUSED:
        block = bins.heads[thread, status[BIN]]
        fill = bins.fills[thread, status[BIN]]
        bins.heads[thread, status[BIN]] = bins.following[block]
        # Blocks below the head are full.
        bins.fills[thread, status[BIN]] = BLOCK
        for k in range(block * BLOCK, block * BLOCK + fill):
            node = bins.items[k]
            relax(thread, node, rows, nodes.distance, None, bins, scale, status)
        bins.following[block] = bins.free[thread, 0]
        bins.free[thread, 0] = block
        fused += 1


@lean_inline_jit
def _is_waiting(bins: Any, place: Any) -> bool:
    found = False
    for owner in range(bins.heads.shape[0]):
        found |= bins.heads[owner, place] >= 0
    return found


@lean_inline_jit
def _choose_next(bins: Any, scale: Any, status: Any, meeting: Any) -> None:
    """Say which bin is next, for all threads."""
    end = np.int64(bins.heads.shape[1] - 1)
    if scale[LIMIT] < end:
        end = np.int64(scale[LIMIT])
    meeting[NUM_PIECES] = 0
    status[NUM_FRONTIER] = 0
    if status[OVERFLOW]:
        meeting[SAID] = EMPTY
    else:
        while status[BIN] < end and not _is_waiting(bins, status[BIN]):
            status[BIN] += 1
        if status[BIN] >= end:
            meeting[SAID] = EMPTY


@lean_inline_jit
def _settle(thread: Any, rows: Any, nodes: Any, bins: Any, scale: Any, status: Any) -> None:
    """Note of a share of the nodes which are settled: those in front of the current bin."""
    threads, edges = bins.heads.shape[0], np.int64(0)
    current = status[BIN] + status[BASE]
    size, num_words = len(nodes.distance), len(nodes.settled)
    for word in range(thread * num_words // threads, (thread + 1) * num_words // threads):
        found = np.uint64(0)
        for node in range(64 * word, min(64 * word + 64, size)):
            distance = nodes.distance[node]
            if distance != np.inf and bin_of(distance, scale) < current:
                bit = np.uint64(1) << np.uint64(node & 63)
                found |= bit
                if nodes.entered[word] & bit == 0:
                    edges += degree_of(rows, node)
        nodes.settled[word] |= found
        nodes.entered[word] |= found
    atomic_add(status, SETTLED_EDGES, edges)


@lean_jit
def step_bins(
    thread: int,
    rows: WeightedCsr,
    nodes: Nodes,
    bins: Bins,
    scale: Floats,
    status: Integers,
    meeting: Integers,
    pieces: Integers,
    fewest: int,
    most: int,
) -> np.int64:
    """Work through the bins in all threads while their frontiers are neither few nor many.

    Args:
        thread: Number of this thread; all must run.
        rows: Out-neighbors; weights are not negative.
        nodes: See shortest_paths.py; updated.
        bins: See there; updated. The current bin is yet to be gathered.
        scale: See there.
        status: See there.
        meeting: Zeros ``[TEAM_SIZE]``.
        pieces: Room for a piece for each thread and ``ROOM`` nodes ``[P, PIECE_SIZE]``.
        fewest: Nodes of a frontier that are worth this.
        most: The bin of a larger frontier is the last.

    Returns:
        ``EMPTY`` or ``UNFIT``, the same for all threads.
    """
    threads = bins.heads.shape[0]
    patience = _PATIENCE
    while True:
        _gather_own(thread, nodes, bins, scale, status, meeting, pieces)
        meet(meeting, threads)
        size = status[NUM_FRONTIER]
        patience = _PATIENCE if size >= fewest else patience - 1
        _relax_frontier(thread, rows, nodes, bins, scale, status, meeting, pieces)
        meet(meeting, threads)
        if thread == 0:
            status[ROUNDS] += 1
            before = status[BIN]
            meeting[SAID] = GO_ON
            _choose_next(bins, scale, status, meeting)
            is_fit = size <= most and patience > 0
            # nodes relaxed already are settled with their whole bin only
            if meeting[SAID] == GO_ON and status[BIN] != before and not is_fit:
                meeting[SAID] = UNFIT
        meet(meeting, threads)
        if meeting[SAID] != GO_ON:
            _settle(thread, rows, nodes, bins, scale, status)
            return np.int64(meeting[SAID])
