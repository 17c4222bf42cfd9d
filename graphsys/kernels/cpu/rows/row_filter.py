"""Rows of which only the entries of some times are kept."""

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
