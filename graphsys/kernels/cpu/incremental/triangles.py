"""Triangles that pairs of neighbors close, one pair after the other."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.incremental.pairs import add_pair
from graphsys.kernels.jit import jit


@jit
def count_closed(
    indptr: npt.NDArray[Any],
    ends: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    src: npt.NDArray[np.int64],
    dst: npt.NDArray[np.int64],
    sign: int,
    counts: npt.NDArray[np.int64],
) -> None:
    """Count the triangles that each pair closes with rows and the pairs before it.

    Args:
        indices: Neighbors in the symmetric rows of a simple graph without these pairs.
        src: One node of every pair ``[K]``.
        dst: The other.
        sign: What a triangle adds to the counts of its nodes.
        counts: Triangles of every node ``[N]``; changed.
    """
    num_nodes, num_pairs = len(ends), len(src)
    head = np.full(num_nodes, -1, dtype=np.int64)
    following = np.empty(2 * num_pairs, dtype=np.int64)
    other = np.empty(2 * num_pairs, dtype=np.int64)
    seen = np.full(num_nodes, -1, dtype=np.int64)
    for k in range(num_pairs):
        a, b = src[k], dst[k]
        for entry in range(np.int64(indptr[a]), ends[a]):
            seen[np.int64(indices[entry])] = k
        place = head[a]
        while place >= 0:
            seen[other[place]] = k
            place = following[place]
        closed = 0
        for entry in range(np.int64(indptr[b]), ends[b]):
            node = np.int64(indices[entry])
            if seen[node] == k:
                counts[node] += sign
                closed += 1
        place = head[b]
        while place >= 0:
            if seen[other[place]] == k:
                counts[other[place]] += sign
                closed += 1
            place = following[place]
        counts[a] += sign * closed
        counts[b] += sign * closed
        add_pair(k, a, b, head, following, other)
