"""Sorted rows with some entries taken out and others put in: merging deltas into a store.

Where a change goes is found by binary search, so that finding costs what changes and not
what is there; the rest of an array is copied in blocks between the changes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def insertion_places(
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
    neighbor: npt.NDArray[Any],
    relation: npt.NDArray[Any],
    wanted: npt.NDArray[Any],
    wanted_relation: npt.NDArray[Any],
    out: npt.NDArray[np.int64],
) -> None:
    """Find where entries go in sorted rows: behind those that are equal.

    Args:
        low: Where the row of each new entry begins, int64 ``[D]``.
        high: Where it ends, int64 ``[D]``.
        neighbor: Neighbors of all rows ``[E]``, ascending in each row.
        relation: Relations of all rows ``[E]``, which order equal neighbors; empty where
            there are none.
        wanted: Neighbors of the new entries ``[D]``.
        wanted_relation: Their relations ``[D]``, or empty.
        out: Receives the places, int64 ``[D]``.
    """
    has_relation = len(relation) > 0
    for k in range(len(wanted)):
        begin, end = low[k], high[k]
        key = np.int64(wanted[k])
        while begin < end:
            middle = (begin + end) // 2
            found = np.int64(neighbor[middle])
            is_before = found <= key
            if has_relation and found == key:
                is_before = np.int64(relation[middle]) <= np.int64(wanted_relation[k])
            if is_before:
                begin = middle + 1
            else:
                end = middle
        out[k] = begin


@jit
def first_places(
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
    neighbor: npt.NDArray[Any],
    wanted: npt.NDArray[Any],
    beyond: bool,
    out: npt.NDArray[np.int64],
) -> None:
    """Find the first entry with a neighbor in sorted rows, or the first beyond them.

    Args:
        low: Where each row begins, int64 ``[D]``.
        high: Where it ends, int64 ``[D]``.
        neighbor: Neighbors of all rows ``[E]``, ascending in each row.
        wanted: Neighbors to find ``[D]``.
        beyond: Find the first entry with a larger neighbor instead.
        out: Receives the places, int64 ``[D]``.
    """
    for k in range(len(wanted)):
        begin, end = low[k], high[k]
        key = np.int64(wanted[k])
        while begin < end:
            middle = (begin + end) // 2
            found = np.int64(neighbor[middle])
            if found < key or (beyond and found == key):
                begin = middle + 1
            else:
                end = middle
        out[k] = begin


@jit
def splice(
    base: npt.NDArray[Any],
    dropped: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    values: npt.NDArray[Any],
    begin: int,
    end: int,
    first_dropped: int,
    first_value: int,
    end_value: int,
    out: npt.NDArray[Any],
) -> None:
    """Write a span of an array without some entries and with others put in.

    Args:
        base: The array ``[E]``.
        dropped: Places of the entries to leave out, ascending, int64.
        places: Place before which each value goes, ascending, int64 ``[D]``.
        values: What is put in ``[D]``.
        begin: First entry of the span.
        end: End of the span.
        first_dropped: First of ``dropped`` at ``begin`` or behind.
        first_value: First of ``values`` that goes to the span.
        end_value: End of them.
        out: Receives the span's entries of the result.
    """
    k, drop, value = begin, first_dropped, first_value
    place = 0
    while True:
        until = end
        if drop < len(dropped) and dropped[drop] < until:
            until = dropped[drop]
        if value < end_value and places[value] < until:
            until = places[value]
        for entry in range(k, until):
            out[place + entry - k] = base[entry]
        place += until - k
        k = until
        while value < end_value and places[value] == k:
            out[place] = values[value]
            place += 1
            value += 1
        if drop < len(dropped) and k < end and dropped[drop] == k:
            drop += 1
            k += 1
        elif k >= end:
            return


@jit
def shift_offsets(
    indptr: npt.NDArray[Any],
    added: npt.NDArray[np.int64],
    dropped: npt.NDArray[np.int64],
    out: npt.NDArray[Any],
) -> None:
    """Return the offsets of rows that some entries left and others joined.

    Args:
        added: Rows of the entries put in, ascending, int64.
        dropped: Rows of the entries left out, ascending, int64.
        out: Receives the new offsets ``[N + 1]``.
    """
    gain, more, fewer = 0, 0, 0
    out[0] = 0
    for row in range(len(indptr) - 1):
        while more < len(added) and added[more] == row:
            more += 1
            gain += 1
        while fewer < len(dropped) and dropped[fewer] == row:
            fewer += 1
            gain -= 1
        out[row + 1] = np.int64(indptr[row + 1]) + gain
