"""Shortest paths by delta-stepping: bins of linked blocks, and relaxing their nodes.

Nodes wait in bins of width ``delta`` by distance. The first bin that is not empty is
gathered into a frontier and relaxed; what falls into it again is gathered anew, and once
it stays empty its nodes are settled. A bitmap of settled nodes is looked at before the
distance of a neighbor: it fits the second level cache, distances do not.

While ``scale[LIMIT]`` is finite, edges that lead to that bin or behind it are put off:
the stream of weights alone tells which. See shortest_path_windows.py for what becomes of
them. Without a limit, distances behind the window of bins go to one last bin, each node
once, and are spread over the next window.

A node enters a bin when its distance moves there from another bin, and always if that is
the current bin. Entries left behind in later bins are recognized by their node being
settled. If the pool of blocks runs out, entries are dropped and ``status[OVERFLOW]`` is
set; ``refill`` then finds every waiting node: those reached, but not settled.

Large frontiers are relaxed by shortest_path_rows.py, those of many middling bins by
shortest_path_team.py.

Sums run along paths in float64 and are monotone, so the distances are those of Dijkstra's
algorithm bit for bit, whatever the order of relaxations.

Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J. Algorithms
49(1), 2003; GAPBS (sssp.cc) for handling light and heavy edges alike.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_add, atomic_or, compare_exchange
from graphsys.kernels.cpu.bits import Words, clear_bit, has_bit, set_bit
from graphsys.kernels.cpu.prefetch import prefetch
from graphsys.kernels.cpu.rows.csr import WeightedCsr
from graphsys.kernels.jit import lean_inline_jit, lean_jit

BLOCK = 64
ROOM = 1024  # light edges that a thread notes before it relaxes them
# places in ``status``
BIN = 0  # current bin, counted from BASE
BASE = 1  # number of the window's first bin
NUM_FRONTIER = 2
NUM_BUCKET = 3
NEXT = 4  # next chunk of the frontier
NEW_BLOCK = 5  # first block of the pool that was never used
OVERFLOW = 6
ROUNDS = 7
SETTLED_EDGES = 8  # edges of all nodes ever gathered
PUT_OFF = 9  # whether any edge was put off
STATUS_SIZE = 16
# places in ``scale``
INVERSE = 0  # one over the width of a bin
LIMIT = 1  # bin from which on edges are put off
LEAST_WEIGHT = 2
NEAREST = 3  # least distance among the edges put off, where asked for
LARGEST_BIN = 2.0**52
# what step_small_bins says
DONE = 0
LARGE = 1
MIDDLING = 2
_MIDDLING_BINS = 16  # one after the other, before other threads are worth calling

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@lean_inline_jit
def degree_of(rows: Any, node: Any) -> np.int64:
    """Return how many neighbors a node has."""
    return np.int64(rows.ends[node]) - np.int64(rows.begins[node])


@lean_inline_jit
def weight_shift(rows: Any, node: Any) -> np.int64:
    """Return how much later than its neighbor the weight of a node's edge stands."""
    return np.int64(rows.weight_begins[node]) - np.int64(rows.begins[node])


class Nodes(NamedTuple):
    """What is known of the nodes.

    Attributes:
        distance: Distances so far, infinite where not reached ``[N]``.
        frontier: Nodes gathered, ``status[NUM_FRONTIER]`` of them ``[N]``.
        bucket: Nodes gathered since the bin was begun ``[N]``.
        queued: The frontier as a bitmap.
        entered: Nodes ever gathered.
        settled: Nodes whose distance is final: those of the bins before.
    """

    distance: Floats
    frontier: npt.NDArray[Any]
    bucket: npt.NDArray[Any]
    queued: Words
    entered: Words
    settled: Words


class Bins(NamedTuple):
    """Each thread's bins, linked lists of blocks of which all but the first are full.

    Attributes:
        heads: First block of every bin, or -1; the last bin is for all behind the window
            ``[T, W + 1]``.
        fills: Entries in that block ``[T, W + 1]``.
        free: First block given back by each thread, or -1 ``[T, 8]``.
        following: The block behind each block ``[P]``.
        items: Entries ``[P * BLOCK]``.
        light: Places of light edges found and not yet relaxed ``[T * ROOM]``.
        sums: The distances along them ``[T * ROOM]``.
    """

    heads: Integers
    fills: Integers
    free: Integers
    following: Integers
    items: npt.NDArray[Any]
    light: Integers
    sums: Floats


@lean_inline_jit
def push(thread: Any, place: Any, node: Any, bins: Any, status: Any) -> None:
    """Add a node to one of a thread's bins, unless the pool is exhausted."""
    block = bins.heads[thread, place]
    fill = bins.fills[thread, place]
    # Blocks that this thread gave back come first: they are in its cache, and cost no
    # atomic.
    if block < 0 or fill == BLOCK:
        new = bins.free[thread, 0]
        if new >= 0:
            bins.free[thread, 0] = bins.following[new]
        else:
            new = atomic_add(status, NEW_BLOCK, 1)
            if new >= len(bins.following):
                status[OVERFLOW] = 1
                return
        bins.following[new] = block
        bins.heads[thread, place] = new
        block = new
        fill = 0
    bins.items[block * BLOCK + fill] = node
    bins.fills[thread, place] = fill + 1


@lean_jit
def start_at(node: int, nodes: Nodes, bins: Bins, status: Integers) -> None:
    """Let the source wait in the first bin; nothing waits yet."""
    nodes.distance[node] = 0.0
    push(0, 0, node, bins, status)


@lean_inline_jit
def bin_of(distance: Any, scale: Any) -> np.int64:
    """Return the number of a distance's bin."""
    return np.int64(min(distance * scale[INVERSE], LARGEST_BIN))


@lean_inline_jit
def weight_below(own: Any, limit: Any, scale: Any) -> float:
    """Return the weight from which on the edges of a node are put off.

    It is rounded up: what is put off lies at the limit or behind it; what is not may lie
    in the limit's own bin, which does no harm.
    """
    end = limit / scale[INVERSE]
    heaviest: float = end - own + 1e-12 * end
    return heaviest


@lean_inline_jit
def lower(
    thread: Any, node: Any, new: Any, distance: Any, bins: Any, scale: Any, status: Any
) -> None:
    """Lower a node's distance if it is larger, and let the node wait in its bin."""
    old = distance[node]
    while new < old:
        # Another thread was faster: lower by what it wrote, or leave it if that is nearer.
        if not compare_exchange(distance, np.int64(node), old, new):
            old = distance[node]
            continue
        last = bins.heads.shape[1] - 1
        place = bin_of(new, scale) - status[BASE]
        if place >= last:
            if old == np.inf:
                push(thread, last, node, bins, status)
        elif (
            old == np.inf
            or place == status[BIN]
            or place != bin_of(old, scale) - status[BASE]
        ):
            push(thread, place, node, bins, status)
        break


@lean_inline_jit
def is_open(settled: Any, node: Any) -> bool:
    """Return whether a node may come nearer; yes without a bitmap that tells."""
    if settled is None:
        return True
    return not has_bit(settled, node)


@lean_inline_jit
def relax(
    thread: Any,
    node: Any,
    rows: Any,
    distance: Any,
    settled: Any,
    bins: Any,
    scale: Any,
    status: Any,
) -> None:
    """Relax the edges of one node that lead to bins below the limit."""
    own = distance[node]
    begin, end = np.int64(rows.begins[node]), np.int64(rows.ends[node])
    shift = weight_shift(rows, node)
    if scale[LIMIT] == np.inf:
        for e in range(begin, end):
            other = rows.indices[e]
            if is_open(settled, other):
                new = own + np.float64(rows.weight[e + shift])
                lower(thread, other, new, distance, bins, scale, status)
        return
    # The weights alone say which edges are put off: destinations of the rest stay unread.
    heaviest = weight_below(own, scale[LIMIT], scale)
    num_left = end - begin
    if heaviest > scale[LEAST_WEIGHT]:
        for e in range(begin, end):
            weight = np.float64(rows.weight[e + shift])
            if weight < heaviest:
                num_left -= 1
                other = rows.indices[e]
                if is_open(settled, other):
                    lower(thread, other, own + weight, distance, bins, scale, status)
    if num_left:
        status[PUT_OFF] = 1


@lean_inline_jit
def gather(
    owner: Any, is_shared: Any, rows: Any, nodes: Any, bins: Any, status: Any
) -> np.int64:
    """Empty one thread's current bin into the frontier; return the number of edges.

    With ``is_shared`` several threads may do this, each with its own bin.
    """
    block = bins.heads[owner, status[BIN]]
    fill = bins.fills[owner, status[BIN]]
    bins.heads[owner, status[BIN]] = -1
    bins.fills[owner, status[BIN]] = 0
    edges = np.int64(0)
    new_edges = np.int64(0)
    while block >= 0:
        for k in range(block * BLOCK, block * BLOCK + fill):
            node = bins.items[k]
            if k + 16 < block * BLOCK + fill:
                prefetch(rows.begins, np.int64(bins.items[k + 16]))
                prefetch(rows.ends, np.int64(bins.items[k + 16]))
            if has_bit(nodes.settled, node) or has_bit(nodes.queued, node):
                continue
            degree = degree_of(rows, node)
            word = np.int64(node) >> 6
            bit = np.uint64(1) << (np.uint64(node) & np.uint64(63))
            if is_shared:
                # Two threads may hold the same node: who set the bit takes it.
                if atomic_or(nodes.queued, word, bit) & bit != 0:
                    continue
                nodes.frontier[atomic_add(status, NUM_FRONTIER, 1)] = node
                if atomic_or(nodes.entered, word, bit) & bit == 0:
                    nodes.bucket[atomic_add(status, NUM_BUCKET, 1)] = node
                    new_edges += degree
            else:
                nodes.queued[word] |= bit
                nodes.frontier[status[NUM_FRONTIER]] = node
                status[NUM_FRONTIER] += 1
                if nodes.entered[word] & bit == 0:
                    nodes.entered[word] |= bit
                    nodes.bucket[status[NUM_BUCKET]] = node
                    status[NUM_BUCKET] += 1
                    new_edges += degree
            edges += degree
        # The emptied block goes to the owner's free list, read before it is linked anew.
        below = bins.following[block]
        bins.following[block] = bins.free[owner, 0]
        bins.free[owner, 0] = block
        block = below
        fill = BLOCK
    atomic_add(status, SETTLED_EDGES, new_edges)
    return edges


@lean_jit
def gather_bin(
    thread: int,
    rows: WeightedCsr,
    nodes: Nodes,
    bins: Bins,
    scale: Floats,
    status: Integers,
) -> np.int64:
    """Empty this thread's current bin into the frontier; return its number of edges."""
    return gather(thread, True, rows, nodes, bins, status)


@lean_jit
def clear_queued(nodes: Nodes, status: Integers) -> None:
    """Take the frontier out of its bitmap."""
    for k in range(status[NUM_FRONTIER]):
        clear_bit(nodes.queued, nodes.frontier[k])


@lean_jit
def step_small_bins(
    rows: WeightedCsr,
    nodes: Nodes,
    bins: Bins,
    scale: Floats,
    status: Integers,
    most_edges: int,
    middling_edges: int,
) -> int:
    """Work through the bins in one thread while their frontiers are small.

    Args:
        rows: Out-neighbors; weights are not negative.
        nodes: See the class; updated.
        bins: See the class; updated.
        scale: See the names above.
        status: See the names above.
        most_edges: Leave larger frontiers to all threads.
        middling_edges: Leave bins to them, too, if so many come again and again.

    Returns:
        ``LARGE`` if the frontier is: gathered in part, and not relaxed. ``MIDDLING`` if
        those of several bins were. ``DONE`` if the bins up to the limit, or all of the
        window, are empty, or the pool has overflowed.
    """
    threads = bins.heads.shape[0]
    end = bins.heads.shape[1] - 1
    if scale[LIMIT] < end:
        end = np.int64(scale[LIMIT])
    middling, bin_edges = 0, np.int64(0)
    while status[OVERFLOW] == 0:
        is_waiting = False
        for owner in range(threads):
            is_waiting |= bins.heads[owner, status[BIN]] >= 0
        if not is_waiting:
            # Final only now: as long as the bin filled again its nodes could still come
            # nearer.
            for k in range(status[NUM_BUCKET]):
                set_bit(nodes.settled, nodes.bucket[k])
            status[NUM_BUCKET] = 0
            status[BIN] += 1
            if status[BIN] >= end:
                return DONE
            if bin_edges:
                middling = middling + 1 if bin_edges >= middling_edges else 0
                bin_edges = np.int64(0)
            if middling == _MIDDLING_BINS:
                return MIDDLING
            continue
        edges = np.int64(0)
        status[NUM_FRONTIER] = 0
        status[ROUNDS] += 1
        for owner in range(threads):
            # A frontier that has become large is left as it is: all threads gather the
            # rest.
            if edges <= most_edges:
                edges += gather(owner, False, rows, nodes, bins, status)
        if edges > most_edges:
            return LARGE
        bin_edges += edges
        clear_queued(nodes, status)
        for k in range(status[NUM_FRONTIER]):
            node = nodes.frontier[k]
            relax(0, node, rows, nodes.distance, nodes.settled, bins, scale, status)
    return DONE
