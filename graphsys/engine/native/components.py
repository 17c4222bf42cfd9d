"""Weakly connected components by Afforest; see kernels/cpu/algorithms/components.py."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import ThreadTeam
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms import components as kernels

NUM_PROBES = 1024


def wcc(topology: Topology, *, num_threads: int | None = None) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.wcc` tells of."""
    began = time.perf_counter()
    with ThreadTeam(num_threads) as team:
        into = topology.rows("in") if topology.is_directed else None
        root, num_components = find_roots(topology.rows("out"), into, team)
        smallest = smallest_of(topology, root, team)
    return Result(
        source=lambda: topology.table({"value": topology.ids(smallest)}),
        algorithm="wcc",
        supersteps=3,
        seconds=time.perf_counter() - began,
        result=num_components,
    )


def find_roots(
    out: Csr, into: Csr | None, team: ThreadTeam
) -> tuple[npt.NDArray[Any], int]:
    """Return the smallest number of every node's component ``[N]``, and their number.

    Args:
        out: Rows of out-neighbors.
        into: Rows of in-neighbors; None if the rows are symmetric.
        team: Threads.
    """
    parent = np.empty(out.num_nodes, dtype=out.indices.dtype)
    second = np.empty_like(parent)
    even = _even_chunks(out.num_nodes)
    team.run(
        kernels.hook_first,
        out.begins,
        out.ends,
        out.indices,
        even,
        _counter(),
        parent,
        second,
    )
    team.run(kernels.compress, even, _counter(), parent)
    team.run(kernels.link_second, even, _counter(), parent, second)
    team.run(kernels.compress, even, _counter(), parent)
    giant = _most_frequent(parent)
    for rows in (out, into):
        if rows is not None:
            bounds = rows.chunks()
            team.run(
                kernels.link_rest,
                rows.begins,
                rows.ends,
                rows.indices,
                bounds,
                _counter(),
                parent,
                giant,
            )
    counts = team.run(kernels.compress, even, _counter(), parent)
    return parent, int(np.sum(counts))


def _most_frequent(parent: npt.NDArray[Any]) -> int:
    """Return the root that most of some nodes have, -1 without nodes.

    The nodes are every k-th one. Another root would cost time, not change the result.
    """
    if not len(parent):
        return -1
    roots, counts = np.unique(
        parent[:: max(1, len(parent) // NUM_PROBES)], return_counts=True
    )
    return int(roots[np.argmax(counts)])


def smallest_of(
    topology: Topology, root: npt.NDArray[Any], team: ThreadTeam
) -> npt.NDArray[Any]:
    """Return the node with the smallest id of every node's component ``[N]``."""
    rank, by_rank = topology.rank, topology.by_rank
    if rank is None or by_rank is None:
        return root
    least = rank.copy()
    even = _even_chunks(len(root))
    team.run(kernels.least_ranks, even, _counter(), root, rank, least)
    chosen: npt.NDArray[Any] = by_rank[least[root]]
    return chosen


def _even_chunks(num_nodes: int) -> npt.NDArray[np.int64]:
    return np.unique(np.linspace(0, num_nodes, 65).astype(np.int64))


def _counter() -> npt.NDArray[np.int64]:
    return np.zeros(1, dtype=np.int64)
