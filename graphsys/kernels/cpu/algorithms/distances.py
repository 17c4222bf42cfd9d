"""Sums over the distances from many sources, in hops or lengths, one search per source.

Searches are serial and small; threads take different sources. For graphs where the
searches of 64 sources overlap much, a shared (bit-parallel) search would be faster.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.path_heap import (
    DONE,
    UNSEEN,
    LengthSearch,
    PathHeap,
    length_of,
    rise,
    take_first,
)
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.rows.csr import WeightedCsr
from graphsys.kernels.jit import jit, lean_jit


@jit
def sum_distances(
    thread: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    sources: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    found_by: npt.NDArray[np.int64],
    queue: npt.NDArray[Any],
    reached: npt.NDArray[np.int64],
    total: npt.NDArray[np.int64],
    farthest: npt.NDArray[np.int64],
    harmonic: npt.NDArray[np.float64],
) -> None:
    """Search from each source and sum up what was found.

    Args:
        sources: Nodes to search from, int64 ``[S]``.
        found_by: Scratch, -1 everywhere, int64 ``[threads, N]``.
        queue: Scratch ``[threads, N]``.
        reached: Receives how many nodes were reached, the source too ``[S]``.
        total: Receives the sum of the distances ``[S]``.
        farthest: Receives the largest distance ``[S]``.
        harmonic: Receives the sum of one over the distances, float64 ``[S]``.
    """
    seen, waiting = found_by[thread], queue[thread]
    for place in claimed_range(0, len(sources), 1, counter):
        # The number of the search is the mark: nothing is cleared between two searches.
        seen[sources[place]] = place
        waiting[0] = sources[place]
        begin, end, level = 0, 1, 0
        summed = np.int64(0)
        inverse = 0.0
        while begin < end:
            level_end = end
            for k in range(begin, level_end):
                node = np.int64(waiting[k])
                for j in range(np.int64(begins[node]), np.int64(ends[node])):
                    other = indices[j]
                    if seen[other] != place:
                        seen[other] = place
                        waiting[end] = other
                        end += 1
            begin = level_end
            level += 1
            summed += level * (end - begin)
            inverse += (end - begin) / level
        reached[place] = end
        total[place] = summed
        farthest[place] = level - 1
        harmonic[place] = inverse


@lean_jit
def sum_lengths(
    thread: int,
    rows: WeightedCsr,
    sources: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    search: LengthSearch,
    reached: npt.NDArray[np.int64],
    total: npt.NDArray[np.float64],
    farthest: npt.NDArray[np.float64],
    harmonic: npt.NDArray[np.float64],
) -> None:
    """Search from each source along edges with lengths of 0 or more, and sum up.

    Sums go by distance, the nearest first: the same bits in any order of the rows.

    Args:
        sources: Nodes to search from, int64 ``[S]``.
        search: See there.
        reached: Receives how many nodes were reached, the source too ``[S]``.
        total: Receives the sum of the distances, infinite beyond float64 ``[S]``.
        farthest: Receives the largest distance ``[S]``.
        harmonic: Receives the sum of one over the distances above 0 ``[S]``.
    """
    distance, place = search.distance[thread], search.place[thread]
    nodes, order = search.nodes[thread], search.order[thread]
    heap = PathHeap(distance, search.edges[thread], place, nodes)
    for k in claimed_range(0, len(sources), 1, counter):
        source = sources[k]
        distance[source], nodes[0], place[source] = 0.0, source, 0
        size, count, summed, inverse = 1, 0, 0.0, 0.0
        while size > 0:
            node = np.int64(take_first(heap, size))
            size -= 1
            order[count] = node
            count += 1
            near = distance[node]
            summed += near
            if near > 0:
                inverse += 1.0 / near
            for entry in range(np.int64(rows.begins[node]), np.int64(rows.ends[node])):
                other, far = (
                    np.int64(rows.indices[entry]),
                    near + length_of(rows, node, entry),
                )
                if place[other] == UNSEEN:
                    distance[other], nodes[size], place[other] = far, other, size
                    size += 1
                    rise(heap, place[other])
                elif place[other] != DONE and far < distance[other]:
                    distance[other] = far
                    rise(heap, place[other])
        reached[k], total[k], harmonic[k] = count, summed, inverse
        farthest[k] = distance[order[count - 1]]
        for last in range(count):
            place[order[last]] = UNSEEN
