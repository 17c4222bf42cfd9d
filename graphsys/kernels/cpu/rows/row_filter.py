"""Rows of which some entries are kept: those of some times, or of some columns."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def kept_offsets(
    indptr: npt.NDArray[Any],
    time: npt.NDArray[np.int64],
    first: int,
    last: int,
    out: npt.NDArray[Any],
) -> None:
    """Return the offsets of rows without the entries of other times.

    Args:
        time: Time of every entry, int64 ``[E]``.
        first: First time that is kept.
        last: Last time that is kept.
        out: Receives the offsets ``[N + 1]``.
    """
    kept = 0
    out[0] = 0
    for row in range(len(indptr) - 1):
        for entry in range(np.int64(indptr[row]), np.int64(indptr[row + 1])):
            if first <= time[entry] <= last:
                kept += 1
        out[row + 1] = kept


@jit
def count_kept(time: npt.NDArray[np.int64], first: int, last: int) -> int:
    """Return how many times are from ``first`` to ``last``."""
    kept = 0
    for entry in range(len(time)):
        if first <= time[entry] <= last:
            kept += 1
    return kept


@jit
def keep_entries(
    values: npt.NDArray[Any],
    time: npt.NDArray[np.int64],
    first: int,
    last: int,
    out: npt.NDArray[Any],
) -> None:
    """Write the values of entries whose time is kept, one behind the other.

    Args:
        values: One of every entry ``[E]``.
        time: Time of every entry, int64 ``[E]``.
        first: First time that is kept.
        last: Last time that is kept.
        out: Receives the values.
    """
    place = 0
    for entry in range(len(time)):
        if first <= time[entry] <= last:
            out[place] = values[entry]
            place += 1


@jit
def kept_before(
    time: npt.NDArray[np.int64],
    first: int,
    last: int,
    kept: int,
    out: npt.NDArray[np.int64],
) -> int:
    """Write how many entries before each are kept, and return how many there are at all.

    Args:
        time: Time of every entry, int64 ``[E]``.
        first: First time that is kept.
        last: Last time that is kept.
        kept: Entries kept of those before these.
        out: Receives the numbers, int64 ``[E]``.
    """
    for entry in range(len(time)):
        out[entry] = kept
        if first <= time[entry] <= last:
            kept += 1
    return kept


@jit
def cut_rows(
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    cursor: npt.NDArray[np.int64],
    end: int,
    cut_indptr: npt.NDArray[Any],
    cut_indices: npt.NDArray[Any],
    places: npt.NDArray[np.int64],
) -> int:
    """Copy of every row the entries from its cursor to the first that is ``end`` or more.

    Args:
        ends: Where each row ends ``[n]``.
        indices: Rows, each sorted.
        cursor: Next entry of every row, int64 ``[n]``; advanced.
        end: Smallest neighbor that is not wanted any more.
        cut_indptr: Receives the row offsets of the cut ``[n + 1]``.
        cut_indices: Receives its entries; must have room for them.
        places: Receives where each entry came from, int64; empty where nobody asks.

    Returns:
        The number of entries copied.

    Complexity:
        O(n + entries copied).
    """
    count = 0
    for row in range(len(ends)):
        cut_indptr[row] = count
        entry = cursor[row]
        stop = np.int64(ends[row])
        while entry < stop and np.int64(indices[entry]) < end:
            cut_indices[count] = indices[entry]
            if len(places) > 0:
                places[count] = entry
            count += 1
            entry += 1
        cursor[row] = entry
    cut_indptr[len(ends)] = count
    return count
