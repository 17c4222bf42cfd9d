"""Distances between all pairs of nodes: the vertex program of shortest paths per node."""

import time

import numpy as np
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.engine.execute.executor import Executor
from graphsys.engine.execute.prepared import compile_program
from graphsys.engine.execute.rows import MemoryRows
from graphsys.engine.native.arguments import require_count
from graphsys.engine.programs.sssp import ShortestPaths
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology

MAX_NODES = 5000
"""Nodes up to which all pairs are computed unless asked otherwise: 25 million rows."""


def apsp(
    topology: Topology, *, max_nodes: int = MAX_NODES, num_threads: int | None = None
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.apsp` tells of."""
    require_count("max_nodes", max_nodes)
    num = topology.num_nodes
    if num > max_nodes:
        raise ConfigError(
            f"apsp gives {num}^2 = {num * num} rows for {num} nodes, more than the limit "
            f"of {max_nodes} nodes; raise max_nodes, or run sssp from the sources you need"
        )
    began = time.perf_counter()
    distance = np.full((num, num), np.inf)
    ids = topology.ids()
    supersteps, compiling = 0, 0.0
    plan, kernels, rows = None, None, MemoryRows(topology)
    for number, source in enumerate(ids.to_pylist()):
        program = ShortestPaths(source=source)
        if plan is None or kernels is None:
            plan, kernels, compiling = compile_program(program, topology)
        executor = Executor(program, plan, kernels, topology, rows, num_threads=num_threads)
        try:
            supersteps += sum(1 for _ in executor.run())
        finally:
            executor.close()
        compiling += executor.compile_seconds
        distance[number] = executor.arrays.states["distance"]
    everyone = np.arange(num)
    flat = distance.ravel()
    table = pa.table(
        {
            "id": topology.ids(np.repeat(everyone, num)),
            "other": topology.ids(np.tile(everyone, num)),
            "value": pa.array(flat, mask=np.isinf(flat)),
        }
    )
    return Result(
        source=table,
        algorithm="apsp",
        supersteps=supersteps,
        seconds=time.perf_counter() - began - compiling,
        compile_seconds=compiling,
    )
