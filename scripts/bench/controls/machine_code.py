"""The controls' kernels as machine code for Hopper: instructions by kind, without a GPU.

A control's kernel is a plain function that reads global memory through ``device.load``.
Here it is compiled with that replaced by the load itself, within the loop over phases that
its barriers stand for, by the same compilers as the engine's kernels.
"""

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.controls import device
from bench.controls.device import Device, Kernel

_SOURCE = """
def entry(phases, {names}):
    shared = cuda.shared.array({shared}, dtype)
    own = cuda.local.array({own}, dtype)
    for i in range({own}):
        own[i] = 0
    for phase in range(phases):
        body(phase, cuda.blockIdx.x, cuda.threadIdx.x, shared, own, 0, {names})
        cuda.syncthreads()
"""


@dataclass(frozen=True)
class Launched:
    """A kernel that a control launched, and what with.

    Attributes:
        kernel: The kernel.
        arguments: Its arrays and scalars.
    """

    kernel: Kernel
    arguments: tuple[Any, ...]


@contextmanager
def recorded() -> Iterator[list[Launched]]:
    """Note the first launch of every kernel inside the block."""
    found: dict[int, Launched] = {}
    plain = Device.launch

    def launch(self, kernel, blocks, arrays, scalars=(), **options):
        found.setdefault(id(kernel), Launched(kernel, (*arrays, *scalars)))
        kept.extend(it for it in found.values() if it not in kept)
        plain(self, kernel, blocks, arrays, scalars, **options)

    kept: list[Launched] = []
    Device.launch = launch  # type: ignore[method-assign]
    try:
        yield kept
    finally:
        Device.launch = plain  # type: ignore[method-assign]


def instructions(launched: Launched) -> dict[str, int]:
    """Return how many instructions of each kind a kernel has.

    Raises:
        MissingDependencyError: numba-cuda's compiler, ``ptxas`` or ``nvdisasm`` is missing.
    """
    from numba import cuda, typeof

    from graphsys.engine.cuda.offline import count_instructions

    kernel = launched.kernel
    names = ", ".join(f"a{k}" for k in range(len(launched.arguments)))
    text = _SOURCE.format(names=names, shared=kernel.shared, own=kernel.own)
    scope = {
        "cuda": cuda,
        "dtype": np.dtype(kernel.dtype).type,
        "body": _on_cuda(kernel.body),
    }
    exec(compile(text, "<control>", "exec"), scope)
    entry: Any = scope["entry"]
    typed = tuple(typeof(it) for it in (1, *launched.arguments))
    return count_instructions(kernel.body.__name__, entry, typed)


def _on_cuda(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose loads, atomics and steps are those of a GPU."""
    from numba import cuda

    def load(log, number, array, i):
        return array[i]

    def add_to(log, number, array, i, value):
        cuda.atomic.add(array, i, value)

    def add_shared(shared, i, value):
        cuda.atomic.add(shared, i, value)

    def step(log, amount):
        pass

    instead = {"load": load, "add_to": add_to, "add_shared": add_shared, "step": step}
    scope = dict(function.__globals__)
    for name, value in function.__globals__.items():
        if name in instead and value is getattr(device, name):
            scope[name] = cuda.jit(device=True)(instead[name])
        elif hasattr(value, "py_func"):  # compiled for the CPU: a helper of the kernel
            scope[name] = _on_cuda(value.py_func)
    made = types.FunctionType(function.__code__, scope, function.__name__)
    return cuda.jit(device=True)(made)  # type: ignore[no-any-return]
