"""The shortest path between two nodes of a graph from which some are taken out.

Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1, 1959,
over the pairs of length and number of edges; the heap knows where each node is in it, so
that it holds every node once. O((N + E) log N), less where the target is near.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.path_heap import (
    DONE,
    UNSEEN,
    PathHeap,
    rise,
    take_first,
)
from graphsys.kernels.jit import lean_jit


class SearchState(NamedTuple):
    """What a search keeps of every node; a search leaves it as it was made.

    Attributes:
        heap: Nodes that wait, and what is known of them.
        parent: The node before ``[N]``.
        found: Scratch ``[N]``.
        is_barred: Which nodes no path may visit ``[N]``.
        is_closed: Which nodes may not follow the first ``[N]``.
    """

    heap: PathHeap
    parent: npt.NDArray[np.int64]
    found: npt.NDArray[np.int64]
    is_barred: npt.NDArray[np.bool_]
    is_closed: npt.NDArray[np.bool_]


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
    distance, edges, place = state.heap.distance, state.heap.edges, state.heap.place
    parent = state.parent
    # `found` lists what was written, so that the end clears that alone and not N places.
    distance[start], edges[start], parent[start] = length, 0, -1
    state.heap.nodes[0], place[start], state.found[0] = start, 0, start
    size, num_found, has_path = 1, 1, False
    while size > 0:
        node = np.int64(take_first(state.heap, size))
        size -= 1
        if node == target:
            has_path = True
            break
        for entry in range(np.int64(begins[node]), np.int64(ends[node])):
            other = np.int64(indices[entry])
            is_shut = node == start and state.is_closed[other]
            if place[other] == DONE or state.is_barred[other] or is_shut:
                continue
            far = distance[node] + 1.0
            if len(weight) > 0:
                shift = np.int64(weight_begins[node]) - np.int64(begins[node])
                far = distance[node] + np.float64(weight[entry + shift])
            # Sums that overflow would be taken for paths.
            if far == np.inf:
                continue
            if place[other] == UNSEEN:
                state.heap.nodes[size], state.found[num_found] = other, other
                place[other] = size
                size += 1
                num_found += 1
            elif far == distance[other] and edges[node] + 1 == edges[other]:
                # Equal in length and edges: the smaller id decides, whatever order the heap
                # had.
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
            rise(state.heap, place[other])
    # Distances may stay: a place that says unseen says that they mean nothing.
    for k in range(num_found):
        place[state.found[k]] = UNSEEN
    if not has_path:
        return 0
    count, node = 0, np.int64(target)
    while node >= 0:
        path[count] = node
        count += 1
        node = parent[node]
    return count
