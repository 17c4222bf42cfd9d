"""Core numbers: the largest k such that the node is in the k-core."""

import time

import numpy as np

from graphsys.core.threads import ThreadTeam
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms.k_core import collect_level, peel_level


def k_core(topology: Topology, *, num_threads: int | None = None) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.k_core` tells of."""
    began = time.perf_counter()
    rows = topology.simple_in_place()
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
            if heights.any():
                team.run(peel_level, level, *kept, degree, stacks, heights)
                num_levels += 1
                level += 1
            else:
                level = min(lowest)
    return Result(
        source=lambda: topology.table({"value": degree.astype(np.int64)}),
        algorithm="k_core",
        supersteps=num_levels,
        seconds=time.perf_counter() - began,
        result=int(degree.max(initial=0)),
    )
