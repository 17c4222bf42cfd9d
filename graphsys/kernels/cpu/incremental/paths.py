"""Distances after changes: what lost its support is found, then searched anew."""

from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def repair_distances(
    out_begins: npt.NDArray[Any],
    out_ends: npt.NDArray[Any],
    out_indices: npt.NDArray[Any],
    out_weight: npt.NDArray[Any],
    in_begins: npt.NDArray[Any],
    in_ends: npt.NDArray[Any],
    in_indices: npt.NDArray[Any],
    in_weight: npt.NDArray[Any],
    removed_src: npt.NDArray[np.int64],
    removed_dst: npt.NDArray[np.int64],
    added_dst: npt.NDArray[np.int64],
    source: int,
    most: int,
    distance: npt.NDArray[np.float64],
) -> int:
    """Bring the distances from a source up to date (Ramalingam and Reps, 1996).

    A node is unsettled where no in-neighbor that is closer, and not unsettled itself,
    explains its distance any more. Weights below the rounding of a distance explain
    nothing, so that no two nodes explain each other.

    Args:
        out_begins: Where out rows begin ``[N]``.
        out_ends: Where they end ``[N]``.
        out_indices: Neighbors.
        out_weight: Lengths, in the order of the rows, >= 0; empty for 1 each.
        in_begins: The same of in rows.
        in_ends: The same of in rows.
        in_indices: The same of in rows.
        in_weight: The same of in rows.
        removed_src: Sources of removed edges.
        removed_dst: Their destinations.
        added_dst: Destinations of added edges.
        source: The source.
        most: Most nodes to unsettle.
        distance: Distances before the changes ``[N]``, infinite where not reached; changed.

    Returns:
        How many nodes were unsettled; -1, and no distance is changed, if too many.
    """
    num_nodes = len(distance)
    unsettled = np.zeros(num_nodes, dtype=np.bool_)
    lost = [np.int64(0)]
    lost.clear()
    heap = [(0.0, np.int64(0))]
    heap.clear()
    for k in range(len(removed_src)):
        far, near = distance[removed_dst[k]], distance[removed_src[k]]
        if removed_dst[k] != source and near <= far and far < np.inf:
            heappush(heap, (far, removed_dst[k]))
    # Nearest first: who explains a node is nearer, and so was decided on before it.
    while len(heap) > 0:
        far, node = heappop(heap)
        if unsettled[node]:
            continue
        is_explained = False
        for entry in range(np.int64(in_begins[node]), np.int64(in_ends[node])):
            other = np.int64(in_indices[entry])
            length = np.float64(in_weight[entry]) if len(in_weight) else 1.0
            near = distance[other]
            if near < far and near + length == far and not unsettled[other]:
                is_explained = True
                break
        if is_explained:
            continue
        unsettled[node] = True
        lost.append(node)
        if len(lost) > most:
            return -1
        for entry in range(np.int64(out_begins[node]), np.int64(out_ends[node])):
            other = np.int64(out_indices[entry])
            length = np.float64(out_weight[entry]) if len(out_weight) else 1.0
            then = distance[other]
            is_next = then < np.inf and far + length == then
            if is_next and other != source and not unsettled[other]:
                heappush(heap, (then, other))
    # Only now: old distances told who hung on whom, and -1 left them as they were.
    for node in lost:
        distance[node] = np.inf
    for k in range(len(lost) + len(added_dst)):
        # Each starts from its best neighbor that is still settled; the rest is Dijkstra's.
        node = lost[k] if k < len(lost) else added_dst[k - len(lost)]
        least = distance[node]
        for entry in range(np.int64(in_begins[node]), np.int64(in_ends[node])):
            length = np.float64(in_weight[entry]) if len(in_weight) else 1.0
            least = min(least, distance[np.int64(in_indices[entry])] + length)
        if least < distance[node]:
            distance[node] = least
            heappush(heap, (least, node))
    while len(heap) > 0:
        near, node = heappop(heap)
        if near > distance[node]:
            continue
        for entry in range(np.int64(out_begins[node]), np.int64(out_ends[node])):
            other = np.int64(out_indices[entry])
            length = np.float64(out_weight[entry]) if len(out_weight) else 1.0
            if near + length < distance[other]:
                distance[other] = near + length
                heappush(heap, (near + length, other))
    return len(lost)
