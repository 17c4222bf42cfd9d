"""Core numbers by parallel peeling.

Method: Kabir and Madduri, "Parallel k-core decomposition on multicore platforms", IPDPSW
2017 (PKC). Level k removes every node of degree k; a thread follows the nodes that fall
to degree k itself, on a stack of its own, without waiting for the others.

Departure: the nodes that are left are packed after each level, so all scans together
look at sum(core number) <= 2 E entries and the whole is linear in N + E.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.node_lists import append_buffer
from graphsys.kernels.jit import jit

_BLOCK = 4096


@jit
def collect_level(
    thread: int,
    level: int,
    degree: npt.NDArray[np.int32],
    left: npt.NDArray[Any],
    num_left: int,
    still_left: npt.NDArray[Any],
    counters: npt.NDArray[np.int64],
    stacks: npt.NDArray[Any],
    heights: npt.NDArray[np.int64],
) -> int:
    """Sort the nodes that are left into those to remove now and those that stay.

    Args:
        level: Degree of the nodes to remove; lower ones have gone already.
        degree: Degrees in the graph that is left ``[N]``.
        left: Nodes that were left after the last level, the first ``num_left`` of them.
        num_left: How many.
        still_left: Receives those above the level, in any order.
        counters: Next block of ``left``, next place of ``still_left``; zeros, int64 [2].
        stacks: A row of N entries per thread; receives the nodes to remove.
        heights: Receives how many, by thread.

    Returns:
        The smallest degree above the level that this thread saw, or 2**31 - 1.
    """
    lowest = 2**31 - 1
    height = 0
    kept = np.empty(_BLOCK, dtype=left.dtype)
    num_kept = 0
    for k in claimed_range(0, num_left, _BLOCK, counters):
        node = left[k]
        # Lower degrees are of nodes that have gone: they are neither removed nor kept.
        if degree[node] == level:
            stacks[thread, height] = node
            height += 1
        elif degree[node] > level:
            kept[num_kept] = node
            num_kept += 1
            lowest = min(lowest, int(degree[node]))
            if num_kept == _BLOCK:
                append_buffer(kept, num_kept, still_left, counters[1:])
                num_kept = 0
    append_buffer(kept, num_kept, still_left, counters[1:])
    heights[thread] = height
    return lowest


@jit
def peel_level(
    thread: int,
    level: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    degree: npt.NDArray[np.int32],
    stacks: npt.NDArray[Any],
    heights: npt.NDArray[np.int64],
) -> int:
    """Remove the nodes on this thread's stack and all that fall to the level thereby.

    Args:
        level: Degree at which a node is removed.
        begins: Where each row of the simple undirected graph begins ``[N]``.
        ends: Where it ends ``[N]``.
        degree: Degrees in the graph that is left ``[N]``; those of removed nodes are
            their core numbers.
        stacks: A row of N entries per thread.
        heights: Length of each stack at the start.

    Returns:
        How many nodes were found to fall to the level.
    """
    height = heights[thread]
    num_fallen = 0
    while height > 0:
        height -= 1
        node = stacks[thread, height]
        for k in range(np.int64(begins[node]), np.int64(ends[node])):
            other = indices[k]
            if degree[other] > level:
                before = atomic_add(degree, other, -1)
                # Exactly one thread sees the step from above the level onto it: that one
                # removes the node.
                if before == level + 1:
                    stacks[thread, height] = other
                    height += 1
                    num_fallen += 1
                # Another was faster since the look before: the degree, its core number, is
                # put back.
                elif before <= level:
                    atomic_add(degree, other, 1)
    return num_fallen
