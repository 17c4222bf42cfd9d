"""Torch's operators: the kind of each, and the block that watches them; imports torch."""

import functools
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from graphsys.core.events import ended

_KINDS = {
    "gemm": "mm addmm bmm baddbmm linear matmul dot mv addmv",
    "gather": "index_select index gather embedding take",
    "scatter": "scatter scatter_add index_add index_put index_copy "
    "embedding_dense_backward scatter_reduce",
    "reduce": "sum mean amax amin max min prod all any argmax norm var logsumexp softmax "
    "_softmax log_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data "
    "nll_loss nll_loss_forward nll_loss_backward linalg_vector_norm",
    "sort": "sort topk argsort unique _unique2 searchsorted bucketize",
    "copy": "copy_ clone _to_copy cat stack contiguous fill_ zero_ zeros ones full "
    "empty_like zeros_like ones_like _local_scalar_dense item",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_FREE = frozenset(
    (
        "view",
        "_unsafe_view",
        "t",
        "transpose",
        "permute",
        "detach",
        "expand",
        "slice",
        "select",
        "unsqueeze",
        "squeeze",
        "alias",
        "as_strided",
        "reshape",
        "unbind",
        "split",
        "chunk",
        "lift_fresh",
        "empty",
    )
)
"""They move no bytes."""


def kind_of(name: str) -> str | None:
    """Return the kind of an operator by its name; None for one that moves nothing.

    Examples:
        >>> kind_of("addmm"), kind_of("relu"), kind_of("index_add_"), kind_of("view")
        ('gemm', 'elementwise', 'scatter', None)
    """
    plain = name.removesuffix("_")
    if name in _FREE or plain in _FREE:
        return None
    return _KIND_OF.get(name) or _KIND_OF.get(plain, "elementwise")


class OperatorWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Emits a span ``operator`` for each call: its kind, bytes and FLOP."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run an operator and emit it."""
        name, kind = _described(function)
        if kind is None:
            return function(*args, **(kwargs or {}))
        began = time.perf_counter_ns()
        found = function(*args, **(kwargs or {}))
        took = time.perf_counter_ns() - began
        moved = sum(tensor.nbytes for tensor in _tensors((args, kwargs, found)))
        flop = _flop(kind, args, found)
        ended("operator", began, took, kind=kind, call=name, bytes=moved, flop=flop)
        return found


@functools.cache
def _described(function: Any) -> tuple[str, str | None]:
    """Return an operator's name and kind; composing them takes as long as a small one."""
    name = str(function).split(".")[1]
    return name, kind_of(name)


def _flop(kind: str, args: Any, found: Any) -> int | None:
    """Count a product exactly, one for each element of other work; None where unknown."""
    if kind == "gemm":
        left = args[1] if len(args) > 2 else args[0]  # addmm(bias, left, right)
        return 2 * int(found.numel()) * int(left.shape[-1])
    if kind in ("elementwise", "reduce"):
        return max((int(tensor.numel()) for tensor in _tensors((args, found))), default=0)
    return 0 if kind in ("gather", "copy") else None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
