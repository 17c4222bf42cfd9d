"""Strongly connected components; see kernels/cpu/algorithms/strong_components.py."""

import time

import numpy as np

from graphsys.core.threads import ThreadTeam
from graphsys.engine.native.components import find_roots, smallest_of
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms import strong_components as kernels


def scc(topology: Topology, *, num_threads: int | None = None) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.scc` tells of."""
    began = time.perf_counter()
    out = topology.rows("out")
    with ThreadTeam(num_threads) as team:
        if topology.is_directed:
            root = np.zeros(out.num_nodes, dtype=out.indices.dtype)
            stack = np.empty_like(root)
            found = kernels.find_strong_components(
                out.begins,
                out.ends,
                out.indices,
                root,
                stack,
                np.empty(out.num_nodes, dtype=out.begins.dtype),
                np.empty(out.num_nodes, dtype=np.bool_),
            )
            kernels.name_by_first(root, found, stack)
            del stack
        else:
            root, found = find_roots(out, None, team)
        smallest = smallest_of(topology, root, team)
    return Result(
        source=lambda: topology.table({"value": topology.ids(smallest)}),
        algorithm="scc",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=found,
    )
