"""Whether a directed graph has a cycle."""

import numpy as np

from graphsys.core.types import number_dtype
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms.strong_components import release

CYCLE_BYTES = 24
"""What :func:`has_cycle` takes a node, at most: in-degrees, a copy of them, an order."""


def has_cycle(topology: Topology) -> bool:
    """Return whether a directed graph has a cycle; a loop is one.

    Nodes without edges into them are taken out, and then those that have none left. The
    rows of a store are read where they lie, file by file, in any number of types.

    Complexity:
        O(N + E) time, and a pass over the files for each time that an order of the nodes
        goes back to an earlier one.
    """
    left = topology.in_degree.copy()
    released = np.empty(topology.num_nodes, dtype=number_dtype(topology.num_nodes))
    sources = np.flatnonzero(left == 0)
    count = len(sources)
    released[:count] = sources
    del sources
    if topology.graph is None:
        out = topology.rows("out")
        rows = [(out.begins, out.ends, out.indices, 0, 0)]
    else:
        rows = [
            (
                it.index.indptr[:-1],
                it.index.indptr[1:],
                it.index.indices,
                it.row_base,
                it.column_base,
            )
            for it in topology.blocks("out")
        ]
    looked_at = [0] * len(rows)
    while any(number < count for number in looked_at):
        for k, some in enumerate(rows):
            count = release(*some, left, released, looked_at[k], count)
            looked_at[k] = count
    return count < topology.num_nodes
