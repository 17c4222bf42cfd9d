"""Runs CUDA-style kernels on the CPU, thread by thread, and tells what each one visits.

A kernel is a plain function of ``(phase, block, thread, shared, own, log, ...)``. Between
two phases stands a barrier: all threads of a CTA end one before any begins the next, so a
loop over threads inside a loop over phases does what the CTA does. ``shared`` is the CTA's
shared memory, ``own`` the registers that outlive a barrier. Loads from global memory go
through :func:`load` and write down their address; :func:`step` counts operands taken into a
result. So what the models are told is what the computation did, by the computation.

Arrays are one-dimensional, of 4-byte elements, and aligned to 128 bytes each in one address
space. Stores are not written down (those of a vertex program's own state are not either),
nor are shared and constant memory.
"""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np

from graphsys.core.events import count, is_asked, launched, observe, span
from graphsys.core.row_trace import RowVisit

THREADS = 256
"""Threads of a CTA, as in the engine's kernels."""
_ALIGNMENT = 32
Array = Any


@numba.njit(inline="always")
def _write_down(log, number, i):
    here, loads, _, entries, bases = log
    thread = here[0]
    n = loads[thread]
    loads[thread] = n + 1
    if n < entries.shape[1]:  # as many as there is room for; the launch looks
        entries[thread, n] = bases[number] + i


@numba.njit
def load(log, number, array, i):
    """Return ``array[i]`` from global memory; ``number`` is that of the array."""
    _write_down(log, number, i)
    return array[i]


@numba.njit
def add_to(log, number, array, i, value):
    """Add to ``array[i]`` in global memory by an atomic."""
    _write_down(log, number, i)
    array[i] += value


@numba.njit
def add_shared(shared, i, value):
    """Add to shared memory by an atomic."""
    shared[i] += value


@numba.njit
def step(log, amount):
    """Count operands that are taken into a result."""
    log[2][log[0][0]] += amount


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel and what a launch of it needs.

    Attributes:
        body: The function of one thread in one phase.
        shared: Elements of shared memory of a CTA.
        own: Elements that a thread keeps over barriers.
        dtype: Of both.
    """

    body: Callable[..., None]
    shared: int = 1
    own: int = 1
    dtype: type = np.float32

    @functools.cached_property
    def run(self) -> Callable[..., None]:
        """The kernel for all CTAs of a grid, compiled."""
        body = numba.njit(self.body)

        def run(blocks, phases, shared, own, log, arguments):
            for block in range(blocks):
                own[:] = 0
                for phase in range(phases):
                    for thread in range(THREADS):
                        log[0][0] = block * THREADS + thread
                        body(phase, block, thread, shared, own[thread], log, *arguments)

        return numba.njit(run, nogil=True)


@dataclass
class Device:
    """Stands for a GPU: copies, launches, and tells the models of both.

    Attributes:
        launches: Kernels launched so far.
    """

    launches: int = field(default=0)

    def copy_in(self, array: Array) -> Array:
        """Copy an array from the host."""
        count("bytes_copied", array.nbytes, direction="to_device")
        return np.array(array).reshape(-1)

    def copy_out(self, array: Array) -> Array:
        """Copy an array to the host."""
        count("bytes_copied", array.nbytes, direction="to_host")
        return array.copy()

    def zeros(self, size: int, dtype: Any = np.float32) -> Array:
        """Return memory of the device, set to 0 there."""
        return np.zeros(size, dtype=dtype)

    def launch(
        self,
        kernel: Kernel,
        blocks: int,
        arrays: tuple[Array, ...],
        scalars: tuple[Any, ...] = (),
        *,
        phases: int = 1,
        max_loads: int = 8,
    ) -> None:
        """Launch a kernel.

        Args:
            kernel: The kernel.
            blocks: CTAs of the grid.
            arrays: Its first arguments, by whose number it loads.
            scalars: The others.
            phases: How often all threads meet at a barrier, and one.
            max_loads: No thread loads more often.
        """
        threads = blocks * THREADS
        loads, steps = np.zeros((2, threads), dtype=np.int64)
        room = max_loads if is_asked("rows") else 0
        entries = np.zeros((threads, room), dtype=np.uint32)
        log = (np.zeros(1, dtype=np.int64), loads, steps, entries, _bases(arrays))
        shared = np.zeros(kernel.shared, dtype=kernel.dtype)
        own = np.zeros((THREADS, kernel.own), dtype=kernel.dtype)
        name = kernel.body.__name__
        with span("superstep", number=self.launches, phase=name, mode="pull"):
            began = time.perf_counter_ns()
            kernel.run(blocks, phases, shared, own, log, (*arrays, *scalars))
            took = time.perf_counter_ns() - began
            if room and int(loads.max()) > room:
                raise ValueError(f"{name}: a thread loads {loads.max()} times, room {room}")
            launched(name, began, (took,), wall_ns=took)
            count("edges", int(steps.sum()), at_most=False)
            observe("rows", lambda: [self._visit(steps, loads, entries)])
        self.launches += 1

    def _visit(self, steps: Array, loads: Array, entries: Array) -> RowVisit:
        threads, room = entries.shape
        return RowVisit(
            superstep=self.launches,
            kind="pull",
            lengths=steps,
            loads=loads,
            starts=np.arange(threads, dtype=np.int64) * room,
            indices=entries.reshape(-1),
            value_bytes=4,
            mapping="thread",
            has_index_loads=False,
        )


def _bases(arrays: tuple[Array, ...]) -> Array:
    """Return where each array begins, in elements of 4 bytes."""
    sizes = [-(-len(array) // _ALIGNMENT) * _ALIGNMENT for array in arrays]
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
