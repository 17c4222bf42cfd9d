"""A store as a stream of nodes with their neighbors, for the partitioners.

Nodes of all types are numbered one type after the other; a node's neighbors are those of
all edge types, in both directions. Blocks are read from the mapped indexes.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import BudgetError, ConfigError
from graphsys.core.memory import format_bytes
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.algorithms.partition import append_rows
from graphsys.partitioners import (
    NeedsMemory,
    NodeStream,
    get_stream_partitioner,
    is_stream_partitioner,
)
from graphsys.storage.ids.id_mapping import Assignment
from graphsys.storage.ingest.orders import GRAPH_ORDERS, find_ranks, order_bytes
from graphsys.storage.reader import GraphReader

_BLOCK_EDGES = 1 << 22


class StoreNodeStream:
    """Streams the nodes of a store; see ``partitioners.base.NodeStream``.

    Args:
        graph: The store, open.

    Attributes:
        num_nodes: Nodes of all types.
        degrees: Neighbors of every node, int64 ``[N]``.
        bases: Number of the first node of every type.
    """

    def __init__(self, graph: GraphReader) -> None:
        self._graph = graph
        self.num_nodes = graph.num_nodes
        self.bases: dict[str, int] = {}
        base = 0
        for node_type in graph.node_types:
            self.bases[node_type] = base
            base += graph.num_nodes_of(node_type)
        self.degrees = np.zeros(self.num_nodes, dtype=np.int64)
        for node_type, part, first in self._partitions():
            for index, _ in self._indexes(node_type, part):
                counts = row_lengths(index.indptr)
                self.degrees[first : first + len(counts)] += counts

    def blocks(self) -> Iterator[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]]:
        """Yield (first node, indptr ``[n + 1]``, indices) for consecutive blocks."""
        for node_type, part, first in self._partitions():
            indexes = list(self._indexes(node_type, part))
            offsets = self._graph.offsets(node_type)
            num_rows = int(offsets[part + 1] - offsets[part])
            ends = np.cumsum(self.degrees[first : first + num_rows])
            total = int(ends[-1]) if num_rows else 0
            cuts = np.searchsorted(ends, np.arange(_BLOCK_EDGES, total, _BLOCK_EDGES)) + 1
            for begin, end in pairwise(np.union1d([0, num_rows], cuts).tolist()):
                yield first + begin, *self._block(first, begin, end, indexes)

    def _block(
        self, first: int, begin: int, end: int, indexes: list[tuple[Csr, int]]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        indptr = np.zeros(end - begin + 1, dtype=np.int64)
        np.cumsum(self.degrees[first + begin : first + end], out=indptr[1:])
        indices = np.empty(int(indptr[-1]), dtype=np.int64)
        cursor = indptr[:-1].copy()
        for index, base in indexes:
            rows = index.indptr[begin : end + 1]
            append_rows(rows, index.indices, base, cursor, indices)
        return indptr, indices

    def _partitions(self) -> Iterator[tuple[str, int, int]]:
        for node_type, base in self.bases.items():
            for part, offset in enumerate(self._graph.offsets(node_type)[:-1].tolist()):
                yield node_type, part, base + offset

    def _indexes(self, node_type: str, part: int) -> Iterator[tuple[Csr, int]]:
        for kind in self._graph.edge_types:
            is_symmetric = (
                not self._graph.is_directed_type(kind) and kind.src_type == kind.dst_type
            )
            if kind.src_type == node_type:
                yield self._graph.out_index(kind, part), self.bases[kind.dst_type]
            if kind.dst_type == node_type and not is_symmetric:
                yield self._graph.in_index(kind, part), self.bases[kind.src_type]


def row_lengths(indptr: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the length of every row, int64 ``[N]``, of row offsets ``[N + 1]``."""
    return indptr[1:].astype(np.int64) - indptr[:-1].astype(np.int64)


def assign_nodes(
    graph: GraphReader,
    *,
    partitioner: str,
    num_partitions: Callable[[str], int],
    order: str,
    seed: int,
    memory_bytes: int,
) -> dict[str, Assignment]:
    """Find what needs the whole graph: partitions from a stream, and orders.

    All node types are partitioned together, so their numbers of partitions must agree;
    a type with one partition is left whole.

    Args:
        graph: The store, open.
        partitioner: Name of a partitioner; one that needs no stream is left to ingest.
        num_partitions: Number of partitions by node type.
        order: Order of the nodes; only "rabbit" and "rcm" are found here.
        seed: The user's seed.
        memory_bytes: Memory budget, which partitioner and order must keep to.

    Returns:
        Ids, and partitions and ranks where they were found, of the nodes of every type.

    Raises:
        ConfigError: two types want different numbers of partitions above one.
        BudgetError: partitioner or order need more memory than the budget.
    """
    stream = StoreNodeStream(graph)
    parts = ranks = None
    if is_stream_partitioner(partitioner):
        wanted = {name: num_partitions(name) for name in graph.node_types}
        count = _common_count(wanted, partitioner)
        check_memory(partitioner, stream, memory_bytes)
        parts = get_stream_partitioner(partitioner)(stream, count, seed)
        for name, base in stream.bases.items():
            if wanted[name] == 1:
                parts[base : base + graph.num_nodes_of(name)] = 0
    if order in GRAPH_ORDERS:
        ranks = find_ranks(order, stream, memory_bytes)
    assigned = {}
    for name, base in stream.bases.items():
        own = slice(base, base + graph.num_nodes_of(name))
        assigned[name] = Assignment(
            ids=graph.node_ids(name).combine_chunks(),
            parts=None if parts is None else parts[own],
            ranks=None if ranks is None else ranks[own],
        )
    return assigned


def held_bytes(stream: NodeStream, partitioner: str, order: str) -> int:
    """Return what a partitioner or an order holds of a graph at once, the larger of both.

    Args:
        stream: The graph.
        partitioner: Name of the method.
        order: Order of the nodes.
    """
    found = order_bytes(order, stream) if order in GRAPH_ORDERS else 0
    if is_stream_partitioner(partitioner):
        method = get_stream_partitioner(partitioner)
        if isinstance(method, NeedsMemory):
            num_ends = int(stream.degrees.sum())
            found = max(found, method.memory_bytes(stream.num_nodes, num_ends))
    return found


def check_memory(name: str, stream: NodeStream, memory_bytes: int) -> None:
    """Check that a partitioner that holds the graph in memory may do so.

    Raises:
        BudgetError: it says that it needs more than the budget.
    """
    needed = held_bytes(stream, name, "original")
    if needed > memory_bytes:
        num_ends = int(stream.degrees.sum())
        raise BudgetError(
            f"partitioner {name} needs the graph in memory: about {format_bytes(needed)} "
            f"for {stream.num_nodes} nodes and {num_ends} edge ends; the budget is "
            f"{format_bytes(memory_bytes)}; raise --memory or take --partitioner reldg"
        )


def _common_count(wanted: dict[str, int], partitioner: str) -> int:
    counts = {count for count in wanted.values() if count > 1} or {1}
    if len(counts) > 1:
        raise ConfigError(
            f"partitions: got {wanted}; {partitioner} partitions all node types together "
            "and needs one number for all that are cut (hash and random take any)"
        )
    return counts.pop()
