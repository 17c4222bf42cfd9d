"""Where a value stands among sorted ones."""

from typing import Any

import numpy as np

from graphsys.kernels.jit import lean_inline_jit


@lean_inline_jit
def lower_bound(values: Any, begin: Any, end: Any, least: Any) -> Any:
    """Return the first place in ``values[begin:end]``, ascending, of one >= least.

    Args:
        values: Integers.
        begin: Of any type of integer, as the ends of rows are.
        end: Likewise.
        least: What is looked for.
    """
    low, high = np.int64(begin), np.int64(end)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
