"""Whether a directed graph has a cycle."""

import numpy as np

from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms.strong_components import count_without_cycle


def has_cycle(topology: Topology) -> bool:
    """Return whether a directed graph has a cycle; a loop is one."""
    out = topology.rows("out")
    left = topology.in_degree.copy()
    stack = np.empty(out.num_nodes, dtype=out.indices.dtype)
    found = count_without_cycle(out.begins, out.ends, out.indices, left, stack)
    return found < topology.num_nodes
