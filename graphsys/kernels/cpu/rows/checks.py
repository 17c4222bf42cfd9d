"""Loops that check buckets and indexes, and compare them as multisets of edges.

An edge becomes a 64-bit word: its numbers and column values through the mixer of
``hashing``. Two files hold the same edges when their words have the same sum modulo
2**64, but for a chance of 2**-64.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import jit

SOUND = 0
ROW_RANGE = 1
NEIGHBOR_RANGE = 2
UNSORTED = 3


@jit
def check_bucket(
    src: npt.NDArray[Any], dst: npt.NDArray[Any], num_src: int, num_dst: int
) -> tuple[int, int]:
    """Find the first edge that is out of range or out of order.

    Args:
        src: Local sources ``[E]``.
        dst: Local destinations ``[E]``.
        num_src: Nodes of the source partition.
        num_dst: Nodes of the destination partition.

    Returns:
        What is wrong (``SOUND`` for nothing) and at which edge.
    """
    last_src, last_dst = np.int64(-1), np.int64(-1)
    for k in range(len(src)):
        s, d = np.int64(src[k]), np.int64(dst[k])
        if s < 0 or s >= num_src:
            return ROW_RANGE, k
        if d < 0 or d >= num_dst:
            return NEIGHBOR_RANGE, k
        if s < last_src or (s == last_src and d < last_dst):
            return UNSORTED, k
        last_src, last_dst = s, d
    return SOUND, 0


@jit
def check_rows(
    indptr: npt.NDArray[Any], indices: npt.NDArray[Any], num_neighbors: int
) -> tuple[int, int]:
    """Find the first row or entry of an index that is wrong.

    Args:
        num_neighbors: Nodes of the neighbors' type.

    Returns:
        ``ROW_RANGE`` and a row whose offsets are wrong; or ``NEIGHBOR_RANGE`` or
        ``UNSORTED`` and a position in ``indices``; or ``SOUND``.
    """
    length = np.int64(len(indices))
    if np.int64(indptr[0]) != 0:
        return ROW_RANGE, 0
    for row in range(len(indptr) - 1):
        begin, end = np.int64(indptr[row]), np.int64(indptr[row + 1])
        if end < begin or end > length:
            return ROW_RANGE, row
        last = np.int64(-1)
        for k in range(begin, end):
            number = np.int64(indices[k])
            if number < 0 or number >= num_neighbors:
                return NEIGHBOR_RANGE, k
            if number < last:
                return UNSORTED, k
            last = number
    if np.int64(indptr[len(indptr) - 1]) != length:
        return ROW_RANGE, len(indptr) - 1
    return SOUND, 0


@jit
def bucket_words(
    src: npt.NDArray[Any],
    dst: npt.NDArray[Any],
    src_base: int,
    dst_base: int,
    words: npt.NDArray[np.uint64],
) -> None:
    """Write the word of every edge of a bucket; ``base`` is a partition's first number."""
    for k in range(len(src)):
        number = np.uint64(np.int64(src[k]) + src_base)
        words[k] = mix64(mix64(number) ^ np.uint64(np.int64(dst[k]) + dst_base))


@jit
def index_words(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    row: int,
    row_base: int,
    begin: int,
    end: int,
    is_turned: bool,
    words: npt.NDArray[np.uint64],
) -> None:
    """Write the words of the entries ``begin`` to ``end`` of an index.

    Args:
        row: The row that ``begin`` lies in.
        row_base: First number of the rows' partition.
        begin: First entry.
        end: Entry behind the last.
        is_turned: Whether rows are destinations.
        words: Receives the words, uint64 ``[end - begin]``.
    """
    for k in range(begin, end):
        while np.int64(indptr[row + 1]) <= k:
            row += 1
        own, other = np.uint64(row + row_base), np.uint64(indices[k])
        if is_turned:
            own, other = other, own
        words[k - begin] = mix64(mix64(own) ^ other)


@jit
def fold_column(values: npt.NDArray[Any], words: npt.NDArray[np.uint64]) -> None:
    """Mix a column, given as integers ``[n]``, into the words."""
    for k in range(len(words)):
        words[k] = mix64(words[k] ^ np.uint64(values[k]))


@jit
def sum_words(words: npt.NDArray[np.uint64]) -> np.uint64:
    """Return the sum modulo 2**64."""
    total = np.uint64(0)
    for k in range(len(words)):
        total += words[k]
    return total


@jit
def sum_words_but_loops(
    src: npt.NDArray[Any],
    dst: npt.NDArray[Any],
    src_base: int,
    dst_base: int,
    words: npt.NDArray[np.uint64],
) -> np.uint64:
    """Return the sum over the edges that are no self-loops."""
    total = np.uint64(0)
    for k in range(len(words)):
        if np.int64(src[k]) + src_base != np.int64(dst[k]) + dst_base:
            total += words[k]
    return total
