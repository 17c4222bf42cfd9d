"""Degrees of every node, and how the degrees of neighbors go together."""

import itertools
import time

import numpy as np
import numpy.typing as npt

from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr

_AT_A_TIME = 1 << 20
"""Entries whose values are gathered at a time."""


def degree_statistics(topology: Topology) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.degree_statistics` tells of."""
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


def degree_assortativity(topology: Topology) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.degree_assortativity` tells of."""
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
