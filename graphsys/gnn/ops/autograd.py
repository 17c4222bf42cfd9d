"""Kernels with their gradients: what the functions of message passing apply.

The kernels are those of the place where the rows are: :mod:`graphsys.gnn.ops.cpu`, or
:mod:`graphsys.gnn.ops.cuda.kernels`. Gradients by source run on the transposed rows, so
nothing is added by two threads at once.
"""

from typing import Any

from torch.autograd import Function

from graphsys.gnn.ops.adjacency import SparseRows


def kernels_of(rows: SparseRows) -> Any:
    """Return the module of the kernels that work where rows are."""
    if rows.is_on_device:
        from graphsys.gnn.ops.cuda import kernels as device_kernels

        return device_kernels
    from graphsys.gnn.ops import cpu

    return cpu


class Sum(Function):
    """Weighted sums and means of rows."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any, weight: Any, is_mean: bool) -> Any:
        ctx.rows, ctx.is_mean = rows, is_mean
        ctx.save_for_backward(x, weight)
        return kernels_of(rows).sum_rows(rows.entries, weight, x, is_mean=is_mean)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        rows, (x, weight) = ctx.rows, ctx.saved_tensors
        kernels = kernels_of(rows)
        of_x = of_weight = None
        if ctx.needs_input_grad[2]:
            has_heads = x.dim() == 3
            ends = (x, grad) if has_heads else (x[:, None], grad[:, None])
            of_weight = kernels.dot_ends(rows, *ends).to(weight.dtype)
            of_weight = of_weight.reshape(weight.shape)
        if ctx.needs_input_grad[1]:
            if ctx.is_mean:
                grad = _divided(grad, rows)
            of_x = kernels.sum_rows(rows.transposed, weight, grad).to(x.dtype)
        return None, of_x, of_weight, None


class SumWithSelf(Function):
    """Sums and means of rows, beside the first rows of the input."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any, is_mean: bool) -> Any:
        ctx.rows, ctx.is_mean, ctx.dtype = rows, is_mean, x.dtype
        summed = kernels_of(rows).sum_rows(rows.entries, None, x, is_mean=is_mean)
        return summed, x[: rows.num_dst]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        rows, (grad, of_own) = ctx.rows, grads
        if not ctx.needs_input_grad[1]:
            return None, None, None
        if ctx.is_mean:
            grad = _divided(grad, rows)
        of_x = kernels_of(rows).sum_rows(rows.transposed, None, grad)
        # The first sources are the destinations: both gradients meet in the same rows.
        of_x[: rows.num_dst] += of_own
        return None, of_x.to(ctx.dtype), None


class Max(Function):
    """Maxima of rows, feature by feature."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any) -> Any:
        out, winner = kernels_of(rows).max_rows(rows, x)
        ctx.rows, ctx.dtype = rows, x.dtype
        ctx.save_for_backward(winner)  # which a layer that is recomputed drops
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        of_x = kernels_of(ctx.rows).max_gradient(ctx.rows, *ctx.saved_tensors, grads[0])
        return None, of_x.to(ctx.dtype)


class EdgeDot(Function):
    """Inner products of both ends."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any, y: Any) -> Any:
        ctx.rows = rows
        ctx.save_for_backward(x, y)
        return kernels_of(rows).dot_ends(rows, x, y)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        rows, (x, y), (grad,) = ctx.rows, ctx.saved_tensors, grads
        kernels = kernels_of(rows)
        of_x = of_y = None
        if ctx.needs_input_grad[1]:
            of_x = kernels.sum_rows(rows.transposed, grad, y).to(x.dtype)
        if ctx.needs_input_grad[2]:
            of_y = kernels.sum_rows(rows.entries, grad, x).to(y.dtype)
        return None, of_x, of_y


class Add(Function):
    """Sums of both ends."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any, y: Any) -> Any:
        ctx.rows, ctx.dtypes = rows, (x.dtype, y.dtype)
        return kernels_of(rows).add_ends(rows, x, y)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        rows, (grad,) = ctx.rows, grads
        kernels = kernels_of(rows)
        of_x = of_y = None
        if ctx.needs_input_grad[1]:
            of_x = kernels.sum_values(rows.transposed, grad).to(ctx.dtypes[0])
        if ctx.needs_input_grad[2]:
            of_y = kernels.sum_values(rows.entries, grad).to(ctx.dtypes[1])
        return None, of_x, of_y


class Softmax(Function):
    """Softmax within rows."""

    @staticmethod
    def forward(ctx: Any, rows: Any, scores: Any) -> Any:
        out = kernels_of(rows).softmax(rows, scores)
        ctx.rows, ctx.dtype = rows, scores.dtype
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (shares,) = ctx.saved_tensors
        found = kernels_of(ctx.rows).softmax_gradient(ctx.rows, shares, grads[0])
        return None, found.to(ctx.dtype)


class Attend(Function):
    """GATv2's scores."""

    @staticmethod
    def forward(ctx: Any, rows: Any, x: Any, y: Any, attention: Any, slope: float) -> Any:
        ctx.rows, ctx.slope = rows, slope
        ctx.save_for_backward(x, y, attention)
        return kernels_of(rows).attend_ends(rows, x, y, attention, slope)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        given = ctx.saved_tensors
        found = kernels_of(ctx.rows).attend_gradients(ctx.rows, *given, ctx.slope, *grads)
        of_each = [f.to(x.dtype) for f, x in zip(found, given, strict=True)]
        return None, *of_each, None


def _divided(grad: Any, rows: SparseRows) -> Any:
    """Return the gradients of sums, given those of means."""
    return grad / rows.degrees.clamp(min=1).to(grad.dtype)[:, None]
