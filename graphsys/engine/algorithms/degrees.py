"""Degrees of every node, and how the degrees of neighbors go together."""

import itertools
import time
from typing import Unpack

import numpy as np
import numpy.typing as npt

from graphsys.engine.algorithms.algorithm import (
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.memory_plan import Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr

_AT_A_TIME = 1 << 20
"""Entries whose values are gathered at a time."""


def _degree_statistics(facts: Facts) -> Need:
    return Need(bytes=(28 if facts.topology.is_directed else 20) * facts.nodes)


def _degree_assortativity(facts: Facts) -> Need:
    per_node = 56 if facts.topology.is_directed else 48
    return Need(rows=("out",), in_place=True, bytes=per_node * facts.nodes + (24 << 20))


@listed(needs=_degree_statistics, answers=True, shown="largest")
def degree_statistics(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
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
    topology = Topology.of(graph)
    began = time.perf_counter()
    columns = {"out_degree": topology.out_degree, "in_degree": topology.in_degree}
    mean = float(topology.out_degree.mean()) if topology.num_nodes else 0.0
    return Result(
        source=lambda: topology.table(columns),
        algorithm="degree_statistics",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=mean,
    )


@listed(needs=_degree_assortativity, answers=True)
def degree_assortativity(graph: GraphLike, **options: Unpack[NativeOptions]) -> Result:
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
    topology = Topology.of(graph)
    began = time.perf_counter()
    out = topology.rows("out")
    coefficient = _correlation(out, topology)
    return Result(
        source=lambda: topology.table({}).slice(0, 0),
        algorithm="degree_assortativity",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=coefficient,
    )


def _correlation(out: Csr, topology: Topology) -> float:
    if not out.num_edges:
        return float("nan")
    out_degree = topology.out_degree.astype(np.float64)
    in_degree = topology.in_degree.astype(np.float64)
    # sums over edges: those over sources need only the degrees
    src_mean = float(out_degree @ out_degree) / out.num_edges
    dst_mean = float(in_degree @ in_degree) / out.num_edges
    src, dst = out_degree - src_mean, in_degree - dst_mean
    src_spread = float(out_degree @ src**2)
    dst_spread = float(in_degree @ dst**2)
    if src_spread <= 0.0 or dst_spread <= 0.0:
        return float("nan")
    together = float(src @ _sums_over_rows(out, dst))
    return together / float(np.sqrt(src_spread * dst_spread))


def _sums_over_rows(rows: Csr, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sum the values of every node's neighbors ``[N]``, some megabytes at a time."""
    sums = np.zeros(rows.num_nodes)
    cuts = rows.chunks(1 + rows.num_edges // _AT_A_TIME, align=1)
    for low, high in itertools.pairwise(np.union1d(cuts, rows.runs()).tolist()):
        begins = rows.begins[low:high].astype(np.int64)
        filled = np.flatnonzero(rows.ends[low:high] != begins)
        if len(filled):
            found = values[rows.indices[begins[0] : int(rows.ends[high - 1])]]
            sums[low + filled] = np.add.reduceat(found, begins[filled] - begins[0])
    return sums
