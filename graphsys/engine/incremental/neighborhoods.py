"""Triangles and core numbers from the last ones, by the pairs that came and went.

Kernels: kernels/cpu/incremental/triangles.py and cores.py. Where the changes would cost
more than counting everything, everything is counted.
"""

import time
from dataclasses import replace

import numpy as np

from graphsys.core.arrays import distinct
from graphsys.engine import algorithms
from graphsys.engine.incremental.pairs import CommonGraph, common_graph
from graphsys.engine.last_result import LastResult
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms import k_core as core_kernels
from graphsys.kernels.cpu.algorithms import triangles as triangle_kernels
from graphsys.kernels.cpu.incremental import cores as kernels
from graphsys.kernels.cpu.incremental.pairs import count_closed

__all__ = ["core_kernels", "k_core", "triangle_count", "triangle_kernels"]

TRIANGLE_VISITS, CORE_VISITS = 4, 0.25
"""Entries visited per entry of the simple graph from which on all is computed anew: about
what counting all triangles costs, and a part of what peeling does: visits may be lost."""


def triangle_count(
    topology: Topology, *, last: LastResult, num_threads: int | None = None
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.triangle_count` tells of."""
    began = time.perf_counter()
    common = common_graph(topology, last)
    if _visits(common) > TRIANGLE_VISITS * topology.simple().num_edges:
        done = algorithms.triangle_count.native(topology, num_threads=num_threads)
        return replace(done, seconds=time.perf_counter() - began)
    counts = np.zeros(topology.num_nodes, dtype=np.int64)
    known = last.values.to_numpy()
    counts[: len(known)] = known
    count_closed(*common.rows, *common.went, -1, counts)
    count_closed(*common.rows, *common.came, 1, counts)
    return Result(
        source=lambda: topology.table({"value": counts}),
        algorithm="triangle_count",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=int(counts.sum()) // 3,
    )


def k_core(
    topology: Topology, *, last: LastResult, num_threads: int | None = None
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.k_core` tells of."""
    began = time.perf_counter()
    common = common_graph(topology, last)
    core = np.zeros(topology.num_nodes, dtype=np.int64)
    known = last.values.to_numpy()
    core[: len(known)] = known
    kernels.lower_cores(*common.rows, distinct(np.concatenate(common.went)), core)
    most = int(CORE_VISITS * topology.simple().num_edges)
    pairs = len(common.came[0])
    if kernels.raise_cores(*common.rows, *common.came, core, most) < pairs:
        done = algorithms.k_core.native(topology, num_threads=num_threads)
        return replace(done, seconds=time.perf_counter() - began)
    return Result(
        source=lambda: topology.table({"value": core}),
        algorithm="k_core",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=int(core.max(initial=0)),
    )


def _visits(common: CommonGraph) -> int:
    """Return how many entries the rows at both ends of all changed pairs have."""
    lengths = common.rows.ends - common.rows.begins.astype(np.int64)
    return sum(int(lengths[nodes].sum()) for nodes in (*common.went, *common.came))
