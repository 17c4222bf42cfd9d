"""How far rows are read by a search that stops at its first hit."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.bits import Words, has_bit
from graphsys.kernels.jit import lean_jit


@lean_jit
def find_trips(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    skipped: Words,
    senders: Words,
    trips: npt.NDArray[np.int64],
) -> None:
    """Count the entries of each row up to its first neighbor in a set of nodes.

    Args:
        skipped: The rows that are not entered.
        senders: The nodes that end a search.
        trips: Receives the entries read of each row ``[N]``; zeros.
    """
    for row in range(len(begins)):
        if has_bit(skipped, row):
            continue
        for e in range(np.int64(begins[row]), np.int64(ends[row])):
            trips[row] += 1
            if has_bit(senders, indices[e]):
                break
