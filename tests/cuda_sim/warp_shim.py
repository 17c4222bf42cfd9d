"""Warp instructions for numba's CUDA simulator, which has none, and faster barriers.

Call :func:`install` in a process that runs with ``NUMBA_ENABLE_CUDASIM=1``.
All lanes of a warp must take part, and blocks are whole warps: our kernels keep to that.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.cuda.simulator import kernel as simulator
from numba.cuda.simulator.kernelapi import FakeCUDAModule

WARP = 32


class _Block:
    """The barriers of a block and of its warps, and what the lanes hand over."""

    def __init__(self, num_threads: int) -> None:
        self.barrier = threading.Barrier(num_threads)
        self.votes: list[Any] = [None] * num_threads
        self.warps = [
            (threading.Barrier(WARP), [None] * WARP) for _ in range(num_threads // WARP)
        ]


def _run_block(self: Any, grid_point: Any, *args: Any) -> None:
    """Run a block's threads to the end; they wait for one another without polling."""
    points = list(np.ndindex(*self._block_dim))
    self.block = _Block(len(points))

    def target() -> None:
        self._f(*args)

    threads = [
        simulator.BlockThread(target, self, grid_point, point, self._debug)
        for point in points
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for thread in threads:
        error = thread.exception
        if error and not isinstance(error[0], threading.BrokenBarrierError):
            raise error[0].with_traceback(error[1])


_run_thread = simulator.BlockThread.run


def _run_and_break(self: Any) -> None:
    """Run a thread; when it fails, free those that wait for it."""
    _run_thread(self)
    if self.exception:
        block = self._manager.block
        for barrier in (block.barrier, *(barrier for barrier, _ in block.warps)):
            barrier.abort()


def _exchange(value: Any) -> tuple[list[Any], int]:
    """Hand a value to the other lanes; return all values and this lane's number."""
    thread: Any = threading.current_thread()
    barrier, values = thread._manager.block.warps[thread.thread_id // WARP]
    lane = thread.thread_id % WARP
    values[lane] = value
    barrier.wait()
    found = list(values)
    barrier.wait()
    return found, lane


def _syncthreads(self: Any) -> None:
    self._manager.block.barrier.wait()


def syncwarp(self: Any, mask: int = 0) -> None:
    _exchange(None)


def shfl_sync(self: Any, mask: int, value: Any, source: int) -> Any:
    return _exchange(value)[0][source % WARP]


def _moved(place: Callable[[int, int], int]) -> Callable[..., Any]:
    def shuffle(self: Any, mask: int, value: Any, by: int) -> Any:
        found, lane = _exchange(value)
        source = place(lane, by)
        return found[source] if 0 <= source < WARP else value

    return shuffle


def ballot_sync(self: Any, mask: int, predicate: bool) -> int:
    found, _ = _exchange(bool(predicate))
    return sum(1 << lane for lane in range(WARP) if found[lane])


def install() -> None:
    """Give the simulator warps."""
    simulator.BlockManager.run = _run_block
    simulator.BlockThread.run = _run_and_break
    simulator.BlockThread.syncthreads = _syncthreads
    FakeCUDAModule.syncwarp = syncwarp
    FakeCUDAModule.shfl_sync = shfl_sync
    FakeCUDAModule.shfl_up_sync = _moved(lambda lane, by: lane - by)
    FakeCUDAModule.shfl_down_sync = _moved(lambda lane, by: lane + by)
    FakeCUDAModule.shfl_xor_sync = _moved(lambda lane, by: lane ^ by)
    FakeCUDAModule.ballot_sync = ballot_sync
