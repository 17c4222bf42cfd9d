"""The last step of an argsort by packed keys."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def sort_runs(
    prefixes: npt.NDArray[np.uint64],
    shift: int,
    keys: npt.NDArray[np.uint64],
    order: npt.NDArray[Any],
    longest: int,
) -> bool:
    """Sort every run of equal prefixes by (key, position), by insertion.

    Args:
        prefixes: Sorted words; the prefix is what is left after ``shift``, ``[n]``.
        shift: Bits below the prefix.
        keys: Whole keys by position, uint64 ``[n]``.
        order: Positions sorted by prefix, then position ``[n]``; completed in place.
        longest: Give up at a run of more elements than this.

    Returns:
        Whether all runs were short enough; if not, ``order`` is incomplete.
    """
    begin = 0
    length = len(order)
    while begin < length:
        prefix = prefixes[begin] >> np.uint64(shift)
        end = begin + 1
        while end < length and prefixes[end] >> np.uint64(shift) == prefix:
            end += 1
        if end - begin > 1:
            is_sorted = True
            for k in range(begin + 1, end):
                if keys[order[k]] < keys[order[k - 1]]:
                    is_sorted = False
                    break
            if not is_sorted:
                if end - begin > longest:
                    return False
                for k in range(begin + 1, end):
                    moved = order[k]
                    key = keys[moved]
                    place = k
                    while place > begin and keys[order[place - 1]] > key:
                        order[place] = order[place - 1]
                        place -= 1
                    order[place] = moved
        begin = end
    return True
