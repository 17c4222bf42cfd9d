"""Kernels of message passing on the CPU: numba's, on numpy views of torch's tensors.

The twin for rows on a device is :mod:`graphsys.gnn.ops.cuda.kernels`: the same names and
signatures. Shapes: R rows, E entries, S sources, F features, H heads.
"""

from hashlib import blake2b
from typing import Any

import numpy as np
import torch

from graphsys.core.events import count, is_recording, observe
from graphsys.core.row_trace import RowVisit
from graphsys.gnn.ops.adjacency import RowEntries, SparseRows, kernel_team
from graphsys.kernels.cpu.gnn import message_sums as sums
from graphsys.kernels.cpu.gnn import segments


def _numpy(x: torch.Tensor) -> Any:
    return x.detach().contiguous().numpy()


def _run(kernel: Any, *arguments: Any) -> None:
    """Run a kernel on all threads; its last argument but for outputs is the counter."""
    kernel_team().run(kernel, *arguments)


def _room(shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """Return a tensor to be filled; NumPy asks for huge pages, torch by itself does not."""
    return torch.from_numpy(np.empty(shape, dtype=_numpy(like[:0]).dtype))


def _counter() -> Any:
    return np.zeros(1, dtype=np.int64)


def _scalar(x: torch.Tensor, value: float) -> Any:
    return np.float32(value) if x.dtype == torch.float32 else np.float64(value)


def widened(x: torch.Tensor) -> torch.Tensor:
    """Return tensors of 16 bits as float32, which these kernels add up."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _tell(indptr: Any, indices: Any, values: torch.Tensor) -> None:
    """Tell a profile of rows whose entries each read a row of values."""
    tell_rows(indptr, indices, width=values[:1].numel(), value_bytes=values.element_size())


def sum_rows(
    entries: RowEntries,
    weight: torch.Tensor | None,
    x: torch.Tensor,
    *,
    is_mean: bool = False,
) -> torch.Tensor:
    """Return the weighted sums, or means, of the rows of ``x`` that entries name.

    Args:
        entries: Of the rows that are wanted.
        weight: ``[E]`` for ``x`` ``[S, F]``, ``[E, H]`` for ``[S, H, F]``; None: all 1.
        x: Rows.
        is_mean: Divide by the number of entries.
    """
    out = _room((len(entries.indptr) - 1, *x.shape[1:]), x)
    kernel = sums.sum_head_messages if x.dim() == 3 else sums.sum_messages
    factor: Any = None if weight is None else _numpy(weight)
    width, indices, given = x[:1].numel(), entries.indices, _numpy(x)
    _tell(entries.indptr, entries.indices, x)
    count(
        "kernel_work",
        2 * len(indices) * width,
        kernel=kernel.__name__,
        bytes=len(indices) * (width * given.itemsize + indices.itemsize) + out.nbytes,
    )
    if x.dim() == 3:
        _run(kernel, *entries, factor, given, _counter(), out.numpy())
    else:
        factor = np.empty(0, given.dtype) if factor is None else factor
        base = np.uint64(given.ctypes.data if given.nbytes > sums.CACHE_BYTES else 0)
        _run(kernel, *entries, factor, is_mean, given, base, _counter(), out.numpy())
    return out


def sum_values(entries: RowEntries, values: torch.Tensor) -> torch.Tensor:
    """Return the sums of the values of each row's entries ``[R, H]``, values ``[E, H]``."""
    out = _room((len(entries.indptr) - 1, values.shape[1]), values)
    _tell(entries.indptr, entries.entry if len(entries.entry) else None, values)
    arguments = (entries.indptr, entries.entry, _numpy(values), _counter())
    _run(segments.sum_entries, *arguments, out.numpy())
    return out


def max_rows(rows: SparseRows, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the maxima of rows by feature, and what their gradient needs to know."""
    out = _room((rows.num_dst, x.shape[1]), x)
    winner = np.empty(out.shape, dtype=np.int32)
    _tell(rows.indptr, rows.indices, x)
    _run(
        sums.max_messages,
        rows.indptr,
        rows.indices,
        _numpy(x),
        _counter(),
        out.numpy(),
        winner,
    )
    return out, torch.from_numpy(winner)


def max_gradient(
    rows: SparseRows, winner: torch.Tensor, grad: torch.Tensor
) -> torch.Tensor:
    """Return the gradient of ``x``, given that of the maxima ``[R, F]``."""
    of_x = torch.zeros((rows.num_src, grad.shape[1]), dtype=grad.dtype)
    sums.scatter_winners(_numpy(winner), _numpy(grad), of_x.numpy())
    return of_x


def dot_ends(rows: SparseRows, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the inner products of both ends ``[E, H]``, ends being ``[.., H, F]``."""
    return _of_entries(sums.dot_entries, rows, x, y)


def add_ends(rows: SparseRows, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the sums of a number of each end ``[E, H]``."""
    return _of_entries(segments.add_ends, rows, x, y)


def _of_entries(
    kernel: Any, rows: SparseRows, x: torch.Tensor, y: torch.Tensor
) -> torch.Tensor:
    """Return what a kernel makes of both ends of every entry ``[E, H]``."""
    out = _room((rows.num_edges, x.shape[1]), x)
    _tell(rows.indptr, rows.indices, x)
    _run(kernel, rows.indptr, rows.indices, _numpy(x), _numpy(y), _counter(), out.numpy())
    return out


def softmax(rows: SparseRows, scores: torch.Tensor) -> torch.Tensor:
    """Return the shares of entries in their rows ``[E, H]``."""
    out = _room(tuple(scores.shape), scores)
    _tell(rows.indptr, None, scores)
    _run(segments.softmax_rows, rows.indptr, _numpy(scores), _counter(), out.numpy())
    return out


def softmax_gradient(
    rows: SparseRows, shares: torch.Tensor, grad: torch.Tensor
) -> torch.Tensor:
    """Return the gradient of the scores, given that of the shares."""
    out = _room(tuple(shares.shape), shares)
    _tell(rows.indptr, None, shares)
    arguments = (rows.indptr, _numpy(shares), _numpy(grad), _counter())
    _run(segments.softmax_rows_gradient, *arguments, out.numpy())
    return out


def attend_ends(
    rows: SparseRows,
    x: torch.Tensor,
    y: torch.Tensor,
    attention: torch.Tensor,
    slope: float,
) -> torch.Tensor:
    """Return GATv2's scores ``[E, H]``."""
    out = _room((rows.num_edges, x.shape[1]), x)
    _tell(rows.indptr, rows.indices, x)
    _run(
        segments.attend_ends,
        rows.indptr,
        rows.indices,
        _numpy(x),
        _numpy(y),
        _numpy(attention),
        _scalar(x, slope),
        _counter(),
        out.numpy(),
    )
    return out


def attend_gradients(
    rows: SparseRows,
    x: torch.Tensor,
    y: torch.Tensor,
    attention: torch.Tensor,
    slope: float,
    grad: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of ``x``, ``y`` and ``attention``, given that of the scores."""
    vector, given, scale = _numpy(attention), _numpy(grad), _scalar(x, slope)
    of_attention = np.zeros((kernel_team().num_threads, *vector.shape), vector.dtype)
    of_x, of_y = _room(tuple(x.shape), x), _room(tuple(y.shape), y)
    for entries, ends, out, extra in (
        (rows.entries, (x, y), of_y, of_attention),
        (rows.transposed, (y, x), of_x, of_attention[:0]),
    ):
        _tell(entries.indptr, entries.indices, ends[0])
        _run(
            segments.attend_ends_gradient,
            *entries,
            *map(_numpy, ends),
            vector,
            scale,
            given,
            _counter(),
            out.numpy(),
            extra,
        )
    return of_x, of_y, torch.from_numpy(of_attention.sum(axis=0))


def tell_rows(indptr: Any, indices: Any = None, *, width: int, value_bytes: int) -> None:
    """Count the entries of one launch, and offer its rows to the SIMT model.

    Kernels of a device give a row of entries to a warp, whose lanes take the columns
    (``kernels/cuda/gnn``), which is what the model is told.

    Args:
        indptr: Row offsets, int64 ``[R + 1]``.
        indices: Which rows of values the entries name ``[E]``; None: those in order.
        width: Columns of such a row.
        value_bytes: Size of one of them.
    """
    if is_recording():
        count("edges", int(indptr[-1]))
    observe("rows", lambda: [_visit(indptr, indices, width, value_bytes)])


def _visit(indptr: Any, indices: Any, width: int, value_bytes: int) -> RowVisit:
    has_indices = indices is not None
    if not has_indices:
        indices = np.arange(int(indptr[-1]), dtype=np.int32)
    # the arrays of batches are used again, so that only their content tells them apart
    content = blake2b(np.ascontiguousarray(indptr).data, digest_size=16)
    content.update(np.ascontiguousarray(indices).data)
    return RowVisit(
        superstep=0,
        kind="pull",
        lengths=np.diff(indptr),
        starts=indptr[:-1],
        indices=indices,
        width=width,
        value_bytes=value_bytes,
        part="messages",
        key=("messages", content.digest(), width, value_bytes, has_indices),
        mapping="warp",
        has_index_loads=has_indices,
    )
