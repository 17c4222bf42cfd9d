"""Clocks and lane counts inside CUDA kernels: the text behind an instrumented head.

It follows the text of ``common.py`` in generated modules, and only in those that were
asked to be instrumented: nothing of it is in other kernels. Every warp writes down when it
began and ended by its SM's clock, and which SM that was; every step of a loop over rows
counts how many lanes are active, once per warp, in shared memory. Masks are a lower bound:
lanes that left the loop's head may meet again. The simulator has no masks and no SMs: there
each lane counts alone, and blocks take turns on two SMs.
"""

import time

import numpy as np
from llvmlite import ir
from numba import cuda, types

from graphsys.kernels.cuda.common import SIMULATED, device


def read_register(name, bits):  # type: ignore[no-untyped-def]
    """Return a function for kernels that reads a special register."""
    from numba.cuda.extending import intrinsic

    @intrinsic
    def read(typing):  # type: ignore[no-untyped-def]
        def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            kind = ir.FunctionType(ir.IntType(bits), [])
            into = "=l" if bits == 64 else "=r"
            text = f"mov.u{bits} $0, %{name};"
            asm = ir.InlineAsm(kind, text, into, side_effect=True)
            return builder.call(asm, [])

        return (types.int64 if bits == 64 else types.int32)(), code

    return read


def _clock_simulated():  # type: ignore[no-untyped-def]
    return time.perf_counter_ns()


def _sm_simulated():  # type: ignore[no-untyped-def]
    return cuda.blockIdx.x % 2


clock64 = _clock_simulated if SIMULATED else read_register("clock64", 64)  # type: ignore[no-untyped-call]
smid = _sm_simulated if SIMULATED else read_register("smid", 32)  # type: ignore[no-untyped-call]


@device
def begin_clock(lanes_seen):  # type: ignore[no-untyped-def]
    """Clear a block's counts of lanes; return the clock."""
    for i in range(cuda.threadIdx.x, 33, cuda.blockDim.x):
        lanes_seen[i] = 0
    cuda.syncthreads()
    return clock64()


@device
def end_clock(begin, clock_records, lanes_seen, lane_steps):  # type: ignore[no-untyped-def]
    """Write down when a warp began and ended, and where; add up a block's lanes."""
    cuda.syncwarp()
    end = clock64()
    if cuda.laneid == 0:
        at = 3 * (cuda.grid(1) // 32)
        clock_records[at] = begin
        clock_records[at + 1] = end
        clock_records[at + 2] = smid()
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, 33, cuda.blockDim.x):
        if lanes_seen[i] > 0:
            cuda.atomic.add(lane_steps, i, np.int64(lanes_seen[i]))


def _see_lanes(lanes_seen):  # type: ignore[no-untyped-def]
    """Count the lanes that take a step together."""
    mask = cuda.activemask()
    if cuda.laneid == cuda.ffs(mask) - 1:
        cuda.atomic.add(lanes_seen, cuda.popc(mask), 1)


def _see_lane(lanes_seen):  # type: ignore[no-untyped-def]
    cuda.atomic.add(lanes_seen, 1, 1)


see_lanes = _see_lane if SIMULATED else device(_see_lanes)  # type: ignore[no-untyped-call]
