"""Warp instructions for numba's CUDA simulator, which has none, and faster barriers.

Cooperative kernels run all their blocks at once, with a barrier across them; the simulator
itself runs one block. Call :func:`install` in a process that runs with
``NUMBA_ENABLE_CUDASIM=1``. All lanes of a warp must take part, and blocks are whole warps:
our kernels keep to that.
"""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.cuda.simulator import kernel as simulator
from numba.cuda.simulator.kernelapi import FakeCUDAModule, GridGroup

WARP = 32


RESIDENT_BLOCKS = 4
"""Blocks of a cooperative kernel that this device holds."""


_ORDER: random.Random | None = None


def shuffle(seed: int | None) -> None:
    """Have blocks and their threads begin in an order drawn by a seed, or in theirs."""
    global _ORDER
    _ORDER = None if seed is None else random.Random(seed)


class _Block:
    """The barriers of a block and of its warps, and what the lanes hand over."""

    def __init__(self, num_threads: int, grid: threading.Barrier) -> None:
        self.grid = grid
        self.barrier = threading.Barrier(num_threads)
        self.votes: list[Any] = [None] * num_threads
        self.warps = [
            (threading.Barrier(WARP), [None] * WARP) for _ in range(num_threads // WARP)
        ]


def _run_block(self: Any, grid_point: Any, *args: Any) -> None:
    """Run a block's threads to the end; they wait for one another without polling.

    The first block brings the others along: those of a cooperative kernel at once, those
    of others one after another, in the order of :func:`shuffle`.
    """
    if any(grid_point):
        return
    blocks = list(np.ndindex(*self._grid_dim))
    if _ORDER is not None:
        _ORDER.shuffle(blocks)
    together = "this_grid" in self._f.__code__.co_names
    for group in [blocks] if together else [[it] for it in blocks]:
        _run_together(self, group, *args)


def _run_together(self: Any, blocks: list[Any], *args: Any) -> None:
    """Run the threads of some blocks to the end."""
    points = list(np.ndindex(*self._block_dim))
    everyone = threading.Barrier(len(points) * len(blocks))

    def target() -> None:
        self._f(*args)

    threads = []
    for block in blocks:
        shape = (self._f, self._grid_dim, self._block_dim, self._debug)
        manager = simulator.BlockManager(*shape)
        manager.block = _Block(len(points), everyone)
        threads += [
            simulator.BlockThread(target, manager, block, point, self._debug)
            for point in points
        ]
    if _ORDER is not None:
        _ORDER.shuffle(threads)
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
        warps = (barrier for barrier, _ in block.warps)
        for barrier in (block.grid, block.barrier, *warps):
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


def _sync_grid(self: Any) -> None:
    thread: Any = threading.current_thread()
    thread._manager.block.grid.wait()
    time.sleep(0.003 * thread.blockIdx.x)  # blocks drift apart: a lacking barrier shows


def _resident_blocks(self: Any, block: int) -> int:
    return RESIDENT_BLOCKS


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
    simulator.FakeOverload.max_cooperative_grid_blocks = _resident_blocks
    GridGroup.sync = _sync_grid
    FakeCUDAModule.syncwarp = syncwarp
    FakeCUDAModule.shfl_sync = shfl_sync
    FakeCUDAModule.shfl_up_sync = _moved(lambda lane, by: lane - by)
    FakeCUDAModule.shfl_down_sync = _moved(lambda lane, by: lane + by)
    FakeCUDAModule.shfl_xor_sync = _moved(lambda lane, by: lane ^ by)
    FakeCUDAModule.ballot_sync = ballot_sync
