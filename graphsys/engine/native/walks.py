"""Random walks: uniform, weighted, and node2vec."""

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.threads import ThreadTeam
from graphsys.engine.native.arguments import (
    refuse_weight,
    require,
    require_count,
    rows_by_rank,
    weight_of,
)
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.sampling.walks import accumulate_rows, walk


def random_walks(
    topology: Topology,
    *,
    length: int = 80,
    walks_per_node: int = 1,
    starts: Iterable[Any] | None = None,
    p: float = 1.0,
    q: float = 1.0,
    weighted: bool = False,
    seed: int = 0,
    num_threads: int | None = None,
) -> Result:
    """Compute what :func:`graphsys.engine.algorithms.random_walks` tells of."""
    began = time.perf_counter()
    require_count("length", length, least=0)
    require_count("walks_per_node", walks_per_node)
    require_count("seed", seed, least=0)
    require(0 < p < np.inf, "p", p, "a number > 0")
    require(0 < q < np.inf, "q", q, "a number > 0")
    csr = rows_by_rank(topology, topology.csr("out"))
    first = _start_ranks(topology, starts)
    num_walks = len(first) * walks_per_node
    nodes = np.empty((num_walks, length + 1), dtype=csr.indices.dtype)
    lengths = np.zeros(num_walks, dtype=np.int64)
    with ThreadTeam(num_threads) as team:
        team.run(
            walk,
            csr.indptr,
            csr.indices,
            _running_weights(csr) if weighted else np.empty(0, dtype=np.float64),
            first,
            walks_per_node,
            1.0 / p,
            1.0 / q,
            np.uint64(seed % 2**64),
            np.zeros(1, dtype=np.int64),
            nodes,
            lengths,
        )
    return Result(
        source=_walks_table(topology, first, walks_per_node, nodes, lengths),
        algorithm="random_walks",
        supersteps=length,
        seconds=time.perf_counter() - began,
    )


def _start_ranks(topology: Topology, starts: Iterable[Any] | None) -> npt.NDArray[Any]:
    if starts is None:
        return np.arange(topology.num_nodes, dtype=np.int64)
    numbers = np.array([topology.number(node) for node in starts], dtype=np.int64)
    rank = topology.rank
    return numbers if rank is None else rank[numbers].astype(np.int64)


def _running_weights(csr: Csr) -> npt.NDArray[np.float64]:
    weight = weight_of(csr)
    sums = np.empty(csr.num_edges, dtype=np.float64)
    refuse_weight(csr.indptr[:-1], weight, accumulate_rows(csr.indptr, weight, sums))
    return sums


def _walks_table(
    topology: Topology,
    first: npt.NDArray[Any],
    walks_per_node: int,
    nodes: npt.NDArray[Any],
    lengths: npt.NDArray[np.int64],
) -> pa.Table:
    visited = nodes[np.arange(nodes.shape[1]) < lengths[:, None]]
    ids = topology.numbers.ids_at_ranks(visited).combine_chunks()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return pa.table(
        {
            "id": topology.numbers.ids_at_ranks(np.repeat(first, walks_per_node)),
            "walk": np.tile(np.arange(walks_per_node, dtype=np.int64), len(first)),
            "nodes": pa.LargeListArray.from_arrays(offsets, ids),
        }
    )
