"""Triangles of every node, and LDBC's local clustering.

Kernels: kernels/cpu/algorithms/triangles.py.
"""

import time
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Allocate, Csr, balanced_chunks
from graphsys.graph.simple_rows import MergedCsr
from graphsys.graph.slices import WHOLE, Slice
from graphsys.kernels.cpu.algorithms import triangles as kernels
from graphsys.kernels.cpu.bits import empty_bits

Counts = npt.NDArray[np.int64]
_BY_DEGREE = "the edges of the simple graph are put in the order of degrees"
RANGE_ENTRIES = 1 << 26
"""Entries of a range that :func:`kernels.fill_plus` writes at a time, about."""


def _triangles(facts: Facts) -> Need:
    per_node = max(20 + 8 * facts.threads, 40)
    return Need(
        rows=facts.both,
        in_place=True,
        bytes=per_node * facts.nodes,
        entries=4 * facts.simple_entries,
        copies=_BY_DEGREE,
    )


def _lcc(facts: Facts) -> Need:
    found = _triangles(facts)
    extra = 8 * facts.nodes
    if not facts.topology.is_directed:
        return replace(found, rows=(), simple=True, bytes=found.bytes + extra)
    extra += facts.threads * facts.nodes
    return Need(
        rows=facts.both,
        in_place=True,
        simple=True,
        bytes=found.bytes + extra,
        entries=found.entries + 2 * facts.simple_entries,
        copies=_BY_DEGREE,
    )


@listed(
    needs=_triangles, answers=True, shown="largest", follower="neighborhoods:triangle_count"
)
def triangle_count(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
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
    topology = Topology.of(graph)
    began = time.perf_counter()
    with ThreadTeam(options.get("num_threads")) as team:
        counts, total = count(topology.simple_rows(), team, topology.allocate)
    return Result(
        source=lambda: topology.table({"value": counts}),
        algorithm="triangle_count",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=total,
    )


@listed(needs=_lcc, shown="largest")
def lcc(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
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
    topology = Topology.of(graph)
    began = time.perf_counter()
    simple = topology.simple_in_place()
    with ThreadTeam(options.get("num_threads")) as team:
        arcs = arcs_between(topology, team)
    shares = shares_of(arcs, simple.degrees())
    return Result(
        source=lambda: topology.table({"value": shares}),
        algorithm="lcc",
        supersteps=1,
        seconds=time.perf_counter() - began,
    )


def arcs_between(topology: Topology, team: ThreadTeam, share: Slice = WHOLE) -> Counts:
    """Count the arcs between the neighbors of every node ``[N]``.

    Args:
        topology: The graph.
        team: Threads.
        share: The part to count; those of all processes add up to the counts.
    """
    if topology.is_directed:
        return _opposite_arcs(topology, topology.simple(), team, share)
    rows = MergedCsr.of(topology.simple_in_place())
    return 2 * count(rows, team, topology.allocate, share)[0]


def shares_of(arcs: Counts, degrees: Counts) -> npt.NDArray[np.float64]:
    """Return the share of pairs of neighbors that an arc joins, float64 ``[K]``.

    Args:
        arcs: Of :func:`arcs_between`, for some nodes ``[K]``.
        degrees: Their distinct neighbors ``[K]``.
    """
    wide = degrees.astype(np.float64)
    pairs = wide * (wide - 1)
    shares: npt.NDArray[np.float64] = np.divide(
        arcs, pairs, out=np.zeros(len(arcs)), where=pairs > 0
    )
    return shares


def count(
    rows: MergedCsr,
    team: ThreadTeam,
    allocate: Allocate = np.empty,
    share: Slice = WHOLE,
) -> tuple[Counts, int]:
    """Count the triangles of every node ``[N]`` and of the graph.

    Args:
        rows: The simple undirected graph.
        team: Threads.
        allocate: Where arrays of all entries come from.
        share: The part to count; those of all processes add up to the counts.
    """
    # edges point towards larger degrees: a triangle is found once, and no row that is
    # searched has more than sqrt(2 E) entries
    oriented = _orient(rows, np.empty(0, dtype=np.uint8), team, allocate)
    threads, num_nodes = team.num_threads, rows.out.num_nodes
    counts = np.zeros((threads, num_nodes), dtype=np.int64)
    marks = np.zeros((threads, len(empty_bits(num_nodes))), dtype=np.uint64)
    total = 0
    for chunks in share.of(oriented.chunks()):
        totals = team.run(
            kernels.count_triangles,
            oriented.plus_indptr,
            oriented.plus,
            oriented.minus_indptr,
            oriented.minus,
            chunks,
            _counter(),
            marks,
            counts,
        )
        total += int(np.sum(totals))
    return counts.sum(axis=0)[oriented.label], total


@dataclass(frozen=True, slots=True, kw_only=True)
class _Oriented:
    """A simple graph relabeled by descending degree, edges split by direction.

    Attributes:
        label: Label of every node ``[N]``.
        plus_indptr: Row offsets ``[N + 1]`` of the smaller neighbors.
        plus: Smaller neighbors of every label, rows sorted.
        plus_values: What belongs to these entries, or nothing.
        minus_indptr: Row offsets ``[N + 1]`` of the larger neighbors.
        minus: Larger neighbors of every label.
        minus_values: What belongs to these entries, or nothing.
    """

    label: npt.NDArray[Any]
    plus_indptr: Counts
    plus: npt.NDArray[Any]
    plus_values: npt.NDArray[Any]
    minus_indptr: Counts
    minus: npt.NDArray[Any]
    minus_values: npt.NDArray[Any]

    def chunks(self) -> npt.NDArray[np.int64]:
        """Cut the labels by the edges towards larger ones, which make the work."""
        return balanced_chunks(self.minus_indptr, 1024, align=1)


# long: one pass with what its loop shares
def _orient(
    rows: MergedCsr, values: npt.NDArray[Any], team: ThreadTeam, allocate: Allocate
) -> _Oriented:
    """Relabel and split a graph whose entries have values, or none."""
    degrees, num_nodes = rows.degrees(team.num_threads), rows.out.num_nodes
    label = np.empty(num_nodes, dtype=rows.out.indices.dtype)
    # The inverse of `label`: rows are written in order of labels, but read by node.
    node = np.empty_like(label)
    starts = np.zeros(int(degrees.max(initial=0)) + 2, dtype=np.int64)
    kernels.order_by_degree(degrees, starts, label, node)
    arrays = rows.arrays
    plus_indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    minus_indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    team.run(
        kernels.count_larger,
        *arrays,
        label,
        rows.out.chunks(),
        _counter(),
        degrees,
        plus_indptr,
        minus_indptr,
    )
    del degrees
    np.cumsum(plus_indptr, out=plus_indptr)
    np.cumsum(minus_indptr, out=minus_indptr)
    minus = allocate(int(minus_indptr[-1]), label.dtype)
    minus_values = allocate(len(minus) if len(values) else 0, values.dtype)
    # Larger neighbors first, in any order: turning them by label writes the smaller ones
    # sorted, which spares a sort of every row.
    chunks = balanced_chunks(plus_indptr + minus_indptr, align=1)
    team.run(
        kernels.fill_minus,
        *arrays,
        label,
        node,
        chunks,
        _counter(),
        minus_indptr,
        minus,
        values,
        minus_values,
    )
    del node
    plus = allocate(len(minus), minus.dtype)
    plus_values = allocate(len(minus_values), minus_values.dtype)
    # Each range reads all entries, so no more of them than threads or caches ask for.
    num_ranges = max(team.num_threads, len(minus) // RANGE_ENTRIES)
    ranges = balanced_chunks(plus_indptr, num_ranges, align=1)
    team.run(
        kernels.fill_plus,
        minus_indptr,
        minus,
        ranges,
        _counter(),
        plus_indptr.copy(),
        plus,
        minus_values,
        plus_values,
    )
    return _Oriented(
        label=label,
        plus_indptr=plus_indptr,
        plus=plus,
        plus_values=plus_values,
        minus_indptr=minus_indptr,
        minus=minus,
        minus_values=minus_values,
    )


def _opposite_arcs(
    topology: Topology, simple: Csr, team: ThreadTeam, share: Slice
) -> Counts:
    """Count the arcs between the neighbors of every node of a directed graph ``[N]``."""
    out, into = topology.rows("out"), topology.rows("in")
    arcs = topology.allocate(simple.num_edges, np.uint8)
    team.run(
        kernels.count_arcs,
        simple.indptr,
        simple.indices,
        out.begins,
        out.ends,
        out.indices,
        into.begins,
        into.ends,
        into.indices,
        balanced_chunks(simple.indptr),
        _counter(),
        arcs,
    )
    oriented = _orient(MergedCsr.of(simple), arcs, team, topology.allocate)
    threads, num_nodes = team.num_threads, simple.num_nodes
    counts = np.zeros((threads, num_nodes), dtype=np.int64)
    marks = np.zeros((threads, num_nodes), dtype=np.uint8)
    for chunks in share.of(oriented.chunks()):
        team.run(
            kernels.count_opposite_arcs,
            oriented.plus_indptr,
            oriented.plus,
            oriented.plus_values,
            oriented.minus_indptr,
            oriented.minus,
            oriented.minus_values,
            chunks,
            _counter(),
            marks,
            counts,
        )
    arcs_between: Counts = counts.sum(axis=0)[oriented.label]
    return arcs_between


def _counter() -> npt.NDArray[np.int64]:
    return np.zeros(1, dtype=np.int64)
