"""Attention over the entries of rows: scores of both ends, softmax within a row.

Legend: R rows, E entries, S sources, F features, H heads. Rows are taken in blocks by an
atomic counter; results do not depend on the threads. Backward passes by source run over
the transposed rows (``message_sums.transpose_block``).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.jit import lean_jit

_ROWS = 64
Offsets = npt.NDArray[np.int64]
Any2 = npt.NDArray[Any]


@lean_jit
def softmax_rows(
    thread: int, indptr: Offsets, scores: Any2, counter: Offsets, out: Any2
) -> None:
    """Write exp(score) over its sum within the row, for every head.

    Args:
        scores: ``[E, H]``.
        out: Receives shares that sum to 1 in every row ``[E, H]``.
    """
    num_rows = len(indptr) - 1
    for row in claimed_range(0, num_rows, _ROWS, counter):
        begin, end = indptr[row], indptr[row + 1]
        for h in range(scores.shape[1] if end > begin else 0):
            # The largest is subtracted, so that no exponential overflows.
            highest = scores[begin, h]
            for k in range(begin + 1, end):
                highest = max(highest, scores[k, h])
            total = scores[begin, h] - scores[begin, h]  # 0 of this dtype, or NaN
            for k in range(begin, end):
                out[k, h] = np.exp(scores[k, h] - highest)
                total += out[k, h]
            for k in range(begin, end):
                out[k, h] /= total


@lean_jit
def softmax_rows_gradient(
    thread: int, indptr: Offsets, shares: Any2, grad: Any2, counter: Offsets, out: Any2
) -> None:
    """Write the gradient of the scores: share * (grad - sum of share * grad in the row).

    Args:
        shares: From :func:`softmax_rows` ``[E, H]``.
        grad: Gradient of the shares ``[E, H]``.
        out: Receives the gradient ``[E, H]``.
    """
    num_rows = len(indptr) - 1
    for row in claimed_range(0, num_rows, _ROWS, counter):
        begin, end = indptr[row], indptr[row + 1]
        for h in range(shares.shape[1] if end > begin else 0):
            total = shares[begin, h] * grad[begin, h]
            for k in range(begin + 1, end):
                total += shares[k, h] * grad[k, h]
            for k in range(begin, end):
                out[k, h] = shares[k, h] * (grad[k, h] - total)


@lean_jit
def add_ends(
    thread: int,
    indptr: Offsets,
    indices: npt.NDArray[Any],
    of_src: Any2,
    of_dst: Any2,
    counter: Offsets,
    out: Any2,
) -> None:
    """Write the sum of a value of the source and one of the row, for every entry.

    Args:
        indices: Sources ``[E]``.
        of_src: ``[S, H]``.
        of_dst: ``[R, H]``.
        out: Receives the sums ``[E, H]``.
    """
    num_rows = len(indptr) - 1
    for row in claimed_range(0, num_rows, _ROWS, counter):
        for k in range(indptr[row], indptr[row + 1]):
            for h in range(of_src.shape[1]):
                out[k, h] = of_src[indices[k], h] + of_dst[row, h]


@lean_jit
def sum_entries(
    thread: int, indptr: Offsets, entry: Offsets, values: Any2, counter: Offsets, out: Any2
) -> None:
    """Write the sum of the values of each row's entries.

    Args:
        entry: Where the value of each entry lies, or empty: in order ``[E]``.
        values: ``[E, H]``.
        out: Receives the sums ``[R, H]``.
    """
    num_rows = len(indptr) - 1
    for row in claimed_range(0, num_rows, _ROWS, counter):
        for h in range(values.shape[1]):
            out[row, h] = 0
        for k in range(indptr[row], indptr[row + 1]):
            place = entry[k] if len(entry) else k
            for h in range(values.shape[1]):
                out[row, h] += values[place, h]


@lean_jit
def attend_ends(
    thread: int,
    indptr: Offsets,
    indices: npt.NDArray[Any],
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    attention: Any2,
    slope: float,
    counter: Offsets,
    out: Any2,
) -> None:
    """Write GATv2's scores: attention . leaky_relu(x[source] + y[row]), head by head.

    Brody, Alon, Yahav, "How attentive are graph attention networks?", ICLR 2022.

    Args:
        indices: Sources ``[E]``.
        x: ``[S, H, F]``.
        y: ``[R, H, F]``.
        attention: ``[H, F]``.
        slope: Of the leaky ReLU below 0.
        out: Receives the scores ``[E, H]``.
    """
    num_rows = len(indptr) - 1
    for row in claimed_range(0, num_rows, _ROWS, counter):
        for k in range(indptr[row], indptr[row + 1]):
            for h in range(x.shape[1]):
                a, b, c = x[indices[k], h], y[row, h], attention[h]
                total = a[0] - a[0]
                for f in range(len(a)):
                    value = a[f] + b[f]
                    total += c[f] * (value if value > 0 else value * slope)
                out[k, h] = total


@lean_jit
def attend_ends_gradient(
    thread: int,
    indptr: Offsets,
    indices: npt.NDArray[Any],
    entry: Offsets,
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    attention: Any2,
    slope: float,
    grad: Any2,
    counter: Offsets,
    out: npt.NDArray[Any],
    of_attention: npt.NDArray[Any],
) -> None:
    """Write the gradient of ``y``; on transposed rows, x and y exchanged, of ``x``.

    Args:
        indices: The other ends ``[E]``.
        entry: Place of each entry's gradient, or empty: in order ``[E]``.
        x: Of the other ends ``[S, H, F]``.
        y: Of the rows ``[R, H, F]``.
        attention: ``[H, F]``.
        slope: Of the leaky ReLU below 0.
        grad: Gradient of the scores ``[E, H]``.
        out: Receives the gradient ``[R, H, F]``.
        of_attention: The gradient of ``attention`` is added to line ``thread``
            ``[threads, H, F]``; empty: it is not wanted.
    """
    num_rows = len(indptr) - 1
    for row in claimed_range(0, num_rows, _ROWS, counter):
        for h in range(x.shape[1]):
            for f in range(x.shape[2]):
                out[row, h, f] = 0
        for k in range(indptr[row], indptr[row + 1]):
            place = entry[k] if len(entry) else k
            for h in range(x.shape[1]):
                g = grad[place, h]
                for f in range(x.shape[2]):
                    value = x[indices[k], h, f] + y[row, h, f]
                    factor = g if value > 0 else g * slope
                    out[row, h, f] += factor * attention[h, f]
                    # A line for each thread: added up by the caller, no thread writes to
                    # another's.
                    if len(of_attention):
                        of_attention[thread, h, f] += factor * value
