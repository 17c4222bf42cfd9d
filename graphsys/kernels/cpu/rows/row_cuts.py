"""Cutting rows by columns, for passes over one partition's neighbors at a time."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


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
