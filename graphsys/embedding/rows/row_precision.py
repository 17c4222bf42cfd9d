"""How rows are stored: float32, or the bits of bfloat16 or float16 as uint16.

NumPy has no bfloat16, so rows in 16 bits are uint16 in memory and in files, and the run's
config says what they mean. Kernels round at random while training; here, where rows are
only converted, they are rounded to the nearest.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.embedding.config import RowDtype

Floats = npt.NDArray[np.float32]
Stored = npt.NDArray[Any]
"""float32 or uint16 ``[N, D]``."""

_NUMBERS_AT_A_TIME = 1 << 18


def rows_at_a_time(dim: int) -> int:
    """Return how many rows are converted together: 1 MB of float32, of whatever length.

    Examples:
        >>> rows_at_a_time(128)
        2048
    """
    return max(_NUMBERS_AT_A_TIME // max(dim, 1), 1)


def stored_dtype(row_dtype: RowDtype) -> np.dtype[Any]:
    """Return the dtype of stored rows."""
    return np.dtype(np.float32 if row_dtype == "float32" else np.uint16)


def to_stored(rows: Floats, row_dtype: RowDtype) -> Stored:
    """Round rows to the nearest that can be stored.

    Examples:
        >>> rows = np.array([[1.0, -0.375]], dtype=np.float32)
        >>> [hex(bits) for bits in to_stored(rows, "bfloat16")[0]]
        ['0x3f80', '0xbec0']
    """
    if row_dtype == "float32":
        return rows
    if row_dtype == "float16":
        return rows.astype(np.float16).view(np.uint16)
    bits = rows.view(np.uint32)
    is_odd = (bits >> np.uint32(16)) & np.uint32(1)  # halves go to the even neighbor
    return ((bits + np.uint32(0x7FFF) + is_odd) >> np.uint32(16)).astype(np.uint16)


def to_floats(stored: Stored, row_dtype: RowDtype) -> Floats:
    """Return stored rows as float32 ``[N, D]``; the same array if they are."""
    if row_dtype == "float32":
        return stored
    if row_dtype == "float16":
        return stored.view(np.float16).astype(np.float32)
    return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)


def are_finite(stored: Stored, row_dtype: RowDtype) -> bool:
    """Say whether stored rows have neither infinities nor what is not a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        block = rows_at_a_time(stored.shape[1])
        for begin in range(0, len(stored), block):
            rows = to_floats(stored[begin : begin + block], row_dtype)
            if not np.isfinite(rows.sum()) and not np.isfinite(rows).all():
                return False
    return True
