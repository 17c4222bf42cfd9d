"""How rows are stored: float32, the bits of bfloat16 or float16 as uint16, or int8.

NumPy has no bfloat16, so rows in 16 bits are uint16 in memory and in files, and the run's
config says what they mean. Rows of int8 are whole numbers, multiplied by a scale in their
last two bytes (:mod:`graphsys.kernels.cpu.embedding.storage`). Kernels round at random
while training; here, where rows are only converted, they are rounded to the nearest.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.embedding.config import RowDtype

Floats = npt.NDArray[np.float32]
Stored = npt.NDArray[Any]
"""float32 or uint16 ``[N, D]``, or int8 ``[N, D + 2]``."""

_NUMBERS_AT_A_TIME = 1 << 18
SCALE_BYTES = 2
"""Of a row of int8, behind its numbers."""

_MOST = 127
_CODES = 0x100, 0xFF00  # of scales: 2 ** -126, and what is not finite


def rows_at_a_time(dim: int) -> int:
    """Return how many rows are converted together: 1 MB of float32, of whatever length.

    Examples:
        >>> rows_at_a_time(128)
        2048
    """
    return max(_NUMBERS_AT_A_TIME // max(dim, 1), 1)


def stored_dtype(row_dtype: RowDtype) -> np.dtype[Any]:
    """Return the dtype of stored rows."""
    if row_dtype == "int8":
        return np.dtype(np.int8)
    return np.dtype(np.float32 if row_dtype == "float32" else np.uint16)


def stored_width(row_dtype: RowDtype, dim: int) -> int:
    """Return how many columns stored rows have: rows of int8 have their scale, too."""
    return dim + SCALE_BYTES * (row_dtype == "int8")


def num_columns(stored: Stored) -> int:
    """Return how many numbers a stored row has."""
    return int(stored.shape[1]) - SCALE_BYTES * (stored.dtype == np.int8)


def to_stored(rows: Floats, row_dtype: RowDtype) -> Stored:
    """Round rows to the nearest that can be stored.

    Examples:
        >>> rows = np.array([[1.0, -0.375]], dtype=np.float32)
        >>> [hex(bits) for bits in to_stored(rows, "bfloat16")[0]]
        ['0x3f80', '0xbec0']
        >>> to_stored(rows, "int8")  # of (1 + 3 / 256) * 2 ** (120 - 127)
        array([[127, -47,   3, 120]], dtype=int8)
    """
    if row_dtype == "float32":
        return rows
    if row_dtype == "int8":
        return _to_bytes(rows)
    if row_dtype == "float16":
        return rows.astype(np.float16).view(np.uint16)
    bits = rows.view(np.uint32)
    is_odd = (bits >> np.uint32(16)) & np.uint32(1)  # halves go to the even neighbor
    return ((bits + np.uint32(0x7FFF) + is_odd) >> np.uint32(16)).astype(np.uint16)


def to_floats(stored: Stored, row_dtype: RowDtype) -> Floats:
    """Return stored rows as float32 ``[N, D]``; the same array if they are."""
    if row_dtype == "float32":
        return stored
    if row_dtype == "int8":
        codes = np.ascontiguousarray(stored[:, -SCALE_BYTES:]).view("<u2")
        floats: Floats = stored[:, :-SCALE_BYTES].astype(np.float32) * _scales(codes)
        return floats
    if row_dtype == "float16":
        return stored.view(np.float16).astype(np.float32)
    return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _to_bytes(rows: Floats) -> npt.NDArray[np.int8]:
    largest = np.abs(rows).max(axis=1, initial=0, keepdims=True)
    bits = (largest / np.float32(_MOST)).view(np.uint32)
    codes = np.clip((bits + np.uint32(0x7FFF)) >> np.uint32(15), *_CODES)
    is_finite = codes < _CODES[1]
    numbers = np.rint(np.where(is_finite, rows, 0) / np.where(is_finite, _scales(codes), 1))
    stored = np.empty((len(rows), rows.shape[1] + SCALE_BYTES), dtype=np.int8)
    stored[:, :-SCALE_BYTES] = np.where(is_finite, np.clip(numbers, -_MOST, _MOST), 1)
    stored[:, -SCALE_BYTES:] = codes.astype("<u2").view(np.int8)
    return stored


def _scales(codes: npt.NDArray[Any]) -> Floats:
    return (codes.astype(np.uint32) << np.uint32(15)).view(np.float32)


def are_finite(stored: Stored, row_dtype: RowDtype) -> bool:
    """Say whether stored rows have neither infinities nor what is not a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        block = rows_at_a_time(stored.shape[1])
        for begin in range(0, len(stored), block):
            rows = to_floats(stored[begin : begin + block], row_dtype)
            if not np.isfinite(rows.sum()) and not np.isfinite(rows).all():
                return False
    return True
