"""Communities, clusters, labels and triangles."""

from collections.abc import Mapping
from typing import Any, Unpack

from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    ProgramOptions,
    listed,
)


@listed(program="cdlp:Cdlp")
def cdlp(
    graph: GraphLike, *, iterations: int = 10, **options: Unpack[ProgramOptions]
) -> None:
    """Communities by label propagation, as LDBC Graphalytics defines it.

    Labels start as the nodes' own ids; in every superstep each node takes the most frequent
    label among its neighbors, the smallest among equals. In a directed graph an edge each
    way counts twice.

    Args:
        graph: An open graph, its path, or edges in memory.
        iterations: Run exactly that many supersteps.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the label, which is an id.

    Complexity:
        O(N + E) per superstep.

    References:
        Raghavan, Albert, Kumara, Physical Review E 76, 2007, made deterministic by Iosup et
        al., "The LDBC Graphalytics benchmark", arXiv 2011.15028.

    Example:
        >>> import graphsys as gs
        >>> src, dst = [0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]
        >>> graph = gs.Topology.from_edges(src, dst, num_nodes=6, directed=False)
        >>> gs.algorithms.cdlp(graph).table["value"].to_pylist()
        [0, 0, 0, 3, 3, 3]
    """


@listed(
    program="label_propagation:LabelPropagation",
    example=Example(
        dataset="planted",
        settings={"num_nodes": 400},
        needs="labels: a column of the nodes, or the parameter",
    ),
)
def label_propagation(
    graph: GraphLike,
    *,
    labels: Mapping[Any, int] | None = None,
    iterations: int | None = None,
    **options: Unpack[ProgramOptions],
) -> None:
    """Known labels spread to the other nodes: classification from a few examples.

    Known labels never change; in every superstep each other node takes the most frequent
    label among its neighbors that have one (in both directions), the smallest among equals.
    Ends when no node changes; nodes that flip for ever, as pairs may, are cut short by
    ``max_supersteps``.

    Args:
        graph: An open graph, its path, or edges in memory.
        labels: Labels, whole numbers >= 0, by id; by default the column ``label`` of the
            nodes, of the training split where nodes have splits.
        iterations: Run exactly that many supersteps instead.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the label, null where none arrives.

    Raises:
        ConfigError: no labels are given, and the nodes have none.
        UnknownNameError: a labeled node is not in the graph.

    Complexity:
        O(N + E) per superstep.

    References:
        Zhu, Ghahramani, "Learning from labeled and unlabeled data with label propagation",
        2002 (with the majority rule).

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 3], [1, 2, 4], num_nodes=6)
        >>> done = gs.algorithms.label_propagation(graph, labels={0: 7, 3: 8})
        >>> done.table["value"].to_pylist()
        [7, 7, 7, 8, 8, None]
    """


@listed(program="clustering:Clustering", tags=("GCL",))
def clustering(
    graph: GraphLike, *, beta: float = 0.2, seed: int = 0, **options: Unpack[ProgramOptions]
) -> None:
    """Connected clusters of small diameter, few edges cut.

    Every node draws a head start from an exponential distribution of rate ``beta`` and
    joins the cluster whose search, one hop per unit of time, reaches it first. No node is
    farther from its center than about ln N / beta, and an edge is cut with a probability of
    at most ``beta``. Direction, weights, loops and repetitions do not count.

    Args:
        graph: An open graph, its path, or edges in memory.
        beta: Share of edges that may be cut; smaller ones give larger clusters.
        seed: Another seed, another clustering.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the id of the cluster's center. ``result``: the number of clusters.

    Complexity:
        O(log N / beta) supersteps with high probability, O(N + E) messages that change
        anything in expectation per unit of time.

    References:
        Miller, Peng, Xu, "Parallel graph decompositions using random shifts", SPAA 2013.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 2], [1, 3], num_nodes=4)
        >>> gs.algorithms.clustering(graph, beta=0.01).result
        2
    """
