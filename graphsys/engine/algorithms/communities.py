"""Communities, clusters, labels and triangles."""

from collections.abc import Mapping
from typing import Any, Unpack

from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    ProgramOptions,
    listed,
)


@listed(native="leiden:leiden", answers=True, example=Example(largest=16))
def leiden(
    graph: GraphLike,
    *,
    resolution: float = 1.0,
    weighted: bool = False,
    seed: int = 0,
    tolerance: float = 1e-5,
    max_supersteps: int = 100,
    **options: Unpack[NativeOptions],
) -> None:
    """Communities of high modularity, each of them connected.

    Direction does not count; repeated edges count as often as they are stored, a loop adds
    twice to its node's degree. The result depends on ids, edges and ``seed`` alone.

    Args:
        graph: An open graph, its path, or edges in memory.
        resolution: Higher values give more and smaller communities.
        weighted: Count edges by ``weight`` (1 if there is none).
        seed: Chooses the order of visits and the choices of the refinement.
        tolerance: Stop after a pass that raises the modularity by no more than this.
        max_supersteps: Give up after so many passes, each of which starts from the
            communities of the last; ``converged`` is then false.
        options: How it is run: ``memory`` and ``num_threads`` (it is serial).

    Returns:
        ``value``: the smallest id of the node's community. ``result``: the modularity.

    Raises:
        ConfigError: a parameter out of range.
        InvalidGraphError: a negative or infinite weight.

    Complexity:
        O(E) per level in practice; 16 bytes per entry of the symmetric graph. Serial.

    References:
        Traag, Waltman, van Eck, "From Louvain to Leiden", Scientific Reports 9, 2019.

    Example:
        >>> import graphsys as gs
        >>> src, dst = [0, 1, 2, 3, 4, 5, 2], [1, 2, 0, 4, 5, 3, 3]
        >>> graph = gs.Topology.from_edges(src, dst, num_nodes=6, directed=False)
        >>> gs.algorithms.leiden(graph).table["value"].to_pylist()
        [0, 0, 0, 3, 3, 3]
    """


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


@listed(native="triangles:triangle_count", answers=True, shown="largest")
def triangle_count(graph: GraphLike, **options: Unpack[NativeOptions]) -> None:
    """Triangles per node.

    The graph is taken as simple and undirected: direction, loops and repeated edges do not
    count.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: triangles, int64. ``result``: how many there are in all.

    Complexity:
        O(N + E * arboricity) time; O(N * threads + E) memory besides the graph.

    References:
        Chiba, Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J. Comput.
        14(1), 1985. Ortmann, Brandes, "Triangle listing algorithms: back from the
        diversion", ALENEX 2014.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2, 2], [1, 2, 0, 3], num_nodes=4)
        >>> gs.algorithms.triangle_count(graph).table["value"].to_pylist()
        [1, 1, 1, 0]
    """


@listed(native="triangles:lcc", shown="largest")
def lcc(graph: GraphLike, **options: Unpack[NativeOptions]) -> None:
    """Local clustering coefficients, as LDBC Graphalytics defines them.

    The neighbors of a node are those at the other end of its edges of either direction,
    itself not among them. The coefficient is the share of the ordered pairs of neighbors
    that an edge leads from one to the other of; in an undirected graph an edge leads both
    ways. With fewer than two neighbors it is 0. Repeated edges count once.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: the coefficient, float64 in 0 to 1.

    Complexity:
        O(N + E * arboricity) time; O(N * threads + E) memory besides the graph.

    References:
        Iosup et al., "LDBC Graphalytics: a benchmark for large-scale graph analysis on
        parallel and distributed platforms", PVLDB 9(13), 2016.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 1, 2], [1, 2, 0], num_nodes=3, directed=False
        ... )
        >>> gs.algorithms.lcc(graph).table["value"].to_pylist()
        [1.0, 1.0, 1.0]
    """
