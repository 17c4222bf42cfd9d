"""Pairs of neighbors that came to a simple graph or left it: rows without, triangles."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def count_entries(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    src: npt.NDArray[np.int64],
    dst: npt.NDArray[np.int64],
    out: npt.NDArray[np.int64],
) -> None:
    """Add how many entries of the row ``src[k]`` are ``dst[k]`` to ``out[k]``.

    Args:
        indices: Neighbors, ascending in each row.
        src: Rows ``[K]``.
        dst: Neighbors ``[K]``.
        out: Counts ``[K]``.
    """
    for k in range(len(src)):
        low, high = np.int64(begins[src[k]]), np.int64(ends[src[k]])
        end = high
        while low < high:
            middle = (low + high) // 2
            if np.int64(indices[middle]) < dst[k]:
                low = middle + 1
            else:
                high = middle
        while low < end and np.int64(indices[low]) == dst[k]:
            out[k] += 1
            low += 1


@jit
def set_aside(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    src: npt.NDArray[np.int64],
    dst: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
) -> None:
    """Take entries out of rows.

    Args:
        indices: Neighbors, ascending in each row, none twice; changed.
        src: Rows of the entries to take out, ascending ``[K]``.
        dst: Their neighbors, ascending in each row ``[K]``; all are there.
        ends: Where rows end ``[N]``; changed.
    """
    k = 0
    while k < len(src):
        row = src[k]
        kept = np.int64(indptr[row])
        for entry in range(np.int64(indptr[row]), np.int64(indptr[row + 1])):
            if k < len(src) and src[k] == row and np.int64(indices[entry]) == dst[k]:
                k += 1
            else:
                indices[kept] = indices[entry]
                kept += 1
        ends[row] = kept


@jit
def add_pair(
    k: int,
    a: int,
    b: int,
    head: npt.NDArray[np.int64],
    following: npt.NDArray[np.int64],
    other: npt.NDArray[np.int64],
) -> None:
    """Put the k-th pair into the lists of neighbors that rows do not have.

    Args:
        k: Number of the pair.
        a: One node.
        b: The other.
        head: First place of every node's list ``[N]``, -1 for none; changed.
        following: Next place ``[2 K]``; changed.
        other: Neighbor at a place ``[2 K]``; changed.
    """
    other[2 * k], following[2 * k], head[a] = b, head[a], 2 * k
    other[2 * k + 1], following[2 * k + 1], head[b] = a, head[b], 2 * k + 1


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
