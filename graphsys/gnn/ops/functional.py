"""Message passing with gradients: sums over rows, products of ends, softmax within rows.

Results are the same for any number of threads, but for the gradient of GATv2's attention
vector. Sums are float32 where tensors are bfloat16 (mixed precision). Rows that were moved
to a device (``SparseRows.to``) take tensors that are there.
"""

from typing import Any, Literal

import torch

from graphsys.core.errors import ConfigError
from graphsys.gnn.ops import autograd as kernels
from graphsys.gnn.ops.adjacency import SparseRows

Reduce = Literal["sum", "mean", "max"]


def spmm(
    rows: SparseRows,
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    reduce: Reduce = "sum",
) -> torch.Tensor:
    """Reduce the rows of ``x`` that each row's entries name.

    Args:
        rows: Where messages go.
        x: Of the sources, floats ``[S, F]`` or ``[S, H, F]``.
        weight: A factor per entry ``[E]``, or per entry and head ``[E, H]``; for sums.
        reduce: ``sum``, ``mean`` (over the entries of a row) or ``max``.

    Returns:
        ``[D, F]`` or ``[D, H, F]``; 0 where a row has no entries.

    Raises:
        ConfigError: Shapes that do not fit, or weights for a mean or a maximum.
    """
    _check(rows, x, rows.num_src, "x")
    if reduce not in ("sum", "mean", "max"):
        raise ConfigError(f"reduce: got {reduce!r}, expected sum, mean or max")
    if weight is None:
        flat = x.flatten(1)
        if reduce == "max":
            result = _apply(kernels.Max, rows, flat)
        else:
            result = _apply(kernels.Sum, rows, flat, None, reduce == "mean")
        return result.reshape(rows.num_dst, *x.shape[1:])
    if reduce != "sum":
        raise ConfigError(f"reduce: got {reduce!r} with weights, expected sum")
    wanted = (rows.num_edges,) if x.dim() == 2 else (rows.num_edges, x.shape[1])
    if tuple(weight.shape) != wanted:
        raise ConfigError(f"weight is {list(weight.shape)}, expected {list(wanted)}")
    return _apply(kernels.Sum, rows, x, weight, False)


def weighed_mean(rows: SparseRows, x: torch.Tensor) -> torch.Tensor:
    """Return the mean of each row, or its estimate where a sampler gives weights.

    Args:
        rows: Where messages go; their weights, if any, make the sum an estimate.
        x: Of the sources, floats ``[S, F]``.
    """
    return spmm(rows, x, rows.weight, "mean" if rows.weight is None else "sum")


def spmm_with_own(
    rows: SparseRows, x: torch.Tensor, reduce: Literal["sum", "mean"]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sums or means of rows, and the rows' own rows of ``x``.

    The same as ``spmm(rows, x, reduce=reduce), x[: rows.num_dst]``; but the gradients of
    both are added where the first is made, which saves two passes over arrays as large as
    ``x``: a quarter of a training step of GraphSAGE.

    Args:
        rows: Where messages go; the first sources are the rows' own nodes.
        x: Of the sources, floats ``[S, F]``.
        reduce: ``sum`` or ``mean``.

    Raises:
        ConfigError: Shapes that do not fit, or rows of which that is not so.
    """
    _check(rows, x, rows.num_src, "x")
    if not rows.is_prefix:
        raise ConfigError("rows whose own nodes are no sources have no own rows of x")
    found: Any = _apply(kernels.SumWithSelf, rows, x, reduce == "mean")
    return found[0], found[1]


def sddmm(
    rows: SparseRows, x: torch.Tensor, y: torch.Tensor, op: Literal["dot", "add"] = "dot"
) -> torch.Tensor:
    """Combine both ends of every entry.

    Args:
        rows: Where messages go.
        x: Of the sources: ``[S, H, F]`` for ``dot``, ``[S, H]`` for ``add``.
        y: Of the rows, ``[D, H, F]`` or ``[D, H]``.
        op: The inner product of each head, or the sum.

    Returns:
        ``[E, H]``.

    Raises:
        ConfigError: Shapes that do not fit.
    """
    _check(rows, x, rows.num_src, "x")
    _check(rows, y, rows.num_dst, "y")
    if x.shape[1:] != y.shape[1:] or x.dim() != (3 if op == "dot" else 2):
        raise ConfigError(
            f"x is {list(x.shape)} and y {list(y.shape)}; expected the same [heads"
            f"{', features' if op == 'dot' else ''}] for op {op!r}"
        )
    return _apply(kernels.EdgeDot if op == "dot" else kernels.Add, rows, x, y)


def segment_softmax(rows: SparseRows, scores: torch.Tensor) -> torch.Tensor:
    """Turn the scores of each row's entries into shares that sum to 1, ``[E, H]``.

    Raises:
        ConfigError: Shapes that do not fit.
    """
    if scores.dim() != 2 or scores.shape[0] != rows.num_edges:
        raise ConfigError(
            f"scores are {list(scores.shape)}, expected [{rows.num_edges}, heads]"
        )
    return _apply(kernels.Softmax, rows, scores)


def attention_scores(
    rows: SparseRows,
    x: torch.Tensor,
    y: torch.Tensor,
    attention: torch.Tensor,
    slope: float = 0.2,
) -> torch.Tensor:
    """Return GATv2's scores, attention . leaky_relu(x[source] + y[row]), ``[E, H]``.

    Args:
        rows: Where messages go.
        x: Of the sources ``[S, H, F]``.
        y: Of the rows ``[D, H, F]``.
        attention: ``[H, F]``.
        slope: Of the leaky ReLU below 0.

    Raises:
        ConfigError: Shapes that do not fit.
    """
    _check(rows, x, rows.num_src, "x")
    _check(rows, y, rows.num_dst, "y")
    if x.dim() != 3 or x.shape[1:] != y.shape[1:] or x.shape[1:] != attention.shape:
        raise ConfigError(
            f"x is {list(x.shape)}, y {list(y.shape)}, attention "
            f"{list(attention.shape)}; expected the same [heads, features]"
        )
    return _apply(kernels.Attend, rows, x, y, attention, slope)


def is_beginning(part: torch.Tensor, whole: torch.Tensor) -> bool:
    """Tell whether a tensor is the first rows of another, not a copy of them."""
    return part.data_ptr() == whole.data_ptr() and part.stride() == whole.stride()


def _check(rows: SparseRows, x: torch.Tensor, length: int, name: str) -> None:
    if x.shape[0] != length or not x.is_floating_point() or x.dim() < 2:
        raise ConfigError(
            f"{name} is {str(x.dtype).removeprefix('torch.')} {list(x.shape)}, expected "
            f"floats of [{length}, ...]"
        )


def _apply(function: Any, rows: SparseRows, *arguments: Any) -> torch.Tensor:
    for given in arguments:
        if isinstance(given, torch.Tensor) and given.device != rows.device:
            raise ConfigError(
                f"a tensor is on {given.device}, the rows on {rows.device}; expected one "
                "place for both: move rows with .to(device)"
            )
    widened = kernels.kernels_of(rows).widened
    given = [widened(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    found: torch.Tensor = function.apply(rows, *given)
    return found
