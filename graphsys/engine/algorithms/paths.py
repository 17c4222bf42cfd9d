"""Distances, trees and cuts."""

from typing import Any, Unpack

from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    ProgramOptions,
    listed,
)


@listed(program="mst:SpanningForest", tags=("MST",))
def mst(graph: GraphLike, **options: Unpack[ProgramOptions]) -> None:
    """Minimum spanning forest, by Boruvka's rounds.

    Direction does not count; loops are never chosen, and of repeated edges the lightest
    is. Edges of equal weight are ordered by their ids: the forest is the same for every
    partitioning.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            weights of edges, which are 1 where there is none.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        A row per node; a row with a ``weight`` is the edge ``source`` - ``target`` of the
        forest (each edge once, one row without for every tree). ``result``: the total
        weight.

    Complexity:
        At most log2 N rounds of two to 2 + D + log2 N supersteps, D the largest diameter of
        a tree, O(E) messages each.

    References:
        Boruvka, "O jistem problemu minimalnim", 1926; Nesetril, Milkova, Nesetrilova,
        "Otakar Boruvka on minimum spanning tree problem", Discrete Mathematics 233, 2001.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 1, 0], [1, 2, 2], num_nodes=3, weight=[1.0, 2.0, 3.0], directed=False
        ... )
        >>> gs.algorithms.mst(graph).result
        3.0
    """


@listed(
    program="min_cut:MinimumCut",
    tags=("GCU",),
    example=Example(parameters={"source": 0, "target": 1}),
)
def min_cut(
    graph: GraphLike, *, source: Any, target: Any, **options: Unpack[ProgramOptions]
) -> None:
    """Smallest cut between a source and a target, by push-relabel.

    An undirected edge has its capacity both ways, repeated edges add up, loops do nothing.
    Computed in float64: what is below 1e-12 of an edge's capacity, or of the capacity
    around a node, counts as nothing.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            capacities of edges, not negative; 1 where there is none.
        source: Id of the node on the one side.
        target: Id of the node on the other side.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: true on the source's side. ``result``: the capacity of the cut, which is
        the maximum flow.

    Raises:
        UnknownNameError: the graph has no such node.
        InvalidGraphError: a negative capacity.

    Complexity:
        O(N^2) rounds in theory, tens in practice; each takes two supersteps per level. O(E)
        messages per superstep, 16 bytes per edge and direction.

    References:
        Goldberg, Tarjan, "A new approach to the maximum-flow problem", JACM 35, 1988.
        Cherkassky, Goldberg, "On implementing the push-relabel method for the maximum flow
        problem", Algorithmica 19, 1997.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 0, 1, 2], [1, 2, 3, 3], num_nodes=4, weight=[3.0, 1.0, 2.0, 5.0]
        ... )
        >>> gs.algorithms.min_cut(graph, source=0, target=3).result
        3.0
    """
