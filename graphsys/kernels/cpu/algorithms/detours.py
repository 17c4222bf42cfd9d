"""The shortest path between two nodes of a graph from which some are taken out.

Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1, 1959,
over the pairs of length and number of edges; the heap knows where each node is in it, so
that it holds every node once. O((N + E) log N), less where the target is near.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_jit

_UNSEEN, _DONE = -1, -2
"""Places of nodes that are not in the heap."""


class SearchState(NamedTuple):
    """What a search keeps of every node; a search leaves it as it was made.

    Attributes:
        distance: Length of the path found ``[N]``.
        edges: Its number of edges ``[N]``.
        parent: The node before ``[N]``.
        place: Where it is in the heap, or -1 at first ``[N]``.
        heap: Scratch ``[N]``.
        found: Scratch ``[N]``.
        is_barred: Which nodes no path may visit ``[N]``.
        is_closed: Which nodes may not follow the first ``[N]``.
    """

    distance: npt.NDArray[np.float64]
    edges: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    heap: npt.NDArray[np.int64]
    found: npt.NDArray[np.int64]
    is_barred: npt.NDArray[np.bool_]
    is_closed: npt.NDArray[np.bool_]


@lean_jit
def _is_before(state: SearchState, one: int, other: int) -> bool:
    if state.distance[one] != state.distance[other]:
        return bool(state.distance[one] < state.distance[other])
    return bool(state.edges[one] < state.edges[other])


@lean_jit
def _rise(state: SearchState, place: int) -> None:
    """Move an entry of the heap up to where it belongs."""
    heap, node = state.heap, state.heap[place]
    while place > 0:
        above = (place - 1) >> 1
        if not _is_before(state, node, heap[above]):
            break
        heap[place] = heap[above]
        state.place[heap[place]] = place
        place = above
    heap[place] = node
    state.place[node] = place


@lean_jit
def _take_first(state: SearchState, size: int) -> int:
    """Take the first node out of a heap of so many."""
    heap, first = state.heap, state.heap[0]
    state.place[first] = _DONE
    size -= 1
    if size == 0:
        return int(first)
    node, place = heap[size], 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _is_before(state, heap[below + 1], heap[below]):
            below += 1
        if not _is_before(state, heap[below], node):
            break
        heap[place] = heap[below]
        state.place[heap[place]] = place
        place = below
    heap[place] = node
    state.place[node] = place
    return int(first)


@lean_jit
def find_detour(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    weight_begins: npt.NDArray[Any],
    weight: npt.NDArray[Any],
    start: int,
    target: int,
    length: float,
    rank: npt.NDArray[Any],
    state: SearchState,
    path: npt.NDArray[np.int64],
) -> int:
    """Find the shortest path that visits no barred node; of few edges and small ids.

    Args:
        begins: Where each row of out-neighbors begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Out-neighbors ``[E]``.
        weight_begins: Where each row begins in the lengths ``[N]``.
        weight: Lengths, none negative ``[E]``; or of length 0: all are 1.
        start: Number of the first node.
        target: Number of the last.
        length: What the way to the first node is long.
        rank: Places of the nodes in the order that decides ``[N]``, or has length 0 where
            that is the order of the numbers.
        state: See there.
        path: Receives the nodes of the path, the last one first ``[N]``.

    Returns:
        How many nodes it has; 0 if there is none.
    """
    distance, edges, parent, place = state.distance, state.edges, state.parent, state.place
    distance[start], edges[start], parent[start] = length, 0, -1
    state.heap[0], place[start], state.found[0] = start, 0, start
    size, num_found, has_path = 1, 1, False
    while size > 0:
        node = np.int64(_take_first(state, size))
        size -= 1
        if node == target:
            has_path = True
            break
        for entry in range(np.int64(begins[node]), np.int64(ends[node])):
            other = np.int64(indices[entry])
            is_shut = node == start and state.is_closed[other]
            if place[other] == _DONE or state.is_barred[other] or is_shut:
                continue
            far = distance[node] + 1.0
            if len(weight) > 0:
                shift = np.int64(weight_begins[node]) - np.int64(begins[node])
                far = distance[node] + np.float64(weight[entry + shift])
            if far == np.inf:
                continue
            if place[other] == _UNSEEN:
                state.heap[size], state.found[num_found] = other, other
                place[other] = size
                size += 1
                num_found += 1
            elif far == distance[other] and edges[node] + 1 == edges[other]:
                known = parent[other]
                is_first = node < known
                if len(rank) > 0:
                    is_first = np.int64(rank[node]) < np.int64(rank[known])
                if is_first:
                    parent[other] = node
                continue
            elif far > distance[other] or (
                far == distance[other] and edges[node] + 1 > edges[other]
            ):
                continue
            distance[other], edges[other] = far, edges[node] + 1
            parent[other] = node
            _rise(state, place[other])
    for k in range(num_found):
        place[state.found[k]] = _UNSEEN
    if not has_path:
        return 0
    count, node = 0, np.int64(target)
    while node >= 0:
        path[count] = node
        count += 1
        node = parent[node]
    return count
