"""Lists of nodes that threads fill and visit together; their sets are in :mod:`bits`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.bits import set_bit_atomic
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.jit import inline_jit, jit

_BUFFER = 1024


@jit
def clear_listed(
    nodes: npt.NDArray[Any], count: int, words: npt.NDArray[np.uint64]
) -> None:
    """Clear the words of the listed nodes, among which are all set bits."""
    for k in range(count):
        words[np.int64(nodes[k]) >> 6] = np.uint64(0)


@jit
def mark_neighbors(
    thread: int,
    counter: npt.NDArray[np.int64],
    frontier: npt.NDArray[Any],
    num_frontier: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    row_base: int,
    column_base: int,
    touched: npt.NDArray[np.uint64],
    touched_list: npt.NDArray[Any],
    cursor: npt.NDArray[np.int64],
) -> None:
    """Collect the neighbors of listed nodes, each once.

    Args:
        frontier: Nodes; all in the block of rows.
        num_frontier: How many.
        begins: Where each row of the block begins.
        ends: Where it ends.
        indices: Its neighbors.
        row_base: Number of its first row's node.
        column_base: Added to ``indices``.
        touched: Bits of the nodes collected so far; set.
        touched_list: The collected nodes; appended to.
        cursor: How many are collected, int64 ``[1]``.
    """
    buffer = np.empty(_BUFFER, dtype=np.int64)
    filled = 0
    for k in claimed_range(0, num_frontier, 64, counter):
        row = np.int64(frontier[k]) - row_base
        for e in range(np.int64(begins[row]), np.int64(ends[row])):
            node = np.int64(indices[e]) + column_base
            if set_bit_atomic(touched, node):
                buffer[filled] = node
                filled += 1
                if filled == _BUFFER:
                    append_buffer(buffer, filled, touched_list, cursor)
                    filled = 0
    append_buffer(buffer, filled, touched_list, cursor)


@inline_jit
def append_buffer(
    buffer: npt.NDArray[Any],
    filled: int,
    nodes: npt.NDArray[Any],
    cursor: npt.NDArray[np.int64],
) -> None:
    """Append a thread's buffer to a list shared by all threads."""
    begin = atomic_add(cursor, 0, filled)
    for k in range(filled):
        nodes[begin + k] = buffer[k]
