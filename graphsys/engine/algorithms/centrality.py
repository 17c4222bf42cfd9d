"""How important, near or connected nodes are."""

from typing import Unpack

from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    ProgramOptions,
    listed,
)


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


@listed(
    program="katz:katz_centrality",
    shown="largest",
    example=Example(parameters={"alpha": 0.001}),
)
def katz(
    graph: GraphLike,
    *,
    alpha: float = 0.1,
    beta: float = 1.0,
    tolerance: float = 1e-9,
    normalized: bool = True,
    weighted: bool = False,
    **options: Unpack[ProgramOptions],
) -> None:
    """Katz centrality: walks of all lengths that end at a node, longer ones counting less.

    Args:
        graph: An open graph, its path, or edges in memory.
        alpha: What each further step of a walk is worth.
        beta: What every node has to begin with.
        tolerance: Stop when no score will grow by more than this share of itself.
        normalized: Scale the scores to a Euclidean norm of 1.
        weighted: Walks count as much as the product of the edges' column ``weight``.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the scores, float64.

    Raises:
        NotConvergedError: ``alpha`` is not below 1 / the largest eigenvalue, or hardly.
        InvalidGraphError: weights that are negative, or not finite.

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


@listed(program="eigenvector:eigenvector_centrality", shown="largest")
def eigenvector(
    graph: GraphLike,
    *,
    tolerance: float = 1e-6,
    weighted: bool = False,
    **options: Unpack[ProgramOptions],
) -> None:
    """Eigenvector centrality: a node is as important as those that point to it, together.

    Args:
        graph: An open graph, its path, or edges in memory.
        tolerance: Stop when scores moved by less than N times this in all.
        weighted: Neighbors count as much as the edge's column ``weight``.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: scores of Euclidean norm 1, none negative, float64.

    Raises:
        InvalidGraphError: a directed graph with edges, but without a cycle: it has none;
            weights that are negative, not finite, or add up to more than 1e150.

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
