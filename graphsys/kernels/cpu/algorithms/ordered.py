"""Serial algorithms whose result depends on the order of nodes and of their neighbors.

Rows need not be sorted: neighbors are visited as they stand. Each is O(N + E).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit

Rows = npt.NDArray[Any]


@jit
def search_in_order(
    indptr: Rows,
    indices: Rows,
    sources: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    parent: npt.NDArray[np.int64],
    depth: npt.NDArray[np.int64],
) -> int:
    """Search breadth first from all sources at once.

    Args:
        sources: Different nodes ``[S]``.
        order: Receives the nodes as they are found ``[N]``.
        parent: Receives the node that found each, -1 for sources ``[N]``.
        depth: -1 everywhere; receives the distance ``[N]``.

    Returns:
        How many nodes were found.
    """
    found = 0
    for source in sources:
        order[found], parent[source], depth[source] = source, -1, 0
        found += 1
    k = 0
    while k < found:
        node = order[k]
        for j in range(np.int64(indptr[node]), np.int64(indptr[node + 1])):
            other = np.int64(indices[j])
            if depth[other] < 0:
                depth[other], parent[other] = depth[node] + 1, node
                order[found] = other
                found += 1
        k += 1
    return found


@jit
def strong_components(indptr: Rows, indices: Rows, component: npt.NDArray[np.int64]) -> int:
    """Number strongly connected components, those that others lead to first.

    Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972,
    without recursion.

    Args:
        indices: Out-neighbors ``[E]``.
        component: Receives the component of every node ``[N]``.

    Returns:
        The number of components.
    """
    num_nodes = len(component)
    component[:] = -1
    entered = np.full(num_nodes, -1, dtype=np.int64)
    lowest = np.zeros(num_nodes, dtype=np.int64)
    next_entry = np.zeros(num_nodes, dtype=np.int64)
    path = np.empty(num_nodes, dtype=np.int64)
    waiting = np.empty(num_nodes, dtype=np.int64)
    num_entered, num_waiting, num_components = 0, 0, 0
    for start in range(num_nodes):
        if entered[start] >= 0:
            continue
        height = 1
        path[0] = start
        while height > 0:
            node = path[height - 1]
            if entered[node] < 0:
                entered[node] = lowest[node] = num_entered
                num_entered += 1
                next_entry[node] = np.int64(indptr[node])
                waiting[num_waiting] = node
                num_waiting += 1
            is_done = True
            while next_entry[node] < np.int64(indptr[node + 1]):
                other = np.int64(indices[next_entry[node]])
                if entered[other] < 0:
                    path[height] = other
                    height += 1
                    is_done = False
                    break
                # One that is complete is no way back up: its members lie below in the order
                # of parts.
                if component[other] < 0:
                    # `next_entry` stays at a child that is entered: coming back, its
                    # `lowest` is read here.
                    lowest[node] = min(lowest[node], lowest[other])
                next_entry[node] += 1
            if not is_done:
                continue
            height -= 1
            if lowest[node] == entered[node]:
                # All that wait above the first node of a component are in it.
                member = -1
                while member != node:
                    num_waiting -= 1
                    member = waiting[num_waiting]
                    component[member] = num_components
                num_components += 1
    return num_components


@jit
def color_in_order(
    indptr: Rows, indices: Rows, order: npt.NDArray[np.int64], color: npt.NDArray[np.int64]
) -> None:
    """Give node after node the smallest color that no neighbor in its row has.

    Args:
        order: The nodes, each once ``[N]``.
        color: -1 everywhere; receives the colors ``[N]``.
    """
    taken_by = np.full(len(order) + 1, -1, dtype=np.int64)
    for node in order:
        for j in range(np.int64(indptr[node]), np.int64(indptr[node + 1])):
            used = color[indices[j]]
            if used >= 0:
                # Marked by node, so that nothing is cleared between two nodes.
                taken_by[used] = node
        free = 0
        while taken_by[free] == node:
            free += 1
        color[node] = free


@jit
def match_in_order(
    src: Rows, dst: Rows, is_taken: npt.NDArray[np.bool_], is_chosen: npt.NDArray[np.bool_]
) -> None:
    """Choose edge after edge whose two ends no chosen edge has.

    Args:
        src: One end of every edge ``[E]``.
        dst: The other ``[E]``.
        is_taken: False everywhere; receives which nodes are matched ``[N]``.
        is_chosen: False everywhere; receives which edges are chosen ``[E]``.
    """
    for k in range(len(src)):
        if src[k] != dst[k] and not is_taken[src[k]] and not is_taken[dst[k]]:
            is_taken[src[k]] = is_taken[dst[k]] = is_chosen[k] = True
