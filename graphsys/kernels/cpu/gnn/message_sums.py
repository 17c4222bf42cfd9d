"""Sums over the entries of rows: the products of sparse and dense that layers are made of.

A row of the result is the sum of the rows of ``x`` that its entries name, each times its
weight. Four entries are added at a time: the row of the result is loaded and stored once
for four rows that are read. Rows of ``x`` that do not fit into a cache are asked for 8 KB
ahead, 8 to 64 entries (1M x 32: half the time of 1 KB ahead; 1M x 100: 3/4 of 3 KB). Rows
are taken in blocks by an atomic counter, so a result does not depend on the threads. The
backward pass is the same kernel on the transposed rows.

Legend: R rows, E entries, S sources, F features, H heads.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.pointers import prefetch
from graphsys.kernels.jit import jit, lean_inline_jit, lean_jit

_ROWS = 32
_AHEAD = (8, 64)  # entries
_AHEAD_BYTES = 8192
_LINE = 64
_MOST_BYTES = 512  # of a row; the machine fetches on by itself
CACHE_BYTES = 1 << 20
"""Below this size of ``x`` nothing is asked for ahead."""


@lean_inline_jit
def _add4(target: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    for f in range(len(target)):
        target[f] += (a[f] + b[f]) + (c[f] + d[f])


@lean_inline_jit
def _add1(target: Any, a: Any) -> None:
    for f in range(len(target)):
        target[f] += a[f]


@lean_inline_jit
def _add4_scaled(
    target: Any, a: Any, b: Any, c: Any, d: Any, wa: Any, wb: Any, wc: Any, wd: Any
) -> None:
    for f in range(len(target)):
        target[f] += (a[f] * wa + b[f] * wb) + (c[f] * wc + d[f] * wd)


@lean_inline_jit
def _add1_scaled(target: Any, a: Any, wa: Any) -> None:
    for f in range(len(target)):
        target[f] += a[f] * wa


@lean_inline_jit
def _ask(indices: Any, k: Any, count: Any, base: Any, row_bytes: Any, ahead: Any) -> None:
    """Ask for the rows of entries some way ahead, whosever they are."""
    # The caller gives no address where all rows fit a cache.
    if base == np.uint64(0):
        return
    for place in range(k + ahead, min(k + ahead + count, len(indices))):
        start = base + np.uint64(indices[place]) * np.uint64(row_bytes)
        size = min(row_bytes, _MOST_BYTES)
        for line in range(0, size, _LINE):
            prefetch(start + np.uint64(line))
        prefetch(start + np.uint64(size - 1))  # rows do not begin with a line


@lean_inline_jit
def _sum_row(
    indices: Any,
    begin: Any,
    end: Any,
    x: Any,
    base: Any,
    row_bytes: Any,
    ahead: Any,
    target: Any,
) -> None:
    k = begin
    while k + 4 <= end:
        _ask(indices, k, 4, base, row_bytes, ahead)
        _add4(
            target, x[indices[k]], x[indices[k + 1]], x[indices[k + 2]], x[indices[k + 3]]
        )
        k += 4
    while k < end:
        _ask(indices, k, 1, base, row_bytes, ahead)
        _add1(target, x[indices[k]])
        k += 1


@lean_inline_jit
def _weigh_row(
    indices: Any,
    weight: Any,
    entry: Any,
    begin: Any,
    end: Any,
    x: Any,
    base: Any,
    row_bytes: Any,
    ahead: Any,
    target: Any,
) -> None:
    k = begin
    while k + 4 <= end:
        _ask(indices, k, 4, base, row_bytes, ahead)
        a, b, c, d = k, k + 1, k + 2, k + 3
        if len(entry):
            a, b, c, d = entry[k], entry[k + 1], entry[k + 2], entry[k + 3]
        _add4_scaled(
            target,
            x[indices[k]],
            x[indices[k + 1]],
            x[indices[k + 2]],
            x[indices[k + 3]],
            weight[a],
            weight[b],
            weight[c],
            weight[d],
        )
        k += 4
    while k < end:
        _ask(indices, k, 1, base, row_bytes, ahead)
        _add1_scaled(target, x[indices[k]], weight[entry[k] if len(entry) else k])
        k += 1


@lean_jit
def sum_messages(
    thread: int,
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    entry: npt.NDArray[np.int64],
    weight: npt.NDArray[Any],
    is_mean: bool,
    x: npt.NDArray[Any],
    base: np.uint64,
    counter: npt.NDArray[np.int64],
    out: npt.NDArray[Any],
) -> None:
    """Write the weighted sums of the rows of ``x`` that each row's entries name.

    Args:
        indices: Rows of ``x`` ``[E]``.
        entry: Place of each entry's weight, or empty: in order ``[E]``.
        weight: Weights ``[E]``, or empty: all 1.
        is_mean: Divide by the number of entries.
        x: ``[S, F]``.
        base: Address of ``x``, or 0: ask for nothing ahead.
        out: Receives the sums; 0 for a row without entries ``[R, F]``.
    """
    num_rows, row_bytes = len(indptr) - 1, x.shape[1] * x.itemsize
    ahead = min(max(_AHEAD_BYTES // max(row_bytes, 1), _AHEAD[0]), _AHEAD[1])
    for row in claimed_range(0, num_rows, _ROWS, counter):
        target = out[row]
        for f in range(len(target)):
            target[f] = 0
        begin, end = indptr[row], indptr[row + 1]
        if len(weight):
            _weigh_row(
                indices, weight, entry, begin, end, x, base, row_bytes, ahead, target
            )
        else:
            _sum_row(indices, begin, end, x, base, row_bytes, ahead, target)
        if is_mean and end > begin:
            scale = x.dtype.type(1.0 / (end - begin))
            for f in range(len(target)):
                target[f] *= scale


@lean_jit
def sum_head_messages(
    thread: int,
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    entry: npt.NDArray[np.int64],
    weight: npt.NDArray[Any],
    x: npt.NDArray[Any],
    counter: npt.NDArray[np.int64],
    out: npt.NDArray[Any],
) -> None:
    """Like :func:`sum_messages`, with a weight per head.

    Args:
        indices: Rows of ``x`` ``[E]``.
        entry: Place of each entry's weights, or empty ``[E]``.
        weight: ``[E, H]``.
        x: ``[S, H, F]``.
        out: Receives the sums ``[R, H, F]``.
    """
    num_rows, num_heads = len(indptr) - 1, x.shape[1]
    for row in claimed_range(0, num_rows, _ROWS, counter):
        for h in range(num_heads):
            target = out[row, h]
            for f in range(len(target)):
                target[f] = 0
        for k in range(indptr[row], indptr[row + 1]):
            place = entry[k] if len(entry) else k
            for h in range(num_heads):
                _add1_scaled(out[row, h], x[indices[k], h], weight[place, h])


@lean_jit
def max_messages(
    thread: int,
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    x: npt.NDArray[Any],
    counter: npt.NDArray[np.int64],
    out: npt.NDArray[Any],
    winner: npt.NDArray[np.int32],
) -> None:
    """Write the largest value of each feature, and whose it is.

    Args:
        indices: Rows of ``x`` ``[E]``.
        x: ``[S, F]``.
        out: Receives the maxima; 0 for a row without entries ``[R, F]``.
        winner: Receives the row of ``x`` that has it, the first of equals; -1 for none
            ``[R, F]``.
    """
    num_rows = len(indptr) - 1
    for row in claimed_range(0, num_rows, _ROWS, counter):
        begin, end = indptr[row], indptr[row + 1]
        for f in range(x.shape[1]):
            out[row, f] = 0
            winner[row, f] = -1
        for k in range(begin, end):
            source = indices[k]
            for f in range(x.shape[1]):
                # Greater alone: of equals the first wins, whoever sums.
                if winner[row, f] < 0 or x[source, f] > out[row, f]:
                    out[row, f] = x[source, f]
                    winner[row, f] = source


@jit
def scatter_winners(
    winner: npt.NDArray[np.int32], grad: npt.NDArray[Any], out: npt.NDArray[Any]
) -> None:
    """Add each gradient of a maximum to the value that won.

    Args:
        winner: From :func:`max_messages` ``[R, F]``.
        grad: ``[R, F]``.
        out: Zeros; receives the gradient of ``x`` ``[S, F]``.
    """
    for row in range(winner.shape[0]):
        for f in range(winner.shape[1]):
            if winner[row, f] >= 0:
                out[winner[row, f], f] += grad[row, f]


@lean_jit
def dot_entries(
    thread: int,
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    counter: npt.NDArray[np.int64],
    out: npt.NDArray[Any],
) -> None:
    """Write the inner product of both ends of every entry, head by head.

    Args:
        indices: Rows of ``x`` ``[E]``.
        x: Of the sources ``[S, H, F]``.
        y: Of the rows ``[R, H, F]``.
        out: Receives the products ``[E, H]``.
    """
    num_rows = len(indptr) - 1
    for row in claimed_range(0, num_rows, _ROWS, counter):
        for k in range(indptr[row], indptr[row + 1]):
            for h in range(x.shape[1]):
                a, b = x[indices[k], h], y[row, h]
                total = a[0] * b[0]
                for f in range(1, len(a)):
                    total += a[f] * b[f]
                out[k, h] = total


@jit
def transpose_block(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    starts: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int32],
    entry: npt.NDArray[np.int64],
) -> None:
    """List, for every source, the rows that name it, by counting.

    Args:
        indices: Sources ``[E]``.
        starts: Zeros; receives row offsets of the transposed ``[S + 1]``.
        rows: Receives rows, rising within each source ``[E]``.
        entry: Receives where each entry was ``[E]``.
    """
    for k in range(len(indices)):
        # A counting sort: it is linear, and rows rise within each source as they are met in
        # order.
        starts[indices[k] + 1] += 1
    for s in range(len(starts) - 1):
        starts[s + 1] += starts[s]
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            place = starts[indices[k]]
            rows[place] = row
            entry[place] = k
            starts[indices[k]] = place + 1
    # Filling moved each start to the next one's: one place back, they are offsets again.
    for s in range(len(starts) - 1, 0, -1):
        starts[s] = starts[s - 1]
    starts[0] = 0
