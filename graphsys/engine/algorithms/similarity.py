"""Similar nodes, and walks that meet them."""

from collections.abc import Iterable
from typing import Any, Unpack

from graphsys.engine.algorithms.algorithm import Example, GraphLike, NativeOptions, listed


@listed(native="similarity:jaccard", shown="largest", example=Example(largest=12))
def jaccard(
    graph: GraphLike,
    *,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    threshold: float = 0.0,
    top_k: int | None = None,
    **options: Unpack[NativeOptions],
) -> None:
    """Pairs of nodes by the share of common ones among their neighbors.

    ``|A & B| / |A | B|`` in the simple undirected graph; 0 for two nodes without neighbors.
    Without ``pairs`` and ``top_k``, every unordered pair with a common neighbor and a score
    of at least ``threshold`` is listed once, the smaller id first.

    Args:
        graph: An open graph, its path, or edges in memory; direction, loops and
            repetitions do not count.
        pairs: Pairs of ids to score, in any number and order.
        threshold: Smallest score to list, where ``pairs`` is not given.
        top_k: List for each node (column ``id``) at most so many of the best others
            instead, best first, ties to the smaller id.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        One row per pair: ``id``, ``other``, ``value`` (float64); in the order of ``pairs``,
        else by the order of ``id``, then falling score or ``other``.

    Raises:
        ConfigError: ``pairs`` together with ``threshold`` or ``top_k``, or bad numbers.
        UnknownNameError: a node of ``pairs`` is not in the graph.

    Complexity:
        O(degrees) per pair; without pairs, the number of paths of two edges, and 8 bytes
        per node and thread besides the result.

    References:
        Liben-Nowell, Kleinberg, "The link prediction problem for social networks", 2007.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 1], [2, 2, 3], num_nodes=4)
        >>> gs.algorithms.jaccard(graph, pairs=[(0, 1)]).table["value"].to_pylist()
        [0.5]
    """


@listed(native="similarity:adamic_adar", shown="largest", example=Example(largest=12))
def adamic_adar(
    graph: GraphLike,
    *,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    threshold: float = 0.0,
    top_k: int | None = None,
    **options: Unpack[NativeOptions],
) -> None:
    """Pairs of nodes by common neighbors, those of low degree counting more.

    The sum of ``1 / log(degree)`` over the common neighbors in the simple undirected graph.
    Weights are rounded to 2**-40 (coarser from degrees of 2.9 million on), so that sums do
    not depend on their order.

    Args:
        graph: An open graph, its path, or edges in memory; direction, loops and
            repetitions do not count.
        pairs: Pairs of ids to score, in any number and order.
        threshold: Smallest score to list, where ``pairs`` is not given.
        top_k: List for each node (column ``id``) at most so many of the best others
            instead, best first, ties to the smaller id.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        One row per pair: ``id``, ``other``, ``value`` (float64); in the order of ``pairs``,
        else by the order of ``id``, then falling score or ``other``.

    Raises:
        ConfigError: ``pairs`` together with ``threshold`` or ``top_k``, or bad numbers; a
            pair of a node with itself that has a neighbor of degree 1: infinite.
        UnknownNameError: a node of ``pairs`` is not in the graph.

    Complexity:
        O(degrees) per pair; without pairs, the number of paths of two edges, and 8 bytes
        per node and thread besides the result.

    References:
        Adamic, Adar, "Friends and neighbors on the Web", Social Networks 25, 2003.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 1], [2, 2, 3], num_nodes=4)
        >>> done = gs.algorithms.adamic_adar(graph, pairs=[(0, 1)])
        >>> done.table["value"].to_numpy().round(3).tolist()
        [1.443]
    """


@listed(native="walks:random_walks")
def random_walks(
    graph: GraphLike,
    *,
    length: int = 80,
    walks_per_node: int = 1,
    starts: Iterable[Any] | None = None,
    p: float = 1.0,
    q: float = 1.0,
    weighted: bool = False,
    seed: int = 0,
    **options: Unpack[NativeOptions],
) -> None:
    """Uniform, weighted or node2vec walks along out-edges.

    A step takes each out-edge with equal chance, or in proportion to its weight. With
    node2vec's ``p`` and ``q``, the chance is also multiplied by 1/p for going back to the
    last node, by 1 for nodes to which the last one has an edge, and by 1/q for others.
    Walks end early where no edge leads on. They depend on ids, edges and ``seed`` alone,
    not on partitions or threads.

    Args:
        graph: An open graph, its path, or edges in memory.
        length: Steps of a walk; it has one node more.
        walks_per_node: Walks from each start.
        starts: Ids to start from; all nodes in the order of ids by default.
        p: Return parameter.
        q: In-out parameter.
        weighted: Choose edges in proportion to ``weight`` (1 if there is none).
        seed: Chooses the walks.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        One row per walk: ``id`` (its start), ``walk`` (0, 1 ... of that start) and
        ``nodes`` (a list of ids, the start first).

    Raises:
        ConfigError: a parameter out of range.
        UnknownNameError: a start that is not in the graph.
        InvalidGraphError: a negative or infinite weight.

    Complexity:
        O(1) expected per step, O(log(degree)) with weights, p or q; O(N + E) before the
        first; 4 bytes per node of the walks besides the result.

    References:
        Perozzi, Al-Rfou, Skiena, "DeepWalk", KDD 2014; Grover, Leskovec, "node2vec", KDD
        2016; Yang et al., "KnightKing", SOSP 2019 (rejection).

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2], [1, 2, 0], num_nodes=3)
        >>> done = gs.algorithms.random_walks(graph, length=3, starts=[0])
        >>> done.table["nodes"].to_pylist()
        [[0, 1, 2, 0]]
    """
