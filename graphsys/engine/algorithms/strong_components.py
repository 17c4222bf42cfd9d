"""Strongly connected components; see kernels/cpu/algorithms/strong_components.py."""

import time
from dataclasses import replace
from typing import Unpack

import numpy as np

from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    GraphLike,
    ProgramOptions,
    listed,
)
from graphsys.engine.algorithms.components import find_roots, smallest_of, wcc_needs
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms import strong_components as kernels


def _scc(facts: Facts) -> Need:
    own = wcc_needs(facts)
    if not facts.topology.is_directed:
        return replace(own, kernels="components")
    searching = 4 + 4 + 8 + 1
    return replace(own, rows=("out",), bytes=max(own.bytes, searching * facts.nodes))


@listed(needs=_scc, program="scc:StrongComponents", answers=True)
def scc(graph: GraphLike, **options: Unpack[ProgramOptions]) -> Result:
    """Strongly connected components: which nodes reach each other.

    Loops and repeated edges change nothing.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the smallest id of the node's component. ``result``: the number of
        components.

    Complexity:
        O(N + E) time in one thread, 17 bytes a node besides the graph. A round of the
        vertex program takes as many supersteps as its longest paths and O(E) messages
        each; it has few rounds on graphs with a giant component, up to the number of
        components on adversarial ones.

    References:
        Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing
        1, 1972. Pearce, "A space-efficient algorithm for finding strongly connected
        components", Information Processing Letters 116, 2016. The program: Orzan, "On
        distributed verification and verified distribution", 2004, chapter 6.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 1], [1, 0, 2], num_nodes=3)
        >>> gs.algorithms.scc(graph).table["value"].to_pylist()
        [0, 0, 2]
    """
    topology = Topology.of(graph)
    began = time.perf_counter()
    out = topology.rows("out")
    with ThreadTeam(options.get("num_threads")) as team:
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
