"""Walker's alias table: two random reads a draw by weight, whatever the weights.

Cell ``c`` gives node ``c`` with probability ``share[c]``, else ``alias[c]``. Built as by
Vose, "A linear algorithm for generating random numbers with a given distribution", IEEE TSE
17(9), 1991.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def build_alias(
    weights: npt.NDArray[np.float64],
    share: npt.NDArray[np.float32],
    alias: npt.NDArray[Any],
) -> None:
    """Build an alias table in linear time.

    Args:
        weights: Weight of every node, not negative, not all 0, float64 ``[N]``.
        share: Receives the probability that a cell gives its own node, float32 ``[N]``.
        alias: Receives the other node of every cell, integers ``[N]``.
    """
    size = weights.size
    scaled, cells = np.empty(size, np.float64), np.empty(size, np.int64)
    factor = size / weights.sum()
    num_small, first_large = 0, size  # small cells from the front, large from the back
    for c in range(size):
        scaled[c] = weights[c] * factor
        if scaled[c] < 1.0:
            cells[num_small] = c
            num_small += 1
        else:
            first_large -= 1
            cells[first_large] = c
    while num_small > 0 and first_large < size:
        num_small -= 1
        small, large = cells[num_small], cells[first_large]
        share[small], alias[small] = scaled[small], large
        scaled[large] -= 1.0 - scaled[small]
        if scaled[large] < 1.0:
            first_large += 1
            # Both stacks share one array: a large cell that became small takes the place
            # just freed.
            cells[num_small] = large
            num_small += 1
    for k in range(num_small):  # what rounding left over is whole
        share[cells[k]], alias[cells[k]] = 1.0, cells[k]
    for k in range(first_large, size):
        share[cells[k]], alias[cells[k]] = 1.0, cells[k]
