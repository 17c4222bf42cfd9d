"""Closeness, exactly (a search per node), and the diameter, from below (a few searches)."""

import time
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InvalidGraphError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    Example,
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import require_count
from graphsys.engine.algorithms.shortest_paths import weighted_csr
from graphsys.engine.algorithms.traversal import search
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms.distances import sum_distances, sum_lengths
from graphsys.kernels.cpu.algorithms.path_heap import UNSEEN, LengthSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceSums:
    """What the searches from some nodes found, in the order of the nodes ``[S]``.

    Attributes:
        reached: How many nodes, the source too.
        total: Sum of the distances, int64 of hops, float64 of lengths.
        farthest: The largest distance, of the same type.
        harmonic: Sum of one over the distances above 0.
    """

    reached: npt.NDArray[np.int64]
    total: npt.NDArray[Any]
    farthest: npt.NDArray[Any]
    harmonic: npt.NDArray[np.float64]


def distance_sums(
    rows: Csr, sources: npt.NDArray[Any], num_threads: int | None = None
) -> DistanceSums:
    """Search along rows from every source (by number).

    Complexity:
        O(S (N + E)) time; 12 bytes per node and thread.
    """
    sources = np.asarray(sources, dtype=np.int64)
    reached, total, farthest = (np.zeros(len(sources), dtype=np.int64) for _ in range(3))
    harmonic = np.zeros(len(sources), dtype=np.float64)
    with ThreadTeam(num_threads) as team:
        shape = team.num_threads, rows.num_nodes
        team.run(
            sum_distances,
            rows.begins,
            rows.ends,
            rows.indices,
            sources,
            np.zeros(1, dtype=np.int64),
            np.full(shape, -1, dtype=np.int64),
            np.empty(shape, dtype=rows.indices.dtype),
            reached,
            total,
            farthest,
            harmonic,
        )
    return DistanceSums(reached=reached, total=total, farthest=farthest, harmonic=harmonic)


def length_search(num_threads: int, num_nodes: int) -> LengthSearch:
    """Return what threads need for searches by length, before the first."""
    shape = num_threads, num_nodes
    return LengthSearch(
        distance=np.empty(shape),
        edges=np.zeros(shape, dtype=np.int64),
        place=np.full(shape, UNSEEN, dtype=np.int64),
        nodes=np.empty(shape, dtype=np.int64),
        order=np.empty(shape, dtype=np.int64),
    )


def length_sums(
    rows: Csr, sources: npt.NDArray[Any], num_threads: int | None = None
) -> DistanceSums:
    """Search from every source (by number) along rows whose column ``weight`` has lengths.

    Complexity:
        O(S (N + E) log N) time; 40 bytes per node and thread.

    Raises:
        InvalidGraphError: Lengths that are negative, not finite, or add up beyond float64.
    """
    for _, piece in rows.pieces("weight"):
        wrong = ~((piece >= 0) & (piece < np.inf))
        if wrong.any():
            raise InvalidGraphError(
                f"lengths of edges must be 0 or more and finite, but "
                f"{np.count_nonzero(wrong)} weights are not, the first {piece[wrong][0]}; "
                "change them, or leave weighted=False to count edges"
            )
    sources = np.asarray(sources, dtype=np.int64)
    reached = np.zeros(len(sources), dtype=np.int64)
    total, farthest, harmonic = (np.zeros(len(sources)) for _ in range(3))
    with ThreadTeam(num_threads) as team:
        team.run(
            sum_lengths,
            weighted_csr(rows),
            sources,
            np.zeros(1, dtype=np.int64),
            length_search(team.num_threads, rows.num_nodes),
            reached,
            total,
            farthest,
            harmonic,
        )
    if np.isinf(total).any():
        raise InvalidGraphError(
            "the distances from a node add up to more than float64 holds; scale the "
            "weights down, or leave weighted=False to count edges"
        )
    return DistanceSums(reached=reached, total=total, farthest=farthest, harmonic=harmonic)


def _all_distances(facts: Facts) -> Need:
    if facts.options.get("weighted") and facts.topology.has_weight:
        return Need(
            rows=("in",),
            in_place=True,
            columns=("weight",),
            bytes=(40 * facts.threads + 64) * facts.nodes,
            variant="weighted",
        )
    per_node = 12 * facts.threads + 64
    return Need(rows=("in",), in_place=True, bytes=per_node * facts.nodes)


def _diameter(facts: Facts) -> Need:
    return Need(simple=True, bytes=52 * facts.nodes, kernels="traversal")


@listed(needs=_all_distances, shown="largest", example=Example(largest=12))
def closeness(
    graph: GraphLike, *, weighted: bool = False, **options: Unpack[NativeOptions]
) -> Result:
    """How near every node is to those that reach it: 1 / the mean distance to it.

    Multiplied by the share of the other nodes that reach it (Wasserman and Faust), so that
    small components do not come out on top. 0 where no other node reaches it.

    Args:
        graph: An open graph, its path, or edges in memory; distances are hops along the
            edges' direction.
        weighted: Take the column ``weight`` for the lengths of edges; else each is a hop.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: the closeness, float64, of hops in 0 to 1.

    Raises:
        InvalidGraphError: lengths that are negative, not finite, or add up beyond float64.

    Complexity:
        O(N (N + E)); weighted O(N (N + E) log N), and 40 bytes a node and thread.

    References:
        Wasserman, Faust, "Social network analysis", 1994, section 5.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [1, 2], num_nodes=3, directed=False)
        >>> gs.algorithms.closeness(graph).table["value"].to_numpy().round(3).tolist()
        [0.667, 1.0, 0.667]
    """
    topology = Topology.of(graph)
    began = time.perf_counter()
    sums = _from_all(topology, options.get("num_threads"), weighted=weighted)
    others = sums.reached - 1
    share = others / max(topology.num_nodes - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(sums.total > 0, others / sums.total * share, 0.0)
    return Result(
        source=lambda: topology.table({"value": values}),
        algorithm="closeness",
        supersteps=topology.num_nodes,
        seconds=time.perf_counter() - began,
    )


@listed(needs=_all_distances, shown="largest", example=Example(largest=12))
def harmonic(
    graph: GraphLike, *, weighted: bool = False, **options: Unpack[NativeOptions]
) -> Result:
    """Harmonic centrality: the sum of 1 / distance over the nodes that reach a node.

    Args:
        graph: An open graph, its path, or edges in memory; distances are hops along the
            edges' direction.
        weighted: Take the column ``weight`` for the lengths of edges; else each is a hop.
            Nodes at distance 0 do not count.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        ``value``: the sum, float64.

    Raises:
        InvalidGraphError: lengths that are negative, not finite, or add up beyond float64.

    Complexity:
        O(N (N + E)); weighted O(N (N + E) log N), and 40 bytes a node and thread.

    References:
        Boldi, Vigna, "Axioms for centrality", Internet Mathematics 10, 2014.

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1], [1, 2], num_nodes=3)
        >>> gs.algorithms.harmonic(graph).table["value"].to_pylist()
        [0.0, 1.0, 1.5]
    """
    topology = Topology.of(graph)
    began = time.perf_counter()
    sums = _from_all(topology, options.get("num_threads"), weighted=weighted)
    return Result(
        source=lambda: topology.table({"value": sums.harmonic}),
        algorithm="harmonic",
        supersteps=topology.num_nodes,
        seconds=time.perf_counter() - began,
    )


@listed(needs=_diameter, answers=True)
def diameter(
    graph: GraphLike, *, sweeps: int = 4, **options: Unpack[NativeOptions]
) -> Result:
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
    topology = Topology.of(graph)
    began = time.perf_counter()
    require_count("sweeps", sweeps)
    rows = topology.simple_in_place()
    longest = 0
    distance = np.ma.masked_array(np.zeros(0, dtype=np.int64), mask=np.zeros(0, dtype=bool))
    if rows.num_nodes:
        degree = rows.degrees()
        start = _first(topology, degree == degree.max())
        with ThreadTeam(options.get("num_threads")) as team:
            for _ in range(sweeps):
                # the farthest node of a search is a good place for the next one to begin
                levels = search(rows, rows, start, team)
                is_reached = levels.distance > 0
                is_reached[start] = True
                distance = np.ma.masked_array(levels.distance, mask=~is_reached)
                farthest = int(levels.distance.max())
                longest = max(longest, farthest)
                start = _first(topology, is_reached & (levels.distance == farthest))
    return Result(
        source=lambda: topology.table({"value": distance.astype(np.int64)}),
        algorithm="diameter",
        supersteps=sweeps,
        seconds=time.perf_counter() - began,
        result=longest,
    )


def _from_all(
    topology: Topology, num_threads: int | None, *, weighted: bool
) -> DistanceSums:
    sources = np.arange(topology.num_nodes, dtype=np.int64)
    if weighted and topology.has_weight:
        return length_sums(topology.rows("in", ("weight",)), sources, num_threads)
    return distance_sums(topology.rows("in"), sources, num_threads)


def _first(topology: Topology, is_chosen: npt.NDArray[np.bool_]) -> int:
    """Return the chosen node with the smallest id."""
    chosen = np.flatnonzero(is_chosen)
    rank = topology.rank
    return int(chosen[0] if rank is None else chosen[np.argmin(rank[chosen])])
