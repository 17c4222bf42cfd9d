"""Sets, colors, pairs and states: one choice per node that fits the neighbors'."""

from collections.abc import Mapping
from typing import Any, Unpack

from graphsys.engine.algorithms.algorithm import GraphLike, ProgramOptions, listed


@listed(program="coloring:Coloring", tags=("GCO",))
def coloring(graph: GraphLike, *, seed: int = 0, **options: Unpack[ProgramOptions]) -> None:
    """A color per node, different from the neighbors', few colors in all.

    A node picks the smallest free color when all neighbors before it have theirs: first
    those with most neighbors (by the logarithm), then by lot. Direction and loops do not
    count.

    Args:
        graph: An open graph, its path, or edges in memory.
        seed: Chooses the lots.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: colors 0, 1, ..., at most one more than the largest degree. ``result``:
        their number.

    Complexity:
        O(N + E) work beside a pass over the nodes per superstep.

    References:
        Jones, Plassmann, "A parallel graph coloring heuristic", SIAM J. Sci. Comput. 14,
        1993. Hasenplaugh et al., "Ordering heuristics for parallel graph coloring", SPAA
        2014.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2], [1, 2, 0], num_nodes=3)
        >>> gs.algorithms.coloring(graph).result
        3
    """


@listed(program="mis:IndependentSet", tags=("MIS",))
def mis(graph: GraphLike, *, seed: int = 0, **options: Unpack[ProgramOptions]) -> None:
    """A maximal independent set: no two neighbors in it, every other node has one in it.

    In every round a node joins if its lot is the smallest among undecided neighbors. Loops
    do not count.

    Args:
        graph: An open graph, its path, or edges in memory.
        seed: Chooses the lots.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: whether the node is in the set. ``result``: its size.

    Complexity:
        O(log N) rounds expected, O(N + E) per round.

    References:
        Luby, "A simple parallel algorithm for the maximal independent set problem", SIAM J.
        Comput. 15, 1986.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2], [1, 2, 0], num_nodes=3)
        >>> gs.algorithms.mis(graph).result
        1
    """


@listed(program="matching:Matching", tags=("AGM",))
def matching(graph: GraphLike, *, seed: int = 0, **options: Unpack[ProgramOptions]) -> None:
    """Pairs of neighbors, heavy edges first, no node in two of them.

    The matching is maximal: its weight is at least half of the largest possible, and so is
    its number of pairs half of the largest possible number. Direction does not count; loops
    are never matched.

    Args:
        graph: An open graph, its path, or edges in memory; the column ``weight`` holds the
            weights of edges, not negative; 1 where there is none.
        seed: Orders edges of equal weight.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the partner's id, null for those left alone. ``result``: the number of
        pairs.

    Raises:
        InvalidGraphError: a negative weight.

    Complexity:
        O(log E) rounds of two supersteps expected where weights are equal, O(E) messages
        each; as many rounds as the longest path of rising weights in the worst case.

    References:
        Preis, "Linear time 1/2-approximation algorithm for maximum weighted matching in
        general graphs", STACS 1999. Hoepman, "Simple distributed weighted matchings", 2004.
        Birn, Osipov, Sanders, Schulz, Sitchinava, "Efficient parallel and external
        matching", Euro-Par 2013.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges(
        ...     [0, 1, 2], [1, 2, 3], num_nodes=4, weight=[1.0, 5.0, 1.0]
        ... )
        >>> gs.algorithms.matching(graph).table["value"].to_pylist()
        [None, 2, 1, None]
    """


@listed(program="belief_propagation:BeliefPropagation")
def belief_propagation(
    graph: GraphLike,
    *,
    coupling: float = 1.0,
    field: float = 0.0,
    evidence: Mapping[Any, float] | None = None,
    damping: float = 0.0,
    tolerance: float = 1e-9,
    iterations: int | None = None,
    **options: Unpack[ProgramOptions],
) -> None:
    """Marginals of a pairwise model of two-valued nodes (Ising model, Markov field).

    A node is up (+1) or down (-1); a configuration x has a probability proportional to
    exp(sum of h_i x_i over nodes + sum of J_ij x_i x_j over edges). Exact on trees after as
    many supersteps as the diameter; with cycles an approximation, which may not converge
    for strong couplings. Direction does not count and loops do nothing.

    Args:
        graph: An open graph, its path, or edges in memory; J is ``coupling`` times the
            column ``weight``, 1 where there is none.
        coupling: How strongly neighbors pull each other to their side.
        field: h, the same for every node.
        evidence: h of single nodes, by id.
        damping: Share of the last message that the next one keeps, for convergence.
        tolerance: Stop when no message moved by more than this.
        iterations: Run exactly that many supersteps instead.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the probability of being up, float64.

    Raises:
        ConfigError: a parameter out of range.
        UnknownNameError: a node of the evidence is not in the graph.

    Complexity:
        O(E) messages per superstep, 16 bytes per edge and direction.

    References:
        Pearl, "Probabilistic reasoning in intelligent systems", 1988, chapter 4. Mezard,
        Montanari, "Information, physics, and computation", 2009, section 14.2.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0], [1], num_nodes=2)
        >>> done = gs.algorithms.belief_propagation(graph, evidence={0: 1.0})
        >>> done.table["value"].to_numpy().round(3).tolist()
        [0.881, 0.79]
    """
