"""Weakly connected components by Afforest; see kernels/cpu/algorithms/components.py."""

import time
from typing import Any, Unpack

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
from graphsys.kernels.cpu.algorithms import components as kernels

NUM_PROBES = 1024


def wcc_needs(facts: Facts) -> Need:
    """Return what finding components takes."""
    finding = 4 + facts.ranked
    taking = (20 if facts.ranked else 4) + 2 * facts.id_bytes
    per_node = max(8, finding, taking)
    return Need(rows=facts.both, in_place=True, bytes=per_node * facts.nodes)


@listed(
    needs=wcc_needs,
    program="wcc:WeakComponents",
    answers=True,
    tags=("CCL",),
    follower="components:wcc",
)
def wcc(graph: GraphLike, **options: Unpack[ProgramOptions]) -> Result:
    """Weakly connected components: direction does not matter.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the smallest id of the node's component. ``result``: the number of
        components.

    Complexity:
        O(N + E) time in practice, O(N) memory besides the graph. The vertex program takes
        as many supersteps as the diameter.

    References:
        Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity computation via
        subgraph sampling", IPDPS 2018 (Afforest). Kang, Tsourakakis, Faloutsos, ICDM 2009
        (the program).

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 2], [1, 3], num_nodes=5)
        >>> gs.algorithms.wcc(graph).table["value"].to_pylist()
        [0, 0, 2, 2, 4]
    """
    topology = Topology.of(graph)
    began = time.perf_counter()
    with ThreadTeam(options.get("num_threads")) as team:
        into = topology.rows("in") if topology.is_directed else None
        root, num_components = find_roots(topology.rows("out"), into, team)
        smallest = smallest_of(topology, root, team)
    return Result(
        source=lambda: topology.table({"value": topology.ids(smallest)}),
        algorithm="wcc",
        supersteps=3,
        seconds=time.perf_counter() - began,
        result=num_components,
    )


def find_roots(
    out: Csr, into: Csr | None, team: ThreadTeam
) -> tuple[npt.NDArray[Any], int]:
    """Return the smallest number of every node's component ``[N]``, and their number.

    Args:
        out: Csr of out-neighbors.
        into: Csr of in-neighbors; None if the rows are symmetric.
        team: Threads.
    """
    parent = np.empty(out.num_nodes, dtype=out.indices.dtype)
    second = np.empty_like(parent)
    even = even_chunks(out.num_nodes)
    # Afforest: two neighbors of each node join most of the graph; whoever is in its
    # largest component after that need not look at the rest of its edges
    team.run(
        kernels.hook_first,
        out.begins,
        out.ends,
        out.indices,
        even,
        _counter(),
        parent,
        second,
    )
    team.run(kernels.compress, even, _counter(), parent)
    team.run(kernels.link_second, even, _counter(), parent, second)
    team.run(kernels.compress, even, _counter(), parent)
    giant = _most_frequent(parent)
    # a node of the giant component is skipped, so an edge has to be seen from both ends
    for rows in (out, into):
        if rows is not None:
            bounds = rows.chunks()
            team.run(
                kernels.link_rest,
                rows.begins,
                rows.ends,
                rows.indices,
                bounds,
                _counter(),
                parent,
                giant,
            )
    counts = team.run(kernels.compress, even, _counter(), parent)
    return parent, int(np.sum(counts))


def _most_frequent(parent: npt.NDArray[Any]) -> int:
    """Return the root that most of some nodes have, -1 without nodes.

    The nodes are every k-th one. Another root would cost time, not change the result.
    """
    if not len(parent):
        return -1
    roots, counts = np.unique(
        parent[:: max(1, len(parent) // NUM_PROBES)], return_counts=True
    )
    return int(roots[np.argmax(counts)])


def smallest_of(
    topology: Topology, root: npt.NDArray[Any], team: ThreadTeam
) -> npt.NDArray[Any]:
    """Return the node with the smallest id of every node's component ``[N]``."""
    rank, by_rank = topology.rank, topology.by_rank
    if rank is None or by_rank is None:
        return root
    least = rank.copy()
    even = even_chunks(len(root))
    team.run(kernels.least_ranks, even, _counter(), root, rank, least)
    chosen: npt.NDArray[Any] = by_rank[least[root]]
    return chosen


def even_chunks(num_nodes: int) -> npt.NDArray[np.int64]:
    """Return bounds of 64 chunks of as many nodes each."""
    return np.unique(np.linspace(0, num_nodes, 65).astype(np.int64))


def _counter() -> npt.NDArray[np.int64]:
    return np.zeros(1, dtype=np.int64)
