"""The block of :func:`graphsys.core.operators.watch_operators`; imports torch."""

import functools
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from graphsys.core.events import ended
from graphsys.core.operator_kinds import kind_of


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
