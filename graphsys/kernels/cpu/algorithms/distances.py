"""Sums over the hop distances from many sources, one search per source.

Searches are serial and small; threads take different sources. For graphs where the
searches of 64 sources overlap much, a shared (bit-parallel) search would be faster.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.jit import jit


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
