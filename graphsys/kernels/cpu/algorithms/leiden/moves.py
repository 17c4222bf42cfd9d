"""Leiden's first step: nodes move to the best community next to them.

Where many nodes may want to move, threads decide for a sixty-fourth of them at a time,
chosen by a hash, against communities that stand still meanwhile; then all moves are made.
Where few may, one thread moves one after the other, in the order of a hash. Neither which
thread decides nor how nodes are numbered plays a part: see ``rows.py`` for the sums.

Sub-rounds: Gottesbueren, Heuer, Sanders, Seemaier, "Deterministic parallel hypergraph
partitioning", Euro-Par 2022. Which nodes look again: Traag, Waltman, van Eck, "From Louvain
to Leiden: guaranteeing well-connected communities", Scientific Reports 9, 2019; and Sahu,
"GVE-Leiden: fast Leiden algorithm for community detection in shared memory setting",
arXiv 2312.13936.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.leiden.rows import (
    Sides,
    add_links,
    num_sides,
    side_of,
)
from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.barrier import meet
from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.jit import jit, lean_inline_jit, lean_jit

NUM_SUBROUNDS = 64
"""Parts of the nodes that decide together."""
COUNTER_SIZE = 8
_BLOCK = 16
CALM, READY, RESTLESS = 0, 1, 2
"""A node has nothing to look at; has to look; would rather be alone, which one thread does
for all such."""


class CommunityNodes(NamedTuple):
    """What is known of the nodes and the communities of a level.

    Attributes:
        community: Community of every node, below n ``[n]``.
        strength: Sum of the weights of every node, loops twice, float64 ``[n]``.
        totals: Sum of the strengths of every community's nodes, float64 ``[n]``.
        state: Whether a node has to look, uint8 ``[n]``.
        rank: Place of every node in the order of ids ``[n]``; empty where it is the number.
    """

    community: npt.NDArray[Any]
    strength: npt.NDArray[np.float64]
    totals: npt.NDArray[np.float64]
    state: npt.NDArray[np.uint8]
    rank: npt.NDArray[Any]


@lean_inline_jit
def rank_of(rank: Any, node: Any) -> Any:
    """Return a node's place in the order of ids."""
    return np.int64(rank[node]) if len(rank) else np.int64(node)


@lean_inline_jit
def subround_of(seed: Any, rank: Any) -> Any:
    """Return in which of the sub-rounds a node decides."""
    return np.int64(mix64(seed ^ np.uint64(rank)) >> np.uint64(58))


@lean_inline_jit
def _best_of(
    node: Any,
    rows: Any,
    unit: Any,
    nodes: Any,
    scale: Any,
    least: Any,
    links: Any,
    touched: Any,
) -> Any:
    """Return the best community for a node and its gain; the smallest of equal ones.

    The gain is over being alone, in the node's own community more by ``least``.
    """
    num_touched = add_links(node, rows, unit, nodes.community, links, touched, 0)
    old = np.int64(nodes.community[node])
    own = nodes.strength[node]
    pull = scale * own
    best = old
    # The own community leads by `least`, so that rounding alone never moves a node.
    best_gain = links[old] - pull * (nodes.totals[old] - own) + least
    for k in range(num_touched):
        c = np.int64(touched[k])
        if c != old:
            gain = links[c] - pull * nodes.totals[c]
            if gain > best_gain or (gain == best_gain and best != old and c < best):
                best, best_gain = c, gain
        links[c] = 0.0
    return best, best_gain


@lean_jit
def count_ready(
    thread: int,
    state: npt.NDArray[np.uint8],
    rank: npt.NDArray[Any],
    seed: np.uint64,
    chunk_size: int,
    counter: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> None:
    """Count the nodes that have to look, by chunk and by sub-round.

    Args:
        state: State of every node ``[n]``.
        rank: See :class:`CommunityNodes`.
        seed: Decides which sub-round is whose.
        chunk_size: Nodes of a chunk.
        counter: Zero, int64 ``[1]``.
        counts: Zeros; receives how many there are, int64 ``[C, NUM_SUBROUNDS]``.
    """
    for chunk in claimed_range(0, len(counts), 1, counter):
        first = chunk * chunk_size
        for node in range(first, min(first + chunk_size, len(state))):
            if state[node] == READY:
                counts[chunk, subround_of(seed, rank_of(rank, node))] += 1


@lean_jit
def list_ready(
    thread: int,
    state: npt.NDArray[np.uint8],
    rank: npt.NDArray[Any],
    seed: np.uint64,
    chunk_size: int,
    counter: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    order: npt.NDArray[Any],
) -> None:
    """List the nodes that have to look, sub-round after sub-round, ascending in each.

    Args:
        places: Where each chunk's nodes of each sub-round begin, int64
            ``[C, NUM_SUBROUNDS]``; advanced.
        order: Receives the nodes.
    """
    for chunk in claimed_range(0, len(places), 1, counter):
        first = chunk * chunk_size
        for node in range(first, min(first + chunk_size, len(state))):
            if state[node] == READY:
                subround = subround_of(seed, rank_of(rank, node))
                order[places[chunk, subround]] = node
                places[chunk, subround] += 1


@lean_jit
def move_together(
    thread: int,
    num_threads: int,
    rows: Sides,
    unit: float,
    nodes: CommunityNodes,
    scale: float,
    least: float,
    order: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
    target: npt.NDArray[Any],
    verdict: npt.NDArray[np.uint8],
    links: npt.NDArray[np.float64],
    touched: npt.NDArray[Any],
    counters: npt.NDArray[np.int64],
    meeting: npt.NDArray[np.int64],
) -> int:
    """Let all listed nodes move once, those of one sub-round at the same time.

    Args:
        rows: The level's rows.
        unit: What turns weights into whole numbers.
        nodes: The nodes; changed.
        scale: Resolution divided by the sum of all strengths.
        least: A gain must be above this, against endless moves by rounding.
        order: The nodes that look, sub-round after sub-round.
        bounds: Where each sub-round begins in ``order``, int64 ``[NUM_SUBROUNDS + 1]``.
        target: Scratch of the length of ``order``.
        verdict: Scratch of the length of ``order``.
        links: Zeros, float64 ``[threads, n]``; zeros again afterwards.
        touched: Scratch ``[threads, n]``.
        counters: Zeros, int64 ``[3 * NUM_SUBROUNDS, COUNTER_SIZE]``.
        meeting: Zeros: see ``barrier.py``.

    Returns:
        How many moves this thread made.
    """
    own_links, own_touched = links[thread], touched[thread]
    num_moves = 0
    for subround in range(NUM_SUBROUNDS):
        first, last = bounds[subround], bounds[subround + 1]
        if first == last:
            continue
        for k in claimed_range(first, last, _BLOCK, counters[3 * subround]):
            node = order[k]
            best, gain = _best_of(
                node, rows, unit, nodes, scale, least, own_links, own_touched
            )
            target[k] = best
            # Better off alone; which empty community it takes depends on the order, so one
            # thread does it later.
            verdict[k] = RESTLESS if gain < 0.0 else CALM
        # All have decided before any moves: decisions see one state, whoever makes them.
        meet(meeting, num_threads)
        for k in claimed_range(first, last, _BLOCK, counters[3 * subround + 1]):
            node = order[k]
            nodes.state[node] = verdict[k]
            old, best = np.int64(nodes.community[node]), np.int64(target[k])
            # The verdict's place is used again, to say who moved.
            verdict[k] = old != best
            if old != best:
                nodes.community[node] = best
                atomic_add(nodes.totals, old, -nodes.strength[node])
                atomic_add(nodes.totals, best, nodes.strength[node])
                num_moves += 1
        meet(meeting, num_threads)
        # the next sub-round reads none of what this writes, and changes communities only
        # after the next meeting
        for k in claimed_range(first, last, _BLOCK, counters[3 * subround + 2]):
            if verdict[k]:
                node, best = order[k], np.int64(target[k])
                for side in range(num_sides(rows)):
                    begin, end, _, indices, _ = side_of(rows, side, node)
                    for j in range(begin, end):
                        other = indices[j]
                        if (
                            nodes.state[other] != READY
                            and np.int64(nodes.community[other]) != best
                        ):
                            nodes.state[other] = READY
    return num_moves


@jit
def _by_hash(queue: Any, num: Any, rank: Any, seed: Any) -> Any:
    keys = np.empty(num, dtype=np.uint64)
    for k in range(num):
        keys[k] = mix64(seed ^ np.uint64(rank_of(rank, queue[k])))
    return np.argsort(keys)


@lean_jit
def _move_listed(
    rows: Any,
    unit: Any,
    nodes: Any,
    scale: Any,
    least: Any,
    listed: Any,
    links: Any,
    touched: Any,
    queue: Any,
    sizes: Any,
    empty: Any,
    num_empty: Any,
) -> Any:
    """Let listed nodes move one after the other, and queue whom that concerns.

    Returns:
        How many moves were made, nodes wait, and communities are empty.
    """
    num_moves = waiting = 0
    for j in range(len(listed)):
        node = listed[j]
        nodes.state[node] = CALM
        old = np.int64(nodes.community[node])
        own = nodes.strength[node]
        best, gain = _best_of(node, rows, unit, nodes, scale, least, links, touched)
        if gain < 0.0 and num_empty > 0 and sizes[old] > 1:
            num_empty -= 1
            best = np.int64(empty[num_empty])
        if best == old:
            continue
        num_moves += 1
        nodes.community[node] = best
        nodes.totals[old] -= own
        nodes.totals[best] += own
        sizes[old] -= 1
        sizes[best] += 1
        if sizes[old] == 0:
            empty[num_empty] = old
            num_empty += 1
        for side in range(num_sides(rows)):
            begin, end, _, indices, _ = side_of(rows, side, node)
            for k in range(begin, end):
                other = indices[k]
                is_ready = nodes.state[other] == READY
                if not is_ready and np.int64(nodes.community[other]) != best:
                    nodes.state[other] = READY
                    queue[waiting] = other
                    waiting += 1
    return num_moves, waiting, num_empty


@jit
def move_singly(
    rows: Sides,
    unit: float,
    nodes: CommunityNodes,
    scale: float,
    least: float,
    seed: np.uint64,
    most: int,
    links: npt.NDArray[np.float64],
    touched: npt.NDArray[Any],
    queue: npt.NDArray[Any],
) -> int:
    """Let nodes move one after the other until none gains, or too many have to look.

    Args:
        rows: The level's rows.
        unit: What turns weights into whole numbers.
        nodes: The nodes; changed. All that are not calm look first.
        scale: Resolution divided by the sum of all strengths.
        least: A gain must be above this, against endless moves by rounding.
        seed: Seed of the order.
        most: Stop where more nodes than that wait; they are ready then.
        links: Zeros, float64 ``[n]``; zeros again afterwards.
        touched: Scratch ``[n]``.
        queue: Scratch ``[n]``.

    Returns:
        How many moves were made.
    """
    num = len(nodes.community)
    sizes = np.zeros(num, dtype=queue.dtype)
    waiting = 0
    for node in range(num):
        sizes[nodes.community[node]] += 1
        if nodes.state[node] != CALM:
            nodes.state[node] = READY
            queue[waiting] = node
            waiting += 1
    empty = np.empty(num + 1, dtype=queue.dtype)
    num_empty = 0
    for c in range(num - 1, -1, -1):
        if sizes[c] == 0:
            empty[num_empty] = c
            num_empty += 1
    num_moves = 0
    while 0 < waiting <= most:
        # which nodes wait is the same whatever the order of rows is; so is this order
        places = _by_hash(queue, waiting, nodes.rank, seed)
        seed = mix64(seed)
        listed = queue[:waiting][places]
        moved, waiting, num_empty = _move_listed(
            rows,
            unit,
            nodes,
            scale,
            least,
            listed,
            links,
            touched,
            queue,
            sizes,
            empty,
            num_empty,
        )
        num_moves += moved
    return num_moves
