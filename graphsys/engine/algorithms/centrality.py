"""How important, near or connected nodes are."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    ProgramOptions,
    RunOptions,
    listed,
)


@listed(
    native="pagerank:pagerank", program="pagerank:PageRank", shown="largest", tags=("PR",)
)
def pagerank(
    graph: GraphLike,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    iterations: int | None = None,
    max_supersteps: int = 1000,
    personalization: Mapping[Any, float] | None = None,
    weighted: bool = False,
    dtype: str = "float64",
    **options: Unpack[RunOptions],
) -> None:
    """PageRank: the share of time that a random surfer spends at each node.

    Scores start at 1/N and sum to 1: nodes without out-edges (or with weights of 0 only)
    give theirs to all nodes alike, or as ``personalization`` says. Repeated edges count as
    often as they are stored. The native result is the same, bit by bit, for any number of
    threads.

    Args:
        graph: An open graph, its path, or edges in memory; an undirected edge counts in
            both directions.
        damping: Share of the surfers who follow an edge, 0 to 1.
        tolerance: Stop when the scores of a superstep differ from the last ones by less
            than this in all (L1 norm).
        iterations: Run exactly that many supersteps instead.
        max_supersteps: Give up after so many; ``converged`` is then false.
        personalization: Weight of each node (by id) to be jumped to; nodes left out get 0.
            All alike by default. Native only, as the next two.
        weighted: Split a node's score by the edges' ``weight`` (1 if there is none).
        dtype: Of the scores: ``float64``, or ``float32`` for speed.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the scores.

    Raises:
        ConfigError: a parameter out of range, or a personalization that sums to 0.
        UnknownNameError: a node of the personalization is not in the graph.
        InvalidGraphError: a negative or infinite weight.

    Complexity:
        O(N + E) per superstep; two arrays of N scores and one of N degrees besides the
        graph.

    References:
        Page, Brin, Motwani, Winograd, "The PageRank citation ranking", Stanford, 1999.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2], [2, 2, 0], num_nodes=3)
        >>> scores = gs.algorithms.pagerank(graph).table["value"].to_numpy()
        >>> scores.round(3).tolist()
        [0.464, 0.05, 0.486]
    """


@listed(
    program="pagerank:PersonalizedPageRank",
    shown="largest",
    example=Example(parameters={"source": 0}),
)
def personalized_pagerank(
    graph: GraphLike,
    *,
    source: Any,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    iterations: int | None = None,
    **options: Unpack[ProgramOptions],
) -> None:
    """PageRank of a surfer who jumps back to a source.

    Args:
        graph: An open graph, its path, or edges in memory; an undirected edge counts in
            both directions.
        source: Id of the node to jump to.
        damping: Share of the surfers who follow an edge, 0 to 1.
        tolerance: Stop when the scores of a superstep differ from the last ones by less
            than this in all (L1 norm).
        iterations: Run exactly that many supersteps instead.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the scores, float64, which sum to 1.

    Raises:
        ConfigError: a parameter out of range.
        UnknownNameError: the graph has no such node.

    Complexity:
        O(N + E) per superstep.

    References:
        Page, Brin, Motwani, Winograd, "The PageRank citation ranking", Stanford, 1999.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2], [1, 0, 0], num_nodes=3)
        >>> done = gs.algorithms.personalized_pagerank(graph, source=0)
        >>> done.table["value"].to_numpy().round(3).tolist()
        [0.541, 0.459, 0.0]
    """


@listed(program="hits:Hits", shown="largest")
def hits(
    graph: GraphLike,
    *,
    tolerance: float = 1e-8,
    iterations: int | None = None,
    **options: Unpack[ProgramOptions],
) -> None:
    """Hubs and authorities: hubs point to good authorities, which good hubs point to.

    Both scores sum to 1, or are 0 throughout in a graph without edges. Repeated edges count
    as often as they are stored.

    Args:
        graph: An open graph, its path, or edges in memory.
        tolerance: Stop when the hubs of an iteration differ from the last ones by less than
            this in all (L1 norm).
        iterations: Run exactly that many iterations instead.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``hub`` and ``authority``: the scores, float64.

    Raises:
        ConfigError: a parameter out of range.

    Complexity:
        O(N + E) per superstep, two supersteps per iteration.

    References:
        Kleinberg, "Authoritative sources in a hyperlinked environment", JACM 46(5), 1999.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [2, 2], num_nodes=3)
        >>> done = gs.algorithms.hits(graph).table
        >>> done["hub"].to_pylist(), done["authority"].to_pylist()
        ([0.5, 0.5, 0.0], [0.0, 0.0, 1.0])
    """


@listed(program="katz:Katz", shown="largest", example=Example(parameters={"alpha": 0.001}))
def katz(
    graph: GraphLike,
    *,
    alpha: float = 0.1,
    beta: float = 1.0,
    tolerance: float = 1e-9,
    normalized: bool = True,
    **options: Unpack[ProgramOptions],
) -> None:
    """Katz centrality: walks of all lengths that end at a node, longer ones counting less.

    Args:
        graph: An open graph, its path, or edges in memory.
        alpha: What each further step of a walk is worth.
        beta: What every node has to begin with.
        tolerance: Stop when no score will grow by more than this share of itself.
        normalized: Scale the scores to a Euclidean norm of 1.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the scores, float64.

    Raises:
        NotConvergedError: ``alpha`` is not below 1 / the largest eigenvalue, or hardly.

    Complexity:
        O(N + E) per superstep.

    References:
        Katz, "A new status index derived from sociometric analysis", 1953.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [2, 2], num_nodes=3)
        >>> done = gs.algorithms.katz(graph, normalized=False)
        >>> done.table["value"].to_numpy().round(2).tolist()
        [1.0, 1.0, 1.2]
    """


@listed(program="eigenvector:Eigenvector", shown="largest")
def eigenvector(
    graph: GraphLike, *, tolerance: float = 1e-6, **options: Unpack[ProgramOptions]
) -> None:
    """Eigenvector centrality: a node is as important as those that point to it, together.

    Args:
        graph: An open graph, its path, or edges in memory.
        tolerance: Stop when scores moved by less than N times this in all.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: scores of Euclidean norm 1, none negative, float64.

    Raises:
        InvalidGraphError: a directed graph with edges, but without a cycle: it has none.

    Complexity:
        O(N + E) per superstep; more of them where the two largest eigenvalues are close.

    References:
        Bonacich, "Power and centrality: a family of measures", 1987.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2], [1, 2, 0], num_nodes=3)
        >>> done = gs.algorithms.eigenvector(graph)
        >>> done.table["value"].to_numpy().round(3).tolist()
        [0.577, 0.577, 0.577]
    """


@listed(native="betweenness:betweenness", shown="largest")
def betweenness(
    graph: GraphLike,
    *,
    samples: int | None = None,
    sources: Sequence[Any] | None = None,
    seed: int = 0,
    normalized: bool = True,
    **options: Unpack[NativeOptions],
) -> None:
    """Shares of shortest paths that pass through every node, exact or sampled.

    Paths are unweighted, follow the edges' direction, and differ if their nodes do:
    repeated edges count once. As in NetworkX, the ends of a path do not count; with a
    sample of the sources the sums are scaled up to all of them.

    Args:
        graph: An open graph, its path, or edges in memory.
        samples: Take paths from this many sources only, drawn at random; all by default.
        sources: Take paths from these nodes only, by id.
        seed: Another seed, another sample.
        normalized: Divide by the number of pairs of other nodes; else undirected graphs
            count every pair once.
        options: How it is run: ``memory`` and ``num_threads``. The number of threads
            changes the order of sums, so the result up to rounding.

    Returns:
        ``value``: float64; null for a source that is the only one, of which nothing is
        known.

    Raises:
        ConfigError: ``samples`` is not in 1 to N, or both it and ``sources`` are given.
        InvalidGraphError: two nodes have more than 1.8e308 shortest paths between them.
        UnknownNameError: a source is not in the graph.

    Complexity:
        O(S (N + E)) time for S sources, O(N) memory besides the graph.

    References:
        Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociol. 25(2),
        2001. Brandes, Pich, "Centrality estimation in large networks", Int. J. Bifurcation
        and Chaos 17(7), 2007.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [1, 2], num_nodes=3, directed=False)
        >>> gs.algorithms.betweenness(graph).table["value"].to_pylist()
        [0.0, 1.0, 0.0]
    """


@listed(native="distances:closeness", shown="largest", example=Example(largest=12))
def closeness(graph: GraphLike, **options: Unpack[NativeOptions]) -> None:
    """How near every node is to those that reach it: 1 / the mean distance to it.

    Multiplied by the share of the other nodes that reach it (Wasserman and Faust), so that
    small components do not come out on top. 0 where no other node reaches it.

    Args:
        graph: An open graph, its path, or edges in memory; distances are hops along the
            edges' direction.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: the closeness, float64 in 0 to 1.

    Complexity:
        O(N (N + E)).

    References:
        Wasserman, Faust, "Social network analysis", 1994, section 5.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [1, 2], num_nodes=3, directed=False)
        >>> gs.algorithms.closeness(graph).table["value"].to_numpy().round(3).tolist()
        [0.667, 1.0, 0.667]
    """


@listed(native="distances:harmonic", shown="largest", example=Example(largest=12))
def harmonic(graph: GraphLike, **options: Unpack[NativeOptions]) -> None:
    """Harmonic centrality: the sum of 1 / distance over the nodes that reach a node.

    Args:
        graph: An open graph, its path, or edges in memory; distances are hops along the
            edges' direction.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: the sum, float64.

    Complexity:
        O(N (N + E)).

    References:
        Boldi, Vigna, "Axioms for centrality", Internet Mathematics 10, 2014.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [1, 2], num_nodes=3)
        >>> gs.algorithms.harmonic(graph).table["value"].to_pylist()
        [0.0, 1.0, 1.5]
    """


@listed(native="degrees:degree_statistics", answers=True, shown="largest")
def degree_statistics(graph: GraphLike, **options: Unpack[NativeOptions]) -> None:
    """In- and out-degrees.

    Repeated edges count as often as they are stored. In an undirected graph both columns
    are the number of edges at the node, a loop counted once.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``out_degree`` and ``in_degree``, int64. ``result``: the mean out-degree.

    Complexity:
        O(N + partitions): row offsets only.

    References:
        Newman, "Networks", 2018, section 6.10.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 0], [1, 2], num_nodes=3)
        >>> gs.algorithms.degree_statistics(graph).table["out_degree"].to_pylist()
        [2, 0, 0]
    """


@listed(native="degrees:degree_assortativity", answers=True)
def degree_assortativity(graph: GraphLike, **options: Unpack[NativeOptions]) -> None:
    """Whether nodes of like degree are neighbors: the correlation along edges (Pearson).

    Out-degree of the source against in-degree of the destination. An undirected edge counts
    in both directions, a loop adds one edge and one to its node's degree.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        An empty table. ``result``: the coefficient, from -1 to 1; NaN where it is not
        defined: no edges, or all ends alike.

    Complexity:
        O(N + E).

    References:
        Newman, "Mixing patterns in networks", Physical Review E 67, 2003.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 0, 0], [1, 2, 3], num_nodes=4, directed=False
        ... )
        >>> round(gs.algorithms.degree_assortativity(graph).result, 3)
        -1.0
    """
