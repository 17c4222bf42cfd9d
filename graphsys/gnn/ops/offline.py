"""The kernels of message passing compiled to Hopper's machine code without a GPU.

They are started as layers start them, forwards and backwards, only that every start is a
compilation; see :mod:`graphsys.core.triton.offline`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from graphsys.core.cuda.offline import KernelReport
from graphsys.core.triton.offline import compile_one, compiling_offline
from graphsys.gnn.ops import functional as ours
from graphsys.gnn.ops.adjacency import PIECE, DeviceSparseRows, SparseRows
from graphsys.gnn.ops.cuda.feature_cache import PartialFeatures
from graphsys.gnn.ops.cuda.launch import launching

_NUM_NODES = 64


def compile_kernels(
    width: int,
    heads: int,
    precision: str,
    *,
    count: int | None = None,
    is_aligned: bool = True,
) -> dict[str, KernelReport]:
    """Compile all kernels for one shape of rows.

    Args:
        width: Features of a head, or of a row without heads.
        heads: Heads of attention.
        precision: Dtype of features: ``float32``, ``bfloat16`` ...
        count: Takes the place of every integer that a kernel is given; Triton compiles one
            apart where it is 1, a multiple of 16, or beyond 32 bits. None: as they are.
        is_aligned: Whether tensors begin at multiples of 16 bytes.

    Returns:
        A report per kernel, named with what it was started for; kernels of rows of one
        piece each, and of rows of several.

    Raises:
        MissingDependencyError: Triton is not installed.
    """
    dtype = getattr(torch, precision)
    found: dict[str, KernelReport] = {}

    def given(argument: Any) -> Any:
        if isinstance(argument, torch.Tensor) and not is_aligned:
            return argument.new_empty(argument.numel() + 1)[1:]
        if type(argument) is int and count is not None:
            return count
        return argument

    def keep(purpose: str, kernel: Any, grid: Any, *arguments: Any, **options: Any) -> None:
        report = compile_one(kernel, grid, *map(given, arguments), **options)
        found[f"{purpose}: {report.name}"] = report

    table: Any = SimpleNamespace(table=torch.zeros(_NUM_NODES, width))
    with _compiled_by(keep, "features"):
        where = torch.zeros(_NUM_NODES, dtype=torch.int32)
        PartialFeatures(where, torch.zeros(_NUM_NODES, width), table).whole()
    for length, shape in ((1, "one piece"), (PIECE + 1, "pieces")):
        rows = _rows(length)
        for name, function, inputs in _calls(rows, width, heads, dtype):
            with _compiled_by(keep, f"{name}, {shape}, forward"):
                made = function(rows, *inputs)
            with _compiled_by(keep, f"{name}, {shape}, backward"):
                made.sum().backward()
    return found


@contextmanager
def _compiled_by(keep: Callable[..., None], purpose: str) -> Iterator[None]:
    with compiling_offline(), launching(partial(keep, purpose)):
        yield


def _rows(length: int) -> DeviceSparseRows:
    indptr = np.arange(_NUM_NODES + 1, dtype=np.int64) * length
    indices = np.arange(indptr[-1], dtype=np.int32) % _NUM_NODES
    return DeviceSparseRows.moved(SparseRows(indptr, indices, _NUM_NODES), torch.from_numpy)


def _calls(
    rows: DeviceSparseRows, width: int, heads: int, dtype: torch.dtype
) -> list[tuple[str, Any, list[torch.Tensor]]]:
    """Return what layers call, by name, with tensors to call it with."""

    def x(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, requires_grad=True)

    nodes, edges = _NUM_NODES, rows.num_edges
    flat, headed, scores = (nodes, width), (nodes, heads, width), (edges, heads)
    return [
        ("sum", ours.spmm, [x(*flat)]),
        ("mean", lambda r, a: ours.spmm(r, a, reduce="mean"), [x(*flat)]),
        ("max", lambda r, a: ours.spmm(r, a, reduce="max"), [x(*flat)]),
        ("weighted", ours.spmm, [x(*flat), x(edges)]),
        ("heads", ours.spmm, [x(*headed), x(*scores)]),
        ("dot", ours.sddmm, [x(*headed), x(*headed)]),
        ("add", lambda r, a, b: ours.sddmm(r, a, b, "add"), [x(nodes, heads)] * 2),
        ("softmax", ours.segment_softmax, [x(*scores)]),
        ("attention", ours.attention_scores, [x(*headed), x(*headed), x(heads, width)]),
    ]
