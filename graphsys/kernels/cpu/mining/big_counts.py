"""Sums that do not overflow: the low and the high 32 bits are summed apart."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_inline_jit

Sums = npt.NDArray[np.int64]
"""Place ``2 k`` holds the low halves of sum ``k``, place ``2 k + 1`` the high ones."""


@lean_inline_jit
def add_wide(sums: Any, k: int, value: Any) -> None:
    """Add an int64 that is not negative to sum ``k``."""
    sums[2 * k] += value & np.int64(0xFFFFFFFF)
    sums[2 * k + 1] += value >> np.int64(32)


def wide_totals(sums: Sums) -> list[int]:
    """Return the exact sums over all threads, of any size.

    Args:
        sums: What each thread summed ``[T, 2 K]``.
    """
    low, high = sums[:, 0::2].sum(axis=0), sums[:, 1::2].sum(axis=0)
    return [
        int(a) + (int(b) << 32) for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]
