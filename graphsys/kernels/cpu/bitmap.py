"""Sets of nodes as bitmaps and as lists."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_add, atomic_or
from graphsys.kernels.jit import inline_jit, jit

_BUFFER = 1024


def num_words(num_nodes: int) -> int:
    """Return how many 64-bit words hold a bit for every node."""
    return (num_nodes + 63) // 64


@inline_jit
def has_bit(words: npt.NDArray[np.uint64], i: Any) -> bool:
    """Tell whether bit ``i`` is set."""
    found: bool = (words[i >> 6] >> np.uint64(i & 63)) & np.uint64(1) != np.uint64(0)
    return found


@inline_jit
def set_bit(words: npt.NDArray[np.uint64], i: Any) -> None:
    """Set bit ``i``; one thread per word only."""
    words[i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@inline_jit
def set_bit_atomic(words: npt.NDArray[np.uint64], i: Any) -> bool:
    """Set bit ``i`` and tell whether it was clear; for many threads."""
    bit = np.uint64(1) << np.uint64(i & 63)
    if words[i >> 6] & bit != np.uint64(0):
        return False
    was_clear: bool = atomic_or(words, i >> 6, bit) & bit == np.uint64(0)
    return was_clear


@jit
def list_bits(words: npt.NDArray[np.uint64], nodes: npt.NDArray[Any]) -> int:
    """Write the numbers of the set bits, ascending, and return how many there are."""
    count = 0
    for w in range(len(words)):
        word = words[w]
        bit = np.int64(0)
        while word != np.uint64(0):
            while word & np.uint64(0xFF) == np.uint64(0):
                word >>= np.uint64(8)
                bit += 8
            if word & np.uint64(1) != np.uint64(0):
                nodes[count] = (w << 6) + bit
                count += 1
            word >>= np.uint64(1)
            bit += 1
    return count


@jit
def set_listed(nodes: npt.NDArray[Any], count: int, words: npt.NDArray[np.uint64]) -> None:
    """Set the bits of the first ``count`` listed nodes."""
    for k in range(count):
        set_bit(words, np.int64(nodes[k]))


@jit
def clear_listed(
    nodes: npt.NDArray[Any], count: int, words: npt.NDArray[np.uint64]
) -> None:
    """Clear the words of the listed nodes, among which are all set bits."""
    for k in range(count):
        words[np.int64(nodes[k]) >> 6] = np.uint64(0)


@jit
def sum_listed(nodes: npt.NDArray[Any], count: int, values: npt.NDArray[Any]) -> int:
    """Return the sum of the values of the first ``count`` listed nodes."""
    total = 0
    for k in range(count):
        total += int(values[nodes[k]])
    return total


@jit
def mark_neighbours(
    thread: int,
    counter: npt.NDArray[np.int64],
    frontier: npt.NDArray[Any],
    num_frontier: int,
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    row_base: int,
    column_base: int,
    touched: npt.NDArray[np.uint64],
    touched_list: npt.NDArray[Any],
    cursor: npt.NDArray[np.int64],
) -> None:
    """Collect the neighbours of listed nodes, each once.

    Args:
        thread: Not used: threads share the work through ``counter``.
        counter: Next position in ``frontier``, int64 ``[1]``.
        frontier: Nodes; all in the block of rows.
        num_frontier: How many.
        indptr: Row offsets of the block.
        indices: Its neighbours.
        row_base: Number of its first row's node.
        column_base: Added to ``indices``.
        touched: Bits of the nodes collected so far; set.
        touched_list: The collected nodes; appended to.
        cursor: How many are collected, int64 ``[1]``.
    """
    buffer = np.empty(_BUFFER, dtype=np.int64)
    filled = 0
    while True:
        begin = atomic_add(counter, 0, 64)
        if begin >= num_frontier:
            break
        for k in range(begin, min(begin + 64, num_frontier)):
            row = np.int64(frontier[k]) - row_base
            for e in range(np.int64(indptr[row]), np.int64(indptr[row + 1])):
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
