"""Random walks: uniform, weighted, and node2vec."""

import time
from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InvalidGraphError
from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.algorithm import (
    GraphLike,
    NativeOptions,
    listed,
)
from graphsys.engine.algorithms.arguments import (
    refuse_weight,
    require,
    require_count,
    rows_by_rank,
    weight_of,
)
from graphsys.engine.memory_plan import BY_ID, Facts, Need
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.sampling.walks import accumulate_rows, walk


def _random_walks(facts: Facts) -> Need:
    starts = facts.options.get("starts")
    first = facts.nodes if starts is None else len(list(starts))
    walks = first * int(facts.options.get("walks_per_node") or 1)
    length = facts.options.get("length")
    steps = walks * ((80 if length is None else int(length)) + 1)
    renumbering, renumbered = 0, 0
    if not facts.topology.numbers.are_ordered:
        renumbering = 20 * facts.edges + 64 * facts.nodes
        renumbered = 4 * facts.edges + 8 * facts.nodes
    running = 8 * facts.edges if facts.options.get("weighted") else 0
    most = (9 + 2 * facts.id_bytes) * steps + running + renumbered
    total = max(renumbering, most) + 48 * facts.nodes
    return Need(rows=("out",), bytes=total, copies=BY_ID)


@listed(
    needs=_random_walks,
)
def random_walks(
    graph: GraphLike,
    *,
    length: int = 80,
    walks_per_node: int = 1,
    starts: Iterable[Any] | None = None,
    p: float = 1.0,
    q: float = 1.0,
    weighted: bool = False,
    seed: int = 0,
    **options: Unpack[NativeOptions],
) -> Result:
    """Uniform, weighted or node2vec walks along out-edges.

    A step takes each out-edge with equal chance, or in proportion to its weight. With
    node2vec's ``p`` and ``q``, the chance is also multiplied by 1/p for going back to the
    last node, by 1 for nodes to which the last one has an edge, and by 1/q for others.
    Walks end early where no edge leads on. They depend on ids, edges and ``seed`` alone,
    not on partitions or threads.

    Args:
        graph: An open graph, its path, or edges in memory.
        length: Steps of a walk; it has one node more.
        walks_per_node: Walks from each start.
        starts: Ids to start from; all nodes in the order of ids by default.
        p: Return parameter.
        q: In-out parameter.
        weighted: Choose edges in proportion to ``weight`` (1 if there is none).
        seed: Chooses the walks.
        options: How it is run: ``memory`` and ``num_threads``.

    Returns:
        One row per walk: ``id`` (its start), ``walk`` (0, 1 ... of that start) and
        ``nodes`` (a list of ids, the start first).

    Raises:
        ConfigError: a parameter out of range.
        UnknownNameError: a start that is not in the graph.
        InvalidGraphError: a negative or infinite weight, or sums beyond float64.

    Complexity:
        O(1) expected per step, O(log(degree)) with weights, p or q; O(N + E) before the
        first; 4 bytes per node of the walks besides the result.

    References:
        Perozzi, Al-Rfou, Skiena, "DeepWalk", KDD 2014; Grover, Leskovec, "node2vec", KDD
        2016; Yang et al., "KnightKing", SOSP 2019 (rejection).

    Example:
        >>> import graphsys as gs
        >>> graph = gs.Topology.from_edges([0, 1, 2], [1, 2, 0], num_nodes=3)
        >>> done = gs.algorithms.random_walks(graph, length=3, starts=[0])
        >>> done.table["nodes"].to_pylist()
        [[0, 1, 2, 0]]
    """
    topology = Topology.of(graph)
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
    with ThreadTeam(options.get("num_threads")) as team:
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
    if len(sums) and not sums.max() < np.inf:
        raise InvalidGraphError(
            "the weights of the edges of a node add up to more than float64 holds; scale "
            "the weights down"
        )
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
