"""Distances, trees and cuts."""

from typing import Any, Unpack

from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    ProgramOptions,
    listed,
)


@listed(
    native="traversal:bfs",
    program="bfs:breadth_first",
    shown="smallest",
    tags=("BFS",),
    example=Example(parameters={"source": 0}),
)
def bfs(
    graph: GraphLike,
    *,
    source: Any,
    parents: bool = False,
    **options: Unpack[ProgramOptions],
) -> None:
    """Hops from a source, along the edges' direction.

    Args:
        graph: An open graph, its path, or edges in memory.
        source: Id of the node to start from.
        parents: Add a column ``parent``: the id of the in-neighbor one hop closer, the
            first one in the order of ids; null for the source and where nothing leads.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: hops, int64, null where not reached.

    Raises:
        UnknownNameError: the graph has no such node.

    Complexity:
        O(N + E) time, O(N) memory besides the graph.

    References:
        Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search", SC 2012.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 0], [1, 2, 3], num_nodes=5)
        >>> gs.algorithms.bfs(graph, source=0).table["value"].to_pylist()
        [0, 1, 2, 1, None]
    """


@listed(
    native="shortest_paths:sssp",
    program="sssp:ShortestPaths",
    shown="smallest",
    tags=("SSSP",),
    example=Example(parameters={"source": 0}),
)
def sssp(
    graph: GraphLike,
    *,
    source: Any,
    negative_weights: bool = False,
    **options: Unpack[ProgramOptions],
) -> None:
    """Distances from a source: the lengths of the shortest paths.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            lengths of edges, which are 1 where there is none.
        source: Id of the node to start from.
        negative_weights: Allow negative lengths; only the vertex program does.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: distance, float64, null where not reached.

    Raises:
        UnknownNameError: the graph has no such node.
        InvalidGraphError: lengths that are NaN or, unless allowed, negative; a negative
            cycle.

    Complexity:
        O(N + E) time on random graphs and lengths, O(N) memory besides the graph.

    References:
        Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J.
        Algorithms 49(1), 2003. Bellman, "On a routing problem", 1958 (the program).

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 1, 0], [1, 2, 2], num_nodes=3, weight=[1.5, 1.0, 4.0]
        ... )
        >>> gs.algorithms.sssp(graph, source=0).table["value"].to_pylist()
        [0.0, 1.5, 2.5]
    """


@listed(native="all_pairs:apsp", tags=("APSP",), example=Example(largest=12))
def apsp(
    graph: GraphLike, *, max_nodes: int = 5000, **options: Unpack[NativeOptions]
) -> None:
    """Distances between all pairs of nodes.

    The result has N^2 rows of 24 bytes (more with text ids), whatever the number of edges.
    Above ``max_nodes`` it is no table but comes in blocks of sources, made when they are
    asked for: ``pieces()`` of the result, or ``-o FILE``, which writes them as they come.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            lengths of edges, which are 1 where there is none.
        max_nodes: The largest number of nodes whose pairs are made at once.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        One row per pair, sources in the order of the store: ``id``, ``other``, and
        ``value``, the distance from the one to the other, float64, null where not reached.

    Raises:
        ConfigError: the table of more than ``max_nodes`` nodes was asked for.
        InvalidGraphError: a negative length.

    Complexity:
        O(N) times that of ``sssp``; O(N^2) memory, in blocks some 100 MB.

    References:
        Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J.
        Algorithms 49(1), 2003.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [1, 2], num_nodes=3)
        >>> done = gs.algorithms.apsp(graph).table.to_pydict()
        >>> done["id"][:3], done["other"][:3], done["value"][:3]
        ([0, 0, 0], [0, 1, 2], [0.0, 1.0, 2.0])
    """


@listed(native="distances:diameter", answers=True)
def diameter(
    graph: GraphLike, *, sweeps: int = 4, **options: Unpack[NativeOptions]
) -> None:
    """A lower bound of the longest distance, by searches from far ends (double sweep).

    The first search starts from the node with most neighbors (the smallest id of several),
    each further one from the farthest node of the last. Exact on trees, and on most real
    graphs; only the component of the first node is looked at.

    Args:
        graph: An open graph, its path, or edges in memory; direction does not count.
        sweeps: Searches.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: hops to the node from the last start, int64, null where not reached.
        ``result``: the largest distance seen.

    Raises:
        ConfigError: ``sweeps`` is not a whole number of at least 1.

    Complexity:
        O(sweeps (N + E)).

    References:
        Magnien, Latapy, Habib, "Fast computation of empirically tight bounds for the
        diameter of massive graphs", JEA 13, 2009.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2], [1, 2, 3], num_nodes=4)
        >>> gs.algorithms.diameter(graph).result
        3
    """


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
