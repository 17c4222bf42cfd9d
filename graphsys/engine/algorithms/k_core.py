"""Core numbers: the largest k such that the node is in the k-core."""

import time
from typing import Unpack

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    GraphLike,
    ProgramOptions,
    listed,
)
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms.k_core import collect_level, peel_level


def _k_core(facts: Facts) -> Need:
    per_node = 12 + 4 * facts.threads + 8
    return Need(simple=True, bytes=per_node * facts.nodes)


@listed(
    needs=_k_core,
    program="k_core:KCore",
    answers=True,
    shown="largest",
    follower="neighborhoods:k_core",
)
def k_core(graph: GraphLike, **options: Unpack[ProgramOptions]) -> Result:
    """Core numbers: the largest k such that the node is in the k-core.

    The k-core is the largest subgraph in which every node has at least k neighbors; it
    consists of the nodes whose value is at least k.

    Args:
        graph: An open graph, its path, or edges in memory; direction, loops and
            repetitions do not count.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: core numbers, int64. ``result``: the largest (the degeneracy).

    Complexity:
        O(N + E) time, O(N) memory per thread besides the simple graph.

    References:
        Seidman, "Network structure and minimum degree", Social Networks 5, 1983. Matula,
        Beck, "Smallest-last ordering and clustering and graph coloring algorithms", JACM
        30, 1983. Kabir, Madduri, "Parallel k-core decomposition on multicore platforms",
        2017.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2, 2], [1, 2, 0, 3], num_nodes=4)
        >>> gs.algorithms.k_core(graph).table["value"].to_pylist()
        [2, 2, 2, 1]
    """
    topology = Topology.of(graph)
    began = time.perf_counter()
    cores, num_levels = core_numbers(topology.simple_in_place(), options.get("num_threads"))
    return Result(
        source=lambda: topology.table({"value": cores.astype(np.int64)}),
        algorithm="k_core",
        supersteps=num_levels,
        seconds=time.perf_counter() - began,
        result=int(cores.max(initial=0)),
    )


def core_numbers(rows: Csr, num_threads: int | None) -> tuple[npt.NDArray[np.int32], int]:
    """Peel the simple graph, level by level.

    Args:
        rows: Rows of the simple graph, without direction.
        num_threads: Threads; all cores by default.

    Returns:
        Core numbers ``[N]``, and at how many levels there were nodes.
    """
    kept = rows.begins, rows.ends, rows.indices
    degree = rows.degrees().astype(np.int32)
    left = np.arange(rows.num_nodes, dtype=rows.indices.dtype)
    still_left = np.empty_like(left)
    num_left, level, num_levels = len(left), int(degree.min(initial=0)), 0
    with ThreadTeam(num_threads) as team:
        stacks = np.empty((team.num_threads, rows.num_nodes), dtype=rows.indices.dtype)
        heights = np.zeros(team.num_threads, dtype=np.int64)
        while num_left:
            counters = np.zeros(2, dtype=np.int64)
            lowest = team.run(
                collect_level,
                level,
                degree,
                left,
                num_left,
                still_left,
                counters,
                stacks,
                heights,
            )
            left, still_left = still_left, left
            num_left = int(counters[1])
            # peeling a level brings neighbors down to it: these are on the stacks too, so
            # one call ends the level; where nobody has it, the next lowest degree is next
            if heights.any():
                team.run(peel_level, level, *kept, degree, stacks, heights)
                num_levels += 1
                level += 1
            else:
                level = min(lowest)
    return degree, num_levels
