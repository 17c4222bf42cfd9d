"""Steps of loops over rows by who walks them, of all rows and of three bins of them.

In one pass: a run chooses its mapping by them, and the choice must cost less than it saves.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.bits import Words, has_bit
from graphsys.kernels.cpu.simt.lanes import WARP
from graphsys.kernels.jit import lean_jit

NUM_STEPS = 10
"""Of all rows: steps of warps whose lanes walk a row each, of warps that walk a row each,
of blocks that walk a row each, and entries; of the bins of short rows, of medium ones and
of long ones: the steps of those who walk them; and the length of each bin."""


@lean_jit
def count_steps(
    lengths: npt.NDArray[Any], block: int, steps: npt.NDArray[np.int64]
) -> None:
    """Count steps.

    Args:
        lengths: Entries of each row, in the order in which they are visited ``[N]``.
        block: Threads of a block: a row of as many is a long one, of fewer than 32 a short.
        steps: Receives the counts, int64 ``[10]``, see :data:`NUM_STEPS`.
    """
    longest = longest_short = np.int64(0)
    by_thread = by_warp = by_block = entries = np.int64(0)
    short = medium = long = num_short = num_medium = num_long = np.int64(0)
    for i in range(len(lengths)):
        length = np.int64(lengths[i])
        if i % WARP == 0:
            by_thread += longest
            longest = np.int64(0)
        longest = max(longest, length)
        entries += length
        of_warp = np.int64(np.uint64(length + WARP - 1) // np.uint64(WARP))  # a shift
        by_warp += of_warp
        if length < WARP:
            by_block += length > 0
            if num_short % WARP == 0:
                short += longest_short
                longest_short = np.int64(0)
            longest_short = max(longest_short, length)
            num_short += 1
        elif length < block:
            by_block += 1
            medium += of_warp
            num_medium += 1
        else:  # a division, for few rows
            of_block = (length + block - 1) // block
            by_block += of_block
            long += of_block
            num_long += 1
    steps[0], steps[1] = by_thread + longest, by_warp
    steps[2], steps[3] = by_block, entries
    steps[4], steps[5], steps[6] = short + longest_short, medium, long
    steps[7], steps[8], steps[9] = num_short, num_medium, num_long


@lean_jit
def find_trips(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    skipped: Words,
    senders: Words,
    trips: npt.NDArray[np.int64],
) -> None:
    """Count the entries of each row up to its first neighbor in a set of nodes.

    Args:
        skipped: The rows that are not entered.
        senders: The nodes that end a search.
        trips: Receives the entries read of each row ``[N]``; zeros.
    """
    for row in range(len(begins)):
        if has_bit(skipped, row):
            continue
        for e in range(np.int64(begins[row]), np.int64(ends[row])):
            trips[row] += 1
            if has_bit(senders, indices[e]):
                break
