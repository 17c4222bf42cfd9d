"""Flows by blocking flows over levels, and sides of bipartite graphs.

Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
estimation", Soviet Mathematics Doklady 11, 1970. What is left of an arc that a path fills
is 0 to the bit, so that every search ends in floating point too. Hopcroft, Karp, "An
n^5/2 algorithm for maximum matchings in bipartite graphs", SIAM Journal on Computing 2(4),
1973, is the same over edges that carry one.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_jit


class Arcs(NamedTuple):
    """Arcs, each with the one back, and what they can still take.

    Attributes:
        begins: Where the arcs of each node begin, and the end ``[N + 1]``.
        ends: The node that each leads to ``[A]``.
        back: The place of the arc back ``[A]``.
        room: What each can take; updated ``[A]``.
    """

    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    back: npt.NDArray[np.int64]
    room: npt.NDArray[np.float64]


@lean_jit
def find_flow_levels(
    arcs: Arcs,
    source: int,
    target: int,
    level: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
) -> bool:
    """Give nodes their hops from the source along arcs that have room.

    Args:
        arcs: See there.
        source: Number of the source.
        target: Number of the target; nodes beyond it are left out.
        level: Receives the hops, -1 where none lead ``[N]``.
        queue: Scratch ``[N]``.

    Returns:
        Whether the target is reached.
    """
    for node in range(len(level)):
        level[node] = -1
    level[source], queue[0] = 0, source
    first, last = 0, 1
    # Levels beyond the target's are of no use: shortest paths end there.
    while first < last and level[target] < 0:
        near = queue[first]
        first += 1
        for arc in range(arcs.begins[near], arcs.begins[near + 1]):
            other = arcs.ends[arc]
            if arcs.room[arc] > 0.0 and level[other] < 0:
                level[other] = level[near] + 1
                queue[last] = other
                last += 1
    return bool(level[target] >= 0)


@lean_jit
def push_along_levels(
    arcs: Arcs,
    source: int,
    target: int,
    level: npt.NDArray[np.int64],
    place: npt.NDArray[np.int64],
    path: npt.NDArray[np.int64],
) -> float:
    """Fill paths along the levels until each has an arc without room.

    Args:
        arcs: See there.
        source: Number of the source.
        target: Number of the target.
        level: Hops from the source ``[N]``.
        place: Scratch ``[N]``: which arc each node tries.
        path: Scratch ``[N]``: arcs from the source to where the search is.

    Returns:
        What the paths carry.
    """
    total, depth, node = 0.0, 0, source
    for one in range(len(place)):
        # An arc that fails once fails until levels change, so each is tried once a phase.
        place[one] = arcs.begins[one]
    while True:
        if node == target:
            least = np.inf
            for k in range(depth):
                least = min(least, arcs.room[path[k]])
            total += least
            # The search goes on from the first full arc: what lies before it still has
            # room.
            full = depth
            for k in range(depth - 1, -1, -1):
                arc = path[k]
                arcs.room[arc] -= least
                arcs.room[arcs.back[arc]] += least
                if arcs.room[arc] == 0.0:
                    full = k
            depth = full  # back to before the first arc that is full now
            node = source if depth == 0 else arcs.ends[path[depth - 1]]
            continue
        end = arcs.begins[node + 1]
        while place[node] < end:
            arc = place[node]
            if arcs.room[arc] > 0.0 and level[arcs.ends[arc]] == level[node] + 1:
                break
            place[node] += 1
        if place[node] < end:
            path[depth] = place[node]
            depth += 1
            node = arcs.ends[path[depth - 1]]
        elif depth == 0:
            return total
        else:
            depth -= 1
            node = arcs.ends[arcs.back[path[depth]]]
            place[node] += 1


@lean_jit
def find_sides(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    starts: npt.NDArray[Any],
    side: npt.NDArray[np.int8],
    queue: npt.NDArray[Any],
) -> int:
    """Part the nodes in two, so that all edges lead from one part to the other.

    Args:
        begins: Where each row of an undirected graph begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Neighbors ``[E]``.
        starts: The nodes, those first that decide which side is 0 ``[N]``; empty for 0,
            1, 2 ...
        side: -1 everywhere; receives 0 or 1, 0 of the first of a component ``[N]``.
        queue: Scratch ``[N]``.

    Returns:
        -1; or a node that has an edge to one of its own side.
    """
    for number in range(len(side)):
        start = np.int64(starts[number]) if len(starts) else number
        if side[start] >= 0:
            continue
        side[start], queue[0] = 0, start
        first, last = 0, 1
        while first < last:
            node = np.int64(queue[first])
            first += 1
            for entry in range(np.int64(begins[node]), np.int64(ends[node])):
                other = np.int64(indices[entry])
                if side[other] < 0:
                    side[other] = 1 - side[node]
                    queue[last] = other
                    last += 1
                elif side[other] == side[node]:
                    return int(node)
    return -1
