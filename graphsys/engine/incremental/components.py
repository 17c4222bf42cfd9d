"""Weakly connected components from the last ones.

Labels of before are joined by new edges. A removed edge is looked at from both its ends:
whether they still reach each other, in the same component, or which piece was cut off.
Kernels: kernels/cpu/incremental/components.py.
"""

import time

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.engine.last_result import LastResult
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.incremental import components as kernels

FIRST_SEARCH = 1 << 16
"""Entries of the search from a component's first end: about a millisecond."""


def wcc(topology: Topology, *, last: LastResult, num_threads: int | None = None) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.wcc` tells of.

    Complexity:
        O(N + changes), and for deletions the entries until both ends meet: O(E) at most.
    """
    del num_threads
    began = time.perf_counter()
    codes = last.values.combine_chunks().dictionary_encode()
    known = codes.indices.to_numpy(zero_copy_only=False)
    num_components = len(codes.dictionary)
    new = np.arange(topology.num_nodes - len(known), dtype=np.int64) + num_components
    component = np.concatenate([known.astype(np.int64), new])
    num_components += len(new)
    edges = last.edges
    if len(edges.removed_src):
        num_components = _split(
            topology,
            component,
            np.append(edges.removed_src, edges.removed_dst),
            num_components,
        )
    parent = np.arange(num_components)
    kernels.join_components(component[edges.added_src], component[edges.added_dst], parent)
    rank, by_rank = topology.rank, topology.by_rank
    least = np.full(num_components, topology.num_nodes, dtype=np.int64)
    ranks = np.empty(0, dtype=np.int64) if rank is None else rank
    count = kernels.least_ranks(component, parent, ranks, least)
    smallest = least[component] if by_rank is None else by_rank[least[component]]
    return Result(
        source=lambda: topology.table({"value": topology.ids(smallest)}),
        algorithm="wcc",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=int(count),
    )


def _split(
    topology: Topology,
    component: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    num_components: int,
) -> int:
    """Number the pieces of components that lost edges; return how many there are now."""
    out = topology.rows("out")
    into = topology.rows("in") if topology.is_directed else out
    terminals = distinct(ends)
    degree = out.ends[terminals].astype(np.int64) - out.begins[terminals]
    terminals = terminals[np.lexsort((-degree, component[terminals]))]
    borders = np.flatnonzero(np.diff(component[terminals])) + 1
    starts = np.concatenate([[0], borders, [len(terminals)]])
    return int(
        kernels.split_components(
            out.begins,
            out.ends,
            out.indices,
            into.begins,
            into.ends,
            into.indices,
            topology.is_directed,
            component,
            terminals,
            starts,
            FIRST_SEARCH,
            num_components,
            np.zeros(len(component), dtype=np.uint8),
            np.empty(len(component), dtype=np.int64),
        )
    )
