"""Stable argsort of 64-bit keys, at the speed of numpy's vectorized sort of words."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.types import number_dtype
from graphsys.kernels.cpu.rows.ordering import pack_positions, sort_runs, unpack_positions

Allocate = Callable[[int, Any], npt.NDArray[Any]]
"""Makes an uninitialized array of a length and a dtype; may be backed by a file."""

_LONGEST_RUN = 64


def stable_argsort(
    keys: npt.NDArray[np.uint64], allocate: Allocate = np.empty
) -> npt.NDArray[Any]:
    """Return the positions that sort the keys; equal keys keep their order.

    Key and position are packed into one word and sorted as such. Where both do not fit,
    the low bits of the key are left out and the runs that tie are finished one by one;
    long runs fall back to numpy's stable argsort.

    Args:
        keys: uint64 ``[n]``; not changed.
        allocate: Where the words and the positions come from.

    Returns:
        Positions, uint32 (int64 from 2**32 on) ``[n]``.

    Complexity:
        O(n log n), at about the rate of ``np.sort`` on words.
    """
    length = len(keys)
    order = allocate(length, number_dtype(length))
    if not length:
        return order
    lowest = int(keys.min())
    position_bits = (length - 1).bit_length()
    shift = max((int(keys.max()) - lowest).bit_length() + position_bits - 64, 0)
    words = allocate(length, np.uint64)
    pack_positions(keys, np.uint64(lowest), shift, position_bits, words)
    words.sort()
    unpack_positions(words, position_bits, order)
    if shift and not sort_runs(words, position_bits, keys, order, _LONGEST_RUN):
        order[:] = np.argsort(keys, kind="stable")
    return order
