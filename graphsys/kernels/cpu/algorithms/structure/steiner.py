"""The edges that join the regions around some nodes, the shortest first."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import inline_jit, jit

Ints = npt.NDArray[np.int64]


@inline_jit
def _root(parent: Any, node: Any) -> Any:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@jit
def join_regions(left: Ints, right: Ints, parent: Ints, chosen: Ints) -> int:
    """Take every edge that joins two regions which are not joined yet.

    Kruskal, "On the shortest spanning subtree of a graph and the traveling salesman
    problem", Proceedings of the AMS 7, 1956.

    Args:
        left: Region of one end of every edge, in the order in which they are tried ``[B]``.
        right: Region of the other end ``[B]``.
        parent: Each region itself ``[K]``; joined regions have one root after.
        chosen: Receives the places of the edges that are taken ``[K - 1]``.

    Returns:
        How many are taken.
    """
    count = 0
    for place in range(len(left)):
        one, other = _root(parent, left[place]), _root(parent, right[place])
        if one != other:
            parent[max(one, other)] = min(one, other)
            chosen[count] = place
            count += 1
            if count == len(chosen):
                break
    return count


@jit
def mark_paths(ends: Ints, before: npt.NDArray[Any], is_marked: npt.NDArray[Any]) -> None:
    """Mark nodes and all that lie on their shortest paths back.

    Args:
        ends: Where the paths end ``[P]``.
        before: The node before each on its path; below 0: the path begins there ``[N]``.
        is_marked: False; receives which nodes are met ``[N]``.
    """
    for node in ends:
        while node >= 0 and not is_marked[node]:
            is_marked[node] = True
            node = np.int64(before[node])
