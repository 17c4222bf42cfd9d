"""From ids to numbers by a table that has a row for every id."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def look_up(
    ids: npt.NDArray[Any],
    table: npt.NDArray[Any],
    nobody: int,
    out: npt.NDArray[np.int64],
) -> None:
    """Write the number of every id, -1 where there is none.

    Args:
        ids: Integers from 0 on ``[n]``.
        table: Number by id.
        nobody: What stands in the table for ids that no node has.
        out: Receives the numbers, int64 ``[n]``.
    """
    size = np.int64(len(table))
    for k in range(len(ids)):
        key = np.int64(ids[k])
        out[k] = -1
        if key < size and np.int64(table[key]) != nobody:
            out[k] = np.int64(table[key])
