"""Triangles and core numbers from the last ones, by the pairs that came and went.

Kernels: kernels/cpu/incremental/pairs.py and cores.py. Where the changes would cost
more than counting everything, everything is counted.
"""

import time
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.engine import algorithms
from graphsys.engine.last_result import LastResult
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms import k_core as core_kernels
from graphsys.kernels.cpu.algorithms import triangles as triangle_kernels
from graphsys.kernels.cpu.incremental import cores as kernels
from graphsys.kernels.cpu.incremental import pairs as pair_kernels
from graphsys.kernels.cpu.incremental.pairs import count_closed
from graphsys.kernels.cpu.rows.csr import CsrArrays

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonGraph:
    """What the simple graphs of before and now have in common, and what they have not.

    Attributes:
        rows: The rows of the common graph, with gaps where pairs came.
        came: Pairs of neighbors that came: the smaller nodes ``[K]`` and the larger.
        went: Pairs that are neighbors no more ``[R]``.
    """

    rows: CsrArrays
    came: tuple[Numbers, Numbers]
    went: tuple[Numbers, Numbers]


def common_graph(topology: Topology, last: LastResult) -> CommonGraph:
    """Tell pairs that came and went from edges that came and went.

    A pair came where it is joined now and was not: neither by an edge removed since, nor
    by one that is older than the result.
    """
    simple, edges, base = topology.simple(), last.edges, topology.num_nodes
    added, times = np.unique(
        _keys(edges.added_src, edges.added_dst, base), return_counts=True
    )
    removed = distinct(_keys(edges.removed_src, edges.removed_dst, base))
    keys = np.union1d(added, removed)
    low, high = np.divmod(keys, base) if len(keys) else (keys, keys)
    copies = np.zeros(len(keys), dtype=np.int64)
    out = topology.rows("out")
    pair_kernels.count_entries(*out.arrays, low, high, copies)
    if topology.is_directed:
        pair_kernels.count_entries(*out.arrays, high, low, copies)
    is_joined = copies > 0
    copies[np.searchsorted(keys, added)] -= times
    was_joined = (copies > 0) | np.isin(keys, removed)
    is_new, is_gone = is_joined & ~was_joined, was_joined & ~is_joined
    came, went = (low[is_new], high[is_new]), (low[is_gone], high[is_gone])
    indices, ends = simple.indices, simple.indptr[1:].astype(np.int64)
    if len(came[0]):
        indices = indices.copy()
        src, dst = np.concatenate(came), np.concatenate(came[::-1])
        order = np.lexsort((dst, src))
        pair_kernels.set_aside(simple.indptr, indices, src[order], dst[order], ends)
    rows = CsrArrays(simple.begins, ends, indices)
    return CommonGraph(rows=rows, came=came, went=went)


def _keys(src: Numbers, dst: Numbers, base: int) -> Numbers:
    """Return a number for every pair of different nodes; direction does not count."""
    proper = src != dst
    src, dst = src[proper], dst[proper]
    keys: Numbers = np.minimum(src, dst) * base + np.maximum(src, dst)
    return keys


__all__ = ["core_kernels", "k_core", "triangle_count", "triangle_kernels"]

TRIANGLE_VISITS, CORE_VISITS = 4, 0.25
"""Entries visited per entry of the simple graph from which on all is computed anew: about
what counting all triangles costs, and a part of what peeling does: visits may be lost."""


def triangle_count(
    topology: Topology, *, last: LastResult, num_threads: int | None = None
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.triangle_count` tells of."""
    began = time.perf_counter()
    common = common_graph(topology, last)
    if _visits(common) > TRIANGLE_VISITS * topology.simple().num_edges:
        done = algorithms.triangle_count.native(topology, num_threads=num_threads)
        return replace(done, seconds=time.perf_counter() - began)
    counts = np.zeros(topology.num_nodes, dtype=np.int64)
    known = last.values.to_numpy()
    counts[: len(known)] = known
    count_closed(*common.rows, *common.went, -1, counts)
    count_closed(*common.rows, *common.came, 1, counts)
    return Result(
        source=lambda: topology.table({"value": counts}),
        algorithm="triangle_count",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=int(counts.sum()) // 3,
    )


def k_core(
    topology: Topology, *, last: LastResult, num_threads: int | None = None
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.k_core` tells of."""
    began = time.perf_counter()
    common = common_graph(topology, last)
    core = np.zeros(topology.num_nodes, dtype=np.int64)
    known = last.values.to_numpy()
    core[: len(known)] = known
    kernels.lower_cores(*common.rows, distinct(np.concatenate(common.went)), core)
    most = int(CORE_VISITS * topology.simple().num_edges)
    pairs = len(common.came[0])
    if kernels.raise_cores(*common.rows, *common.came, core, most) < pairs:
        done = algorithms.k_core.native(topology, num_threads=num_threads)
        return replace(done, seconds=time.perf_counter() - began)
    return Result(
        source=lambda: topology.table({"value": core}),
        algorithm="k_core",
        supersteps=1,
        seconds=time.perf_counter() - began,
        result=int(core.max(initial=0)),
    )


def _visits(common: CommonGraph) -> int:
    """Return how many entries the rows at both ends of all changed pairs have."""
    lengths = common.rows.ends - common.rows.begins.astype(np.int64)
    return sum(int(lengths[nodes].sum()) for nodes in (*common.went, *common.came))
