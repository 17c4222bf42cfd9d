"""Kernels on tensors with their gradients: what the functions of message passing apply.

Every one is one or two kernels on numpy views of the tensors. Gradients by source run on
the transposed rows, so nothing is added by two threads at once.
"""

from typing import Any

import numpy as np
import torch
from torch.autograd import Function

from graphsys.core.events import count
from graphsys.gnn.sparse_rows import SparseRows, kernel_team
from graphsys.kernels.cpu import message_sums as sums
from graphsys.kernels.cpu import segments

_NO_ENTRIES = np.empty(0, dtype=np.int64)


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


def _sum_into(
    indptr: Any, indices: Any, entry: Any, weight: Any, is_mean: bool, x: Any, num_rows: int
) -> torch.Tensor:
    out = _room((num_rows, *x.shape[1:]), x)
    x = _numpy(x)
    kernel = sums.sum_head_messages if x.ndim == 3 else sums.sum_messages
    width = x[:1].size
    count(
        "kernel_work", 2 * len(indices) * width, kernel=kernel.__name__,
        bytes=len(indices) * (width * x.itemsize + indices.itemsize) + out.nbytes,
    )  # fmt: skip
    if x.ndim == 3:
        arguments = (indptr, indices, entry, weight, x, _counter(), out.numpy())
        _run(sums.sum_head_messages, *arguments)
    else:
        weight = np.empty(0, x.dtype) if weight is None else weight
        base = np.uint64(x.ctypes.data if x.nbytes > sums.CACHE_BYTES else 0)
        _run(
            sums.sum_messages, indptr, indices, entry, weight, is_mean, x, base,
            _counter(), out.numpy(),
        )  # fmt: skip
    return out


class Sum(Function):
    """Weighted sums and means of rows."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any, weight: Any, is_mean: bool) -> Any:
        ctx.rows, ctx.is_mean = rows, is_mean
        ctx.save_for_backward(x, weight)
        factor = None if weight is None else _numpy(weight)
        return _sum_into(
            rows.indptr, rows.indices, _NO_ENTRIES, factor, is_mean, x, rows.num_dst
        )

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        rows, (x, weight) = ctx.rows, ctx.saved_tensors
        of_x = of_weight = None
        if ctx.needs_input_grad[2]:
            of_weight = _dot(rows, x, grad).to(weight.dtype)
            of_weight = of_weight.reshape(weight.shape)
        if ctx.needs_input_grad[1]:
            if ctx.is_mean:
                grad = grad / rows.degrees.clamp(min=1).to(grad.dtype)[:, None]
            starts, indices, entry = rows.transposed
            factor = None if weight is None else _numpy(weight)
            of_x = _sum_into(starts, indices, entry, factor, False, grad, rows.num_src)
        return None, of_x, of_weight, None


class SumWithOwn(Function):
    """Sums and means of rows, beside the first rows of the input."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any, is_mean: bool) -> Any:
        ctx.rows, ctx.is_mean = rows, is_mean
        summed = _sum_into(
            rows.indptr, rows.indices, _NO_ENTRIES, None, is_mean, x, rows.num_dst
        )
        return summed, x[: rows.num_dst]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        rows, (grad, of_own) = ctx.rows, grads
        if not ctx.needs_input_grad[1]:
            return None, None, None
        if ctx.is_mean:
            grad = grad / rows.degrees.clamp(min=1).to(grad.dtype)[:, None]
        starts, indices, entry = rows.transposed
        of_x = _sum_into(starts, indices, entry, None, False, grad, rows.num_src)
        of_x[: rows.num_dst] += of_own
        return None, of_x, None


class Max(Function):
    """Maxima of rows, feature by feature."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any) -> Any:
        out = _room((rows.num_dst, x.shape[1]), x)
        winner = np.empty(out.shape, dtype=np.int32)
        _run(
            sums.max_messages, rows.indptr, rows.indices, _numpy(x), _counter(),
            out.numpy(), winner,
        )  # fmt: skip
        ctx.winner, ctx.num_src = winner, rows.num_src
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        of_x = torch.zeros((ctx.num_src, grad.shape[1]), dtype=grad.dtype)
        sums.scatter_winners(ctx.winner, _numpy(grad), of_x.numpy())
        return None, of_x


def _dot(rows: SparseRows, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.dim() == 2:
        x, y = x[:, None], y[:, None]
    out = _room((rows.num_edges, x.shape[1]), x)
    _run(
        sums.dot_entries, rows.indptr, rows.indices, _numpy(x), _numpy(y), _counter(),
        out.numpy(),
    )  # fmt: skip
    return out


class Dot(Function):
    """Inner products of both ends."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any, y: Any) -> Any:
        ctx.rows = rows
        ctx.save_for_backward(x, y)
        return _dot(rows, x, y)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        rows, (x, y), factor = ctx.rows, ctx.saved_tensors, _numpy(grads[0])
        of_x = of_y = None
        if ctx.needs_input_grad[1]:
            starts, indices, entry = rows.transposed
            of_x = _sum_into(starts, indices, entry, factor, False, y, rows.num_src)
        if ctx.needs_input_grad[2]:
            of_y = _sum_into(
                rows.indptr, rows.indices, _NO_ENTRIES, factor, False, x, rows.num_dst
            )
        return None, of_x, of_y


def _sum_values(indptr: Any, entry: Any, values: Any, num_rows: int) -> torch.Tensor:
    out = torch.from_numpy(np.empty((num_rows, values.shape[1]), dtype=values.dtype))
    _run(segments.sum_entries, indptr, entry, values, _counter(), out.numpy())
    return out


class Add(Function):
    """Sums of both ends."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any, y: Any) -> Any:
        ctx.rows = rows
        out = _room((rows.num_edges, x.shape[1]), x)
        _run(
            segments.add_ends, rows.indptr, rows.indices, _numpy(x), _numpy(y), _counter(),
            out.numpy(),
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        rows, grad = ctx.rows, _numpy(grads[0])
        of_x = of_y = None
        if ctx.needs_input_grad[1]:
            starts, _, entry = rows.transposed
            of_x = _sum_values(starts, entry, grad, rows.num_src)
        if ctx.needs_input_grad[2]:
            of_y = _sum_values(rows.indptr, _NO_ENTRIES, grad, rows.num_dst)
        return None, of_x, of_y


class Softmax(Function):
    """Softmax within rows."""

    @staticmethod
    def forward(ctx: Any, rows: Any, scores: Any) -> Any:
        out = _room(tuple(scores.shape), scores)
        _run(segments.softmax_rows, rows.indptr, _numpy(scores), _counter(), out.numpy())
        ctx.rows = rows
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (shares,) = ctx.saved_tensors
        out = _room(tuple(shares.shape), shares)
        _run(
            segments.softmax_rows_gradient, ctx.rows.indptr, _numpy(shares),
            _numpy(grads[0]), _counter(), out.numpy(),
        )  # fmt: skip
        return None, out


class Attend(Function):
    """GATv2's scores."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any, y: Any, attention: Any, slope: float) -> Any:
        ctx.rows, ctx.slope = rows, slope
        ctx.save_for_backward(x, y, attention)
        out = _room((rows.num_edges, x.shape[1]), x)
        _run(
            segments.attend_ends, rows.indptr, rows.indices, _numpy(x), _numpy(y),
            _numpy(attention), _scalar(x, slope), _counter(), out.numpy(),
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        rows, (x, y, attention) = ctx.rows, ctx.saved_tensors
        grad, slope = _numpy(grads[0]), _scalar(x, ctx.slope)
        vector = _numpy(attention)
        of_attention = np.zeros((kernel_team().num_threads, *vector.shape), vector.dtype)
        of_y = _room(tuple(y.shape), y)
        _run(
            segments.attend_ends_gradient, rows.indptr, rows.indices, _NO_ENTRIES,
            _numpy(x), _numpy(y), vector, slope, grad, _counter(), of_y.numpy(),
            of_attention,
        )  # fmt: skip
        starts, indices, entry = rows.transposed
        of_x = _room(tuple(x.shape), x)
        _run(
            segments.attend_ends_gradient, starts, indices, entry, _numpy(y), _numpy(x),
            vector, slope, grad, _counter(), of_x.numpy(), of_attention[:0],
        )  # fmt: skip
        return None, of_x, of_y, torch.from_numpy(of_attention.sum(axis=0)), None


def _scalar(x: torch.Tensor, value: float) -> Any:
    return np.float32(value) if x.dtype == torch.float32 else np.float64(value)
