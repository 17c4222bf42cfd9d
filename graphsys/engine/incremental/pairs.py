"""The simple graph without the pairs of neighbors that came, and the pairs that changed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.engine.last_result import LastResult
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.incremental import pairs as kernels
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
    kernels.count_entries(*out.arrays, low, high, copies)
    if topology.is_directed:
        kernels.count_entries(*out.arrays, high, low, copies)
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
        kernels.set_aside(simple.indptr, indices, src[order], dst[order], ends)
    rows = CsrArrays(simple.begins, ends, indices)
    return CommonGraph(rows=rows, came=came, went=went)


def _keys(src: Numbers, dst: Numbers, base: int) -> Numbers:
    """Return a number for every pair of different nodes; direction does not count."""
    proper = src != dst
    src, dst = src[proper], dst[proper]
    keys: Numbers = np.minimum(src, dst) * base + np.maximum(src, dst)
    return keys
