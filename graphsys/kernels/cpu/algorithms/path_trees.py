"""Trees of shortest paths, from distances that are known.

An edge is tight where the distance before it and its length add up, in float64, to the
distance behind it: paths of tight edges are the shortest ones. Edges of length 0 may close
cycles of them, so that a parent is looked for on those paths alone that have the fewest
edges. O(N + E), in one thread.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit, lean_jit


@lean_jit
def find_path_tree(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    weight_begins: npt.NDArray[Any],
    weight: npt.NDArray[Any],
    start: int,
    distance: npt.NDArray[np.float64],
    rank: npt.NDArray[Any],
    queue: npt.NDArray[Any],
    depth: npt.NDArray[Any],
    parent: npt.NDArray[np.int64],
) -> None:
    """Give every node reached its parent: of those that fit, the one of least rank.

    Args:
        begins: Where each row of out-neighbors begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Out-neighbors ``[E]``.
        weight_begins: Where each row begins in the lengths ``[N]``.
        weight: Lengths, none negative unless no cycle is ``[E]``.
        start: Number of the source.
        distance: Distances from it, infinite where it does not reach ``[N]``.
        rank: Places of the nodes in the order that decides ``[N]``, or has length 0 where
            that is the order of the numbers.
        queue: Scratch ``[N]``.
        depth: -1 everywhere; receives the edges on the path to every node reached ``[N]``.
        parent: Receives the parents of all of them but the source ``[N]``.
    """
    queue[0], depth[start] = start, 0
    first, last = np.int64(0), np.int64(1)
    is_ranked = len(rank) > 0
    while first < last:
        node = np.int64(queue[first])
        first += 1
        shift = np.int64(weight_begins[node]) - np.int64(begins[node])
        for entry in range(np.int64(begins[node]), np.int64(ends[node])):
            other = np.int64(indices[entry])
            length = np.float64(weight[entry + shift])
            if distance[node] + length != distance[other] or distance[other] == np.inf:
                continue
            if depth[other] < 0:
                depth[other], parent[other] = depth[node] + 1, node
                queue[last] = other
                last += 1
            elif depth[other] == depth[node] + 1:
                known = parent[other]
                if is_ranked:
                    is_before = np.int64(rank[node]) < np.int64(rank[known])
                else:
                    is_before = node < known
                if is_before:
                    parent[other] = node


@jit
def mark_paths(
    ends: npt.NDArray[np.int64], before: npt.NDArray[Any], is_marked: npt.NDArray[Any]
) -> None:
    """Mark nodes and all that lie on their shortest paths back.

    Args:
        ends: Where the paths end ``[P]``.
        before: The node before each on its path; below 0: the path begins there ``[N]``.
        is_marked: False; receives which nodes are met ``[N]``.
    """
    for node in ends:
        # From a marked node on the way is marked already: all paths together cost O(N).
        while node >= 0 and not is_marked[node]:
            is_marked[node] = True
            node = np.int64(before[node])
