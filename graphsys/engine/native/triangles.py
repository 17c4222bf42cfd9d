"""Triangles of every node, and LDBC's local clustering.

Kernels: kernels/cpu/algorithms/triangles.py.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import ThreadTeam
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Allocate, Csr
from graphsys.graph.simple_rows import SimpleRows
from graphsys.graph.slices import WHOLE, Slice
from graphsys.kernels.cpu.algorithms import triangles as kernels
from graphsys.kernels.cpu.bits import empty_bits
from graphsys.kernels.cpu.rows.row_blocks import balanced_chunks

Counts = npt.NDArray[np.int64]
RANGE_ENTRIES = 1 << 26
"""Entries of a range that :func:`kernels.fill_plus` writes at a time, about."""


def triangle_count(topology: Topology, *, num_threads: int | None = None) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.triangle_count` tells of."""
    began = time.perf_counter()
    with ThreadTeam(num_threads) as team:
        counts, total = count(topology.simple_rows(), team, topology.allocate)
    return Result(
        source=lambda: topology.table({"value": counts}),
        algorithm="triangle_count",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=total,
    )


def lcc(topology: Topology, *, num_threads: int | None = None) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.lcc` tells of."""
    began = time.perf_counter()
    simple = topology.simple_in_place()
    with ThreadTeam(num_threads) as team:
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
    rows = SimpleRows.of(topology.simple_in_place())
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
    rows: SimpleRows,
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
    rows: SimpleRows, values: npt.NDArray[Any], team: ThreadTeam, allocate: Allocate
) -> _Oriented:
    """Relabel and split a graph whose entries have values, or none."""
    degrees, num_nodes = rows.degrees(team.num_threads), rows.out.num_nodes
    label = np.empty(num_nodes, dtype=rows.out.indices.dtype)
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
    oriented = _orient(SimpleRows.of(simple), arcs, team, topology.allocate)
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
