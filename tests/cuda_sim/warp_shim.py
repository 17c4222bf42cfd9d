"""Warp instructions for numba's CUDA simulator, which has none, and threads that are cheap.

The simulator runs each CUDA thread as a thread of the system, and starting those and having
them wait for one another took most of the time. Here they are greenlets: a CUDA thread runs
until it waits at a barrier, then another goes on. Cooperative kernels run all their blocks
at once, with a barrier across them; the simulator itself runs one block. Call
:func:`install` in a process that runs with ``NUMBA_ENABLE_CUDASIM=1``. All lanes of a warp
must take part, and blocks are whole warps: our kernels keep to that.
"""

import functools
import random
import sys
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from greenlet import greenlet
from numba.cuda.simulator import kernel as simulator
from numba.cuda.simulator import kernelapi
from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAAtomic, FakeCUDAModule, GridGroup

WARP = 32


RESIDENT_BLOCKS = 4
"""Blocks of a cooperative kernel that this device holds."""


_ORDER: random.Random | None = None


def shuffle(seed: int | None) -> None:
    """Have blocks and their threads begin in an order drawn by a seed, or in theirs.

    With a seed, threads of a block also take turns after every atomic, in an order drawn.
    """
    global _ORDER
    _ORDER = None if seed is None else random.Random(seed)


class _Barrier:
    """Where some threads wait until all of them are there."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: list[_Thread] = []

    def wait(self) -> None:
        self._waiting.append(_running)
        if len(self._waiting) < self._size:
            _switch_away()
            return
        here, self._waiting = self._waiting[:-1], []
        for thread in here:
            thread.block.ready.append(thread)


class _Block:
    """The barriers of a block and of its warps, and what the lanes hand over.

    Attributes:
        ready: Threads that may go on.
    """

    def __init__(self, place: Any, num_threads: int, grid: _Barrier) -> None:
        self.place = place
        self.grid = grid
        self.barrier = _Barrier(num_threads)
        self.ready: deque[_Thread] = deque()
        self.warps = [_Warp() for _ in range(num_threads // WARP)]


class _Warp:
    """What the lanes hand over: two rows by turns, so that one barrier is enough."""

    def __init__(self) -> None:
        self.barrier = _Barrier(WARP)
        self.values: tuple[list[Any], list[Any]] = ([None] * WARP, [None] * WARP)


class _Thread:
    """A CUDA thread: what the simulator asks of the one that runs."""

    def __init__(self, run: Callable[[], None], block: _Block, place: Any, number: int):
        self.block = block
        self.blockIdx, self.threadIdx = block.place, Dim3(*place)
        self.thread_id = number
        self.lane = number % WARP
        self.warp = block.warps[number // WARP]
        self.turn = 0
        self.greenlet = greenlet(run)

    def syncthreads(self) -> None:
        self.block.barrier.wait()


_running: _Thread
"""The CUDA thread that runs."""
_host: Any
"""The greenlet that chooses which."""


def _switch_away() -> None:
    """Let others go on until this thread is ready."""
    _host.switch()


def _run_block(self: Any, grid_point: Any, *args: Any) -> None:
    """Run a block's threads to the end.

    The first block brings the others along: those of a cooperative kernel at once, those
    of others one after another, in the order of :func:`shuffle`.
    """
    if any(grid_point):
        return
    blocks = list(np.ndindex(*self._grid_dim))
    if _ORDER is not None:
        _ORDER.shuffle(blocks)
    together = "this_grid" in self._f.__code__.co_names
    run = functools.partial(self._f, *args)
    for group in [blocks] if together else [[it] for it in blocks]:
        _run_together(run, group, self._block_dim)


def _run_together(run: Callable[[], None], places: list[Any], shape: Any) -> None:
    """Run the threads of some blocks to the end.

    The first block goes as far as it can before the next one runs: blocks drift apart, and
    a lacking barrier shows.
    """
    global _running, _host
    _host = greenlet.getcurrent()
    points = list(np.ndindex(*shape))
    grid = _Barrier(len(points) * len(places))
    blocks = [_Block(Dim3(*it), len(points), grid) for it in places]
    for made in blocks:
        made.ready.extend(_Thread(run, made, it, n) for n, it in enumerate(points))
    left = len(points) * len(places)
    while left:
        block = next((it for it in blocks if it.ready), None)
        if block is None:
            raise RuntimeError(f"{left} CUDA threads wait for others, which have ended")
        if _ORDER is not None:
            block.ready.rotate(_ORDER.randrange(len(block.ready)))
        _running = block.ready.popleft()
        try:
            _running.greenlet.switch()
        except Exception as err:
            err.add_note(f"in thread {_running.threadIdx} of block {_running.blockIdx}")
            raise
        left -= _running.greenlet.dead


def _exchange(value: Any) -> tuple[list[Any], int]:
    """Hand a value to the other lanes; return all values and this lane's number."""
    thread = _running
    values = thread.warp.values[thread.turn]
    thread.turn = 1 - thread.turn  # nobody is two turns ahead of another
    values[thread.lane] = value
    thread.warp.barrier.wait()
    return values, thread.lane


def _sync_grid(self: Any) -> None:
    _running.block.grid.wait()


def _resident_blocks(self: Any, block: int) -> int:
    return RESIDENT_BLOCKS


def _taking_turns(atomic: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(atomic)
    def turn(*arguments: Any) -> Any:
        found = atomic(*arguments)
        if _ORDER is not None:
            _running.block.ready.append(_running)
            _switch_away()
        return found

    return turn


def _shared_array(self: Any, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
    """Return the block's array of a line; the simulator formats the whole stack for it."""
    caller = sys._getframe(1)
    place = (_running.block, caller.f_code, caller.f_lineno)
    if place not in self._allocations:
        self._allocations[place] = np.empty(shape, dtype)
    return self._allocations[place]


def syncwarp(self: Any, mask: int = 0) -> None:
    _running.warp.barrier.wait()


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
    simulator.FakeOverload.max_cooperative_grid_blocks = _resident_blocks
    kernelapi.threading = SimpleNamespace(current_thread=lambda: _running)
    kernelapi.FakeCUDAShared.array = _shared_array
    for name in ("add", "cas", "exch", "max", "min"):
        setattr(FakeCUDAAtomic, name, _taking_turns(getattr(FakeCUDAAtomic, name)))
    GridGroup.sync = _sync_grid
    FakeCUDAModule.syncwarp = syncwarp
    FakeCUDAModule.shfl_sync = shfl_sync
    FakeCUDAModule.shfl_up_sync = _moved(lambda lane, by: lane - by)
    FakeCUDAModule.shfl_down_sync = _moved(lambda lane, by: lane + by)
    FakeCUDAModule.shfl_xor_sync = _moved(lambda lane, by: lane ^ by)
    FakeCUDAModule.ballot_sync = ballot_sync
