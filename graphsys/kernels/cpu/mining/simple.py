"""Rows of a graph without direction, loops and repetitions, its nodes numbered anew."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]


@jit
def append_entries(
    indptr: Numbers,
    indices: Numbers,
    row_base: int,
    column_base: int,
    cursor: Offsets,
    entries: Numbers,
) -> None:
    """Append the rows of a block to the rows of all nodes.

    Args:
        indptr: Row offsets of the block ``[n + 1]``.
        indices: Its neighbors, numbers of their type.
        row_base: Number of its first row's node.
        column_base: Number of the first node of the neighbors' type.
        cursor: Next place of every row of all nodes ``[N]``; advanced.
        entries: Receives the neighbors.
    """
    for row in range(len(indptr) - 1):
        place = cursor[row_base + row]
        for k in range(np.int64(indptr[row]), np.int64(indptr[row + 1])):
            entries[place] = np.int64(indices[k]) + column_base
            place += 1
        cursor[row_base + row] = place


@jit
def make_simple(
    low: int, high: int, indptr: Offsets, entries: Numbers, lengths: Offsets
) -> None:
    """Sort rows in their places, each neighbor once and the node itself left out.

    Args:
        low: First row.
        high: End of the rows.
        entries: Neighbors, in any order; rewritten.
        lengths: Receives how many stay at the front of every row ``[N]``.
    """
    for row in range(low, high):
        begin, end = indptr[row], indptr[row + 1]
        own = entries[begin:end]
        own.sort()
        num = 0
        for k in range(len(own)):
            if own[k] != row and (num == 0 or own[num - 1] != own[k]):
                own[num] = own[k]
                num += 1
        lengths[row] = num


@jit
def renumber_rows(
    low: int,
    high: int,
    old_indptr: Offsets,
    old_entries: Numbers,
    nodes: Numbers,
    label: Numbers,
    indptr: Offsets,
    indices: Numbers,
) -> None:
    """Write rows of nodes that are numbered anew, sorted.

    Args:
        low: First row.
        high: End of the rows.
        old_indptr: Where the old rows begin ``[N + 1]``.
        old_entries: Old rows, at the front of their places.
        nodes: Old number of every node ``[N]``.
        label: New number of every old node ``[N]``.
        indices: Receives the neighbors.
    """
    for row in range(low, high):
        begin = old_indptr[nodes[row]]
        own = indices[indptr[row] : indptr[row + 1]]
        for k in range(len(own)):
            own[k] = label[old_entries[begin + k]]
        own.sort()
