"""A graph as mining sees it: simple, undirected, nodes by descending degree."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import BudgetError
from graphsys.core.memory import (
    format_bytes,
    keep_to_budget,
    parse_bytes,
    resident_bytes,
    scratch_folder,
    scratch_is_memory,
)
from graphsys.core.threads import num_cores, run_parallel
from graphsys.core.types import EdgeType
from graphsys.datasets.temporary import GraphLike, graph_of
from graphsys.graph.csr import Allocate, Csr, balanced_chunks, row_lengths
from graphsys.kernels.cpu.mining.simple import append_entries, make_simple, renumber_rows
from graphsys.storage.node_numbers import NodeNumbers
from graphsys.storage.reader import GraphReader
from graphsys.storage.scratch import ScratchArrays

Numbers = npt.NDArray[Any]
Offsets = npt.NDArray[np.int64]
_NODE_BYTES = 56
"""Bytes a node that are taken at the peak: offsets, lengths, their order, labels; or what
kernels of two threads keep of every node."""
_LOADED_BYTES = 48 << 20
"""What kernels and threads take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMemory:
    """What a task keeps in memory besides a graph's rows.

    Attributes:
        per_node: Bytes for every node.
        per_entry: Bytes for every entry of the stored rows.
        num_bytes: Bytes for any graph.
        num_ids: Ids of nodes.
        has_lists: Whether it lists what there may be more of than entries, in a file.
    """

    per_node: int = 0
    per_entry: int = 0
    num_bytes: int = 0
    num_ids: int = 0
    has_lists: bool = False

    def __or__(self, other: "TaskMemory") -> "TaskMemory":
        """Return what two tasks keep that are done one after the other."""
        return TaskMemory(
            per_node=max(self.per_node, other.per_node),
            per_entry=max(self.per_entry, other.per_entry),
            num_bytes=max(self.num_bytes, other.num_bytes),
            num_ids=max(self.num_ids, other.num_ids),
            has_lists=self.has_lists or other.has_lists,
        )


NOTHING = TaskMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleGraph:
    """The training edges of all types, without direction, loops and repetitions.

    Nodes are numbered anew by descending degree, so that the neighbors of larger degree
    are the first of every row; ties go by the number in the store.

    Attributes:
        indptr: Row offsets, int64 ``[N + 1]``.
        indices: Neighbors, sorted in every row, both directions, int32 (int64 from
            2**31 nodes on) ``[2 M]``.
        nodes: Number of every node in the order of ``numbers`` ``[N]``.
        numbers: The nodes of all types and their ids.
        allocate: Makes arrays that may be larger than the rows: within a budget in a file.
    """

    indptr: npt.NDArray[np.int64]
    indices: Numbers
    nodes: Numbers
    numbers: NodeNumbers
    allocate: Allocate = np.empty

    @classmethod
    def of(
        cls,
        graph: "SimpleGraph | GraphLike",
        memory: int | str | None = None,
        kept: TaskMemory = NOTHING,
    ) -> "SimpleGraph":
        """Return the simple graph of a store, or of anything else that holds a graph.

        Args:
            graph: One made before, or what :func:`graphsys.datasets.temporary.graph_of`
                takes.
            memory: Budget of anonymous memory of the process: where the rows do not fit,
                they are in a mapped file without a name. What there is by default.
            kept: What the budget must have room for besides.

        Raises:
            BudgetError: what is kept of every node does not fit; the message names an
                amount that does.
            StorageFullError: there is no room for the file.

        Complexity:
            O(N + E log D) time, D the largest degree; 40 bytes a node, and 16 bytes an
            edge that the file may hold.
        """
        if isinstance(graph, SimpleGraph):
            return graph
        graph = graph_of(graph)
        numbers = NodeNumbers.of(graph)
        blocks = list(_blocks(graph, numbers))
        allocate = _allocator(numbers, blocks, memory, kept)
        of_lists = ScratchArrays().zeros if memory and kept.has_lists else allocate
        return _renumbered(
            *_simple_rows(numbers.num_nodes, blocks, allocate), numbers, allocate, of_lists
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes, those without neighbors too."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges, each once."""
        return len(self.indices) // 2

    def table(self, columns: Mapping[str, Numbers]) -> pa.Table:
        """Return columns of all nodes ``[N]`` by their ids, in the order of the store.

        Args:
            columns: In the order of this graph's nodes.

        Returns:
            ``id``, ``type`` where there are several node types, and the columns.
        """
        placed = {}
        for name, values in columns.items():
            placed[name] = np.empty_like(values)
            placed[name][self.nodes] = values
        return self.numbers.table(placed)

    def ids(self, nodes: Numbers) -> pa.ChunkedArray:
        """Return the user's ids of nodes of this graph."""
        return self.numbers.ids(self.nodes[nodes])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Stored rows of one partition, and where their nodes and neighbors are numbered."""

    index: Csr
    row_base: int
    column_base: int


def _blocks(graph: GraphReader, numbers: NodeNumbers) -> Iterator[_Block]:
    """Yield stored rows so that every edge comes at both of its ends."""
    for kind in graph.edge_types:
        ends = [(kind.src_type, kind.dst_type, graph.out_index)]
        is_symmetric = not graph.is_directed_type(kind) and kind.src_type == kind.dst_type
        if not is_symmetric:
            ends.append((kind.dst_type, kind.src_type, graph.in_index))
        for own, other, rows in ends:
            offsets = graph.offsets(own)
            for part in range(graph.num_partitions(own)):
                yield _Block(
                    index=rows(kind, part),
                    row_base=numbers.base(own) + int(offsets[part]),
                    column_base=numbers.base(other),
                )


def _allocator(
    numbers: NodeNumbers, blocks: list[_Block], memory: int | str | None, more: TaskMemory
) -> Allocate:
    """Return where arrays of all entries come from, within a budget.

    Raises:
        BudgetError: what is kept of every node does not fit.
    """
    if memory is None:
        return np.empty
    budget, num_nodes = parse_bytes(memory), numbers.num_nodes
    keep_to_budget()
    entries = sum(len(block.index.indices) for block in blocks)
    kept, rows = bytes_needed(num_nodes, entries)
    kept += more.per_node * num_nodes + more.per_entry * entries + more.num_bytes
    kept += int(more.num_ids * numbers.id_bytes) if more.num_ids else 0
    if more.has_lists and scratch_is_memory():
        raise BudgetError(
            f"memory: the triangles of the graph are listed in a file, but files in "
            f"{scratch_folder()} are memory themselves; set TMPDIR to a folder on a disk, "
            "or leave --memory (memory=) out"
        )
    if kept + rows <= budget:
        return np.empty
    if kept > budget or scratch_is_memory():
        least = kept if not scratch_is_memory() else kept + rows
        amount = f"{-(-least * 21 // 20 // 10**6)}MB"
        edges = f" and {entries // 2} edges" if more.per_entry else ""
        raise BudgetError(
            f"memory: mining on {num_nodes} nodes{edges} needs {format_bytes(least)}, got "
            f"{format_bytes(budget)}; give --memory {amount} (memory={amount!r}) or more"
        )
    return ScratchArrays().zeros


def bytes_needed(num_nodes: int, num_entries: int) -> tuple[int, int]:
    """Return the bytes that a graph's rows take: what is in memory, what may be in a file.

    Args:
        num_nodes: Nodes.
        num_entries: Stored entries, every edge at both of its ends.
    """
    kept = resident_bytes() + _LOADED_BYTES + _NODE_BYTES * num_nodes
    return kept, 2 * np.dtype(_number_dtype(num_nodes)).itemsize * num_entries


def _simple_rows(
    num_nodes: int, blocks: list[_Block], allocate: Allocate
) -> tuple[Offsets, Numbers, Offsets]:
    """Return rows with room to spare: where they begin, their entries, their lengths."""
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    for block in blocks:
        lengths = row_lengths(block.index.indptr)
        first = block.row_base + 1
        indptr[first : first + len(lengths)] += lengths
    np.cumsum(indptr, out=indptr)
    entries = allocate(int(indptr[-1]), _number_dtype(num_nodes))
    cursor = indptr[:-1].copy()
    for block in blocks:
        index = block.index
        append_entries(
            index.indptr, index.indices, block.row_base, block.column_base, cursor, entries
        )
    lengths = cursor  # filled anew
    run_parallel(
        lambda chunk: make_simple(*chunk, indptr, entries, lengths), _chunks(indptr)
    )
    return indptr, entries, lengths


def _renumbered(
    old_indptr: Offsets,
    entries: Numbers,
    lengths: Offsets,
    numbers: NodeNumbers,
    allocate: Allocate,
    of_lists: Allocate,
) -> SimpleGraph:
    """Return rows of nodes that are numbered by descending degree, ties as they were."""
    num_nodes, dtype = len(lengths), _number_dtype(len(lengths))
    nodes = np.argsort(-lengths, kind="stable").astype(dtype, copy=False)
    label = np.empty(num_nodes, dtype=dtype)
    label[nodes] = np.arange(num_nodes, dtype=dtype)
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(lengths[nodes], out=indptr[1:])
    indices = allocate(int(indptr[-1]), dtype)
    run_parallel(
        lambda chunk: renumber_rows(
            *chunk, old_indptr, entries, nodes, label, indptr, indices
        ),
        _chunks(indptr),
    )
    return SimpleGraph(
        indptr=indptr, indices=indices, nodes=nodes, numbers=numbers, allocate=of_lists
    )


def _chunks(indptr: Offsets) -> list[tuple[int, int]]:
    """Cut rows into pieces of like work for all threads."""
    bounds = balanced_chunks(indptr, 16 * num_cores(), align=1)
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


def _number_dtype(num_nodes: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if num_nodes < 2**31 else np.int64


def edges_of(
    graph: GraphReader, kind: EdgeType, numbers: NodeNumbers
) -> tuple[Numbers, Numbers, Numbers | None]:
    """Return both ends of the training edges of a type, by number, and their relations.

    Returns:
        Sources and destinations, int64 ``[E]``; codes of relations ``[E]``, or None. An
        undirected edge may come twice.
    """
    first, offsets = numbers.base(kind.src_type), graph.offsets(kind.src_type)
    sources, targets = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    relations = []
    for part in range(graph.num_partitions(kind.src_type)):
        index = graph.out_index(kind, part)
        lengths = row_lengths(index.indptr)
        begin = first + int(offsets[part])
        sources.append(np.repeat(np.arange(begin, begin + len(lengths)), lengths))
        targets.append(index.indices.astype(np.int64) + numbers.base(kind.dst_type))
        if index.relation is not None:
            relations.append(index.relation)
    codes = np.concatenate(relations) if relations else None
    return np.concatenate(sources), np.concatenate(targets), codes
