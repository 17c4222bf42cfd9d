"""Building compressed rows: counting sorts, transposes, unions and simple graphs."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


class CsrArrays(NamedTuple):
    """Rows as kernels take them: one argument, or three.

    Attributes:
        begins: Where each row begins in ``indices`` ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Neighbors, sorted in every row; means nothing between rows.
    """

    begins: npt.NDArray[Any]
    ends: npt.NDArray[Any]
    indices: npt.NDArray[Any]


class WeightedCsr(NamedTuple):
    """Weighted neighbors (``graphsys.graph.csr.Csr``).

    Attributes:
        begins: Where each row begins in ``indices`` ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Numbers of the neighbors.
        weight_begins: Where each row begins in ``weight`` ``[N]``.
        weight: Weights; of Leiden's levels empty where every entry counts 1.
    """

    begins: npt.NDArray[Any]
    ends: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    weight_begins: npt.NDArray[Any]
    weight: npt.NDArray[Any]


@jit
def count_rows(rows: npt.NDArray[Any], indptr: npt.NDArray[Any]) -> None:
    """Turn row numbers ``[E]`` into row offsets ``[N + 1]``, which come in as zeros."""
    for k in range(len(rows)):
        indptr[np.int64(rows[k]) + 1] += 1
    for row in range(1, len(indptr)):
        indptr[row] += indptr[row - 1]


@jit
def stable_places(
    rows: npt.NDArray[Any], cursor: npt.NDArray[Any], order: npt.NDArray[Any]
) -> None:
    """Write the positions of edges in the order of their rows; ties keep their order.

    Args:
        rows: Row of every edge ``[E]``.
        cursor: First place of every row ``[N + 1]``; advanced.
        order: Receives the position of the edge at each place, int64 ``[E]``.
    """
    for k in range(len(rows)):
        row = rows[k]
        order[cursor[row]] = k
        cursor[row] += 1


@jit
def transpose_rows(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    cursor: npt.NDArray[Any],
    out: npt.NDArray[Any],
    places: npt.NDArray[Any],
) -> None:
    """Scatter rows to columns; every new row is sorted because rows are visited in order.

    Args:
        cursor: First place of every column's row ``[M + 1]``; advanced.
        out: Receives the rows that were the neighbors ``[E]``.
        places: Receives the old place of each entry, int64 ``[E]``, or has length 0.
    """
    for row in range(len(indptr) - 1):
        for k in range(np.int64(indptr[row]), np.int64(indptr[row + 1])):
            column = indices[k]
            place = cursor[column]
            cursor[column] = place + 1
            out[place] = row
            if len(places):
                places[place] = k


@jit
def append_rows(
    indptr: npt.NDArray[Any],
    row_base: int,
    cursor: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
) -> None:
    """Give the entries of one block of rows their places in a union of blocks.

    Args:
        indptr: Row offsets of the block ``[n + 1]``.
        row_base: Number of its first row.
        cursor: Next place of every row of the union, int64; advanced.
        places: Receives the place of every entry of the block, int64 ``[e]``.
    """
    for row in range(len(indptr) - 1):
        place = cursor[row_base + row]
        for k in range(np.int64(indptr[row]), np.int64(indptr[row + 1])):
            places[k] = place
            place += 1
        cursor[row_base + row] = place


@jit
def merge_simple_rows(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    other_begins: npt.NDArray[Any],
    other_ends: npt.NDArray[Any],
    other_indices: npt.NDArray[Any],
    low: int,
    high: int,
    is_counting: bool,
    offsets: npt.NDArray[np.int64],
    out: npt.NDArray[Any],
) -> None:
    """Merge two sorted rows of every node without loops and repetitions.

    Args:
        indices: Sorted rows.
        other_begins: Where the other rows begin ``[N]``; empty where there are none.
        other_ends: Where they end.
        other_indices: Their sorted rows.
        low: First row.
        high: End of the rows.
        is_counting: Write lengths to ``offsets[row + 1]``; else the rows themselves.
        offsets: Row offsets of the result, int64 ``[N + 1]``.
        out: Receives the rows.
    """
    has_other = len(other_begins) > 0
    for row in range(low, high):
        a, a_end = np.int64(begins[row]), np.int64(ends[row])
        b, b_end = np.int64(0), np.int64(0)
        if has_other:
            b, b_end = np.int64(other_begins[row]), np.int64(other_ends[row])
        place = np.int64(0) if is_counting else offsets[row]
        last = np.int64(-1)
        while a < a_end or b < b_end:
            if b >= b_end or (a < a_end and indices[a] <= other_indices[b]):
                node = np.int64(indices[a])
                a += 1
            else:
                node = np.int64(other_indices[b])
                b += 1
            if node != last and node != row:
                if not is_counting:
                    out[place] = node
                place += 1
            last = node
        if is_counting:
            offsets[row + 1] = place


@jit
def count_superfluous(
    indptr: npt.NDArray[Any], indices: npt.NDArray[Any], first: int
) -> int:
    """Return how many entries of sorted rows are loops or repeat the one before.

    Args:
        indptr: Row offsets ``[n + 1]``.
        indices: Sorted rows.
        first: What the first row's own node is called in ``indices``.
    """
    found = 0
    for row in range(len(indptr) - 1):
        last = np.int64(-1)
        for k in range(np.int64(indptr[row]), np.int64(indptr[row + 1])):
            node = np.int64(indices[k])
            if node == last or node == first + row:
                found += 1
            last = node
    return found
