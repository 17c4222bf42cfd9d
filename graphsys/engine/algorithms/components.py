"""Components and cores."""

from typing import Unpack

from graphsys.engine.algorithms.algorithm import GraphLike, ProgramOptions, listed


@listed(native="components:wcc", program="wcc:WeakComponents", answers=True, tags=("CCL",))
def wcc(graph: GraphLike, **options: Unpack[ProgramOptions]) -> None:
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


@listed(native="strong_components:scc", program="scc:StrongComponents", answers=True)
def scc(graph: GraphLike, **options: Unpack[ProgramOptions]) -> None:
    """Strongly connected components: which nodes reach each other.

    Loops and repeated edges change nothing.

    Args:
        graph: An open graph, its path, or edges in memory.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: the smallest id of the node's component. ``result``: the number of
        components.

    Complexity:
        O(N + E) time in one thread, 17 bytes a node besides the graph. A round of the
        vertex program takes as many supersteps as its longest paths and O(E) messages
        each; it has few rounds on graphs with a giant component, up to the number of
        components on adversarial ones.

    References:
        Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing
        1, 1972. Pearce, "A space-efficient algorithm for finding strongly connected
        components", Information Processing Letters 116, 2016. The program: Orzan, "On
        distributed verification and verified distribution", 2004, chapter 6.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 1], [1, 0, 2], num_nodes=3)
        >>> gs.algorithms.scc(graph).table["value"].to_pylist()
        [0, 0, 2]
    """


@listed(native="k_core:k_core", program="k_core:KCore", answers=True, shown="largest")
def k_core(graph: GraphLike, **options: Unpack[ProgramOptions]) -> None:
    """Core numbers: the largest k such that the node is in the k-core.

    The k-core is the largest subgraph in which every node has at least k neighbors; it
    consists of the nodes whose value is at least k.

    Args:
        graph: An open graph, its path, or edges in memory; direction, loops and
            repetitions do not count.
        options: How it is run: ``memory``, ``num_threads`` and the options of ``gs.run``.

    Returns:
        ``value``: core numbers, int64. ``result``: the largest (the degeneracy).

    Complexity:
        O(N + E) time, O(N) memory per thread besides the simple graph.

    References:
        Seidman, "Network structure and minimum degree", Social Networks 5, 1983. Matula,
        Beck, "Smallest-last ordering and clustering and graph coloring algorithms", JACM
        30, 1983. Kabir, Madduri, "Parallel k-core decomposition on multicore platforms",
        2017.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2, 2], [1, 2, 0, 3], num_nodes=4)
        >>> gs.algorithms.k_core(graph).table["value"].to_pylist()
        [2, 2, 2, 1]
    """
