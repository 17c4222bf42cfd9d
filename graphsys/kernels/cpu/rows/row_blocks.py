"""Cutting rows into chunks of equal work."""

from typing import Any

import numpy as np
import numpy.typing as npt


def balanced_chunks(
    indptr: npt.NDArray[Any], num_chunks: int = 256, align: int = 64
) -> npt.NDArray[np.int64]:
    """Cut the rows of a compressed graph so that all chunks hold about as much work.

    Args:
        indptr: Row offsets ``[N + 1]``, from any first offset on.
        num_chunks: See :func:`cut_rows`.
        align: See :func:`cut_rows`.
    """
    return cut_rows(indptr[:-1], int(indptr[-1]), num_chunks, align)


def cut_rows(
    begins: npt.NDArray[Any], end: int, num_chunks: int = 256, align: int = 64
) -> npt.NDArray[np.int64]:
    """Cut rows so that all chunks hold about as much work.

    A row costs its entries and one more. Bounds are multiples of ``align``, so that two
    chunks never share a word of a bitmap.

    Args:
        begins: Where each row begins, ascending ``[N]``.
        end: Where the last one ends.
        num_chunks: How many chunks at most.
        align: Every bound but the last is a multiple of it.

    Returns:
        Strictly increasing bounds from 0 to N, int64 ``[C + 1]``; ``[0]`` without rows.
    """
    num_rows = len(begins)
    first = int(begins[0]) if num_rows else end
    blocks = np.arange(0, num_rows, align, dtype=np.int64)
    work = begins[blocks].astype(np.int64) - first + blocks
    total = end - first + num_rows
    shares = np.arange(1, num_chunks, dtype=np.int64) * total // max(num_chunks, 1)
    cuts = np.minimum(np.searchsorted(work, shares) * align, num_rows)
    bounds: npt.NDArray[np.int64] = np.unique(np.concatenate([[0], cuts, [num_rows]]))
    return bounds
