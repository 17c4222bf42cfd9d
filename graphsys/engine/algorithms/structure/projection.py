"""Bipartite graphs seen from one side: who has how much in common."""

from functools import partial
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import unknown_name
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import require
from graphsys.engine.algorithms.similarity import PairSearch, pair_needs
from graphsys.engine.algorithms.structure.flow import sides_of
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology


def _projection_needs(facts: Facts) -> Need:
    node_type, side = facts.options.get("node_type"), facts.options.get("side", 0)
    return pair_needs(facts, partial(_search, node_type=node_type, side=side))


@listed(
    needs=_projection_needs,
    shown="largest",
    example=Example(
        dataset="ksat", settings={"num_variables": 60}, needs="a bipartite graph"
    ),
)
def bipartite_projection(
    graph: GraphLike,
    *,
    node_type: str | None = None,
    side: int = 0,
    threshold: float = 1.0,
    top_k: int | None = None,
    **options: Unpack[NativeOptions],
) -> Result:
    """Pairs of nodes of one side of a bipartite graph, by how many neighbors they share.

    Readers of the same books, authors of the same papers: the edges of the graph that is
    left when the other side goes, with their weights. The result's file can be ingested as
    a graph. Direction, loops and repeated edges do not count.

    Args:
        graph: An open graph, its path, or edges in memory.
        node_type: The nodes that stay, where the graph has several types; they must not
            know each other for the result to mean this.
        side: 0 or 1, where ``node_type`` is not given: 0 is the side of the first node by
            id of every component.
        threshold: Fewest common neighbors of a pair that is listed.
        top_k: List for each node (column ``id``) at most so many of the best others
            instead, best first, ties to the smaller id.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        One row per pair: ``id``, ``other``, ``value``: the common neighbors, float64; the
        smaller id first, in the order of ids; with ``top_k`` by falling value.

    Raises:
        UnknownNameError: there is no such node type.
        InvalidGraphError: without ``node_type``, the graph is not bipartite.
        ConfigError: ``side`` is not 0 or 1, or a number out of range.

    Complexity:
        The number of paths of two edges between nodes that stay, and 8 bytes per node and
        thread besides the result.

    References:
        Newman, "Scientific collaboration networks II", Physical Review E 64, 2001.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 0, 1, 1, 2], [3, 4, 3, 4, 4], num_nodes=5)
        >>> gs.algorithms.bipartite_projection(graph).table["value"].to_pylist()
        [2.0, 1.0, 1.0]
    """
    topology = Topology.of(graph)
    search = _search(topology, options.get("num_threads"), node_type, side)
    return search.run(None, threshold, top_k)


def _search(
    topology: Topology, num_threads: int | None, node_type: str | None, side: int
) -> PairSearch:
    return PairSearch(
        topology,
        "bipartite_projection",
        np.ones(topology.num_nodes, dtype=np.int64),
        unit=1.0,
        is_chosen=_chosen(topology, node_type, side),
        num_threads=num_threads,
    )


def _chosen(topology: Topology, node_type: str | None, side: Any) -> npt.NDArray[np.bool_]:
    """Return which nodes stay."""
    require(side in (0, 1), "side", side, "0 or 1")
    if node_type is None:
        remedy = "give node_type, where types tell the sides apart"
        found: npt.NDArray[np.bool_] = (
            sides_of(topology, "bipartite_projection", remedy) == side
        )
        return found
    types = topology.numbers.types
    if node_type not in types:
        raise unknown_name("node type", node_type, types)
    begin = topology.numbers.base(node_type)
    chosen = np.zeros(topology.num_nodes, dtype=np.bool_)
    chosen[begin : begin + len(topology.numbers.ids_by_type[node_type])] = True
    return chosen
