"""Which rows of a matrix are the same, byte for byte, by a hash table of the first ones."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import jit


@jit
def find_distinct(
    rows: npt.NDArray[Any],
    table: npt.NDArray[np.uint32],
    first: npt.NDArray[np.int64],
    codes: npt.NDArray[np.uint32],
) -> int:
    """Give every row the code of the first one like it, in the order of appearance.

    Args:
        rows: Rows as unsigned integers ``[n, words]``.
        table: Zeros, a power of two of them, more than ``len(first)``.
        first: Receives the number of the first row of each code; the most codes that there
            may be.
        codes: Receives the codes ``[n]``.

    Returns:
        How many codes there are; -1 if more than ``first`` has room for.
    """
    mask = np.uint64(len(table) - 1)
    count = 0
    for k in range(len(rows)):
        state = np.uint64(0)
        for w in range(rows.shape[1]):
            state = mix64(state ^ np.uint64(rows[k, w]))
        slot = state & mask
        while True:
            code = int(table[slot]) - 1
            if code < 0:
                if count == len(first):
                    return -1
                first[count] = k
                code = count
                count += 1
                table[slot] = count
                break
            is_same = True
            for w in range(rows.shape[1]):
                if rows[first[code], w] != rows[k, w]:
                    is_same = False
                    break
            if is_same:
                break
            slot = (slot + np.uint64(1)) & mask
        codes[k] = code
    return count
