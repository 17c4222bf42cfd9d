"""A graph as mining sees it: simple, undirected, nodes by descending degree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.types import EdgeType
from graphsys.datasets.temporary import GraphLike, graph_of
from graphsys.graph.csr import csr_from_edges, row_lengths, simple_undirected
from graphsys.storage.node_numbers import NodeNumbers
from graphsys.storage.reader import Graph

Numbers = npt.NDArray[Any]


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
    """

    indptr: npt.NDArray[np.int64]
    indices: Numbers
    nodes: Numbers
    numbers: NodeNumbers

    @classmethod
    def of(cls, graph: "SimpleGraph | GraphLike") -> "SimpleGraph":
        """Return the simple graph of a store, or of anything else that holds a graph.

        Args:
            graph: One made before, or what :func:`graphsys.datasets.temporary.graph_of`
                takes.

        Complexity:
            O(N + E) time and memory, some 40 bytes an edge while it is made.
        """
        if isinstance(graph, SimpleGraph):
            return graph
        graph = graph_of(graph)
        numbers = NodeNumbers.of(graph)
        ends = [edges_of(graph, kind, numbers)[:2] for kind in graph.edge_types]
        none = np.empty(0, dtype=np.int64)
        src = np.concatenate([none, *(src for src, _ in ends)])
        dst = np.concatenate([none, *(dst for _, dst in ends)])
        del ends
        return cls.from_edges(src, dst, numbers)

    @classmethod
    def from_edges(cls, src: Numbers, dst: Numbers, numbers: NodeNumbers) -> "SimpleGraph":
        """Make the graph of edges given by numbers ``[E]``."""
        num_nodes = numbers.num_nodes
        simple = simple_undirected(
            csr_from_edges(src, dst, num_nodes), csr_from_edges(dst, src, num_nodes)
        )
        degrees = simple.degrees()
        nodes = np.argsort(-degrees, kind="stable")
        dtype = np.int32 if num_nodes < 2**31 else np.int64
        label = np.empty(num_nodes, dtype=dtype)
        label[nodes] = np.arange(num_nodes, dtype=dtype)
        owners = np.repeat(label, degrees)
        rows = csr_from_edges(owners, label[simple.indices], num_nodes)
        return cls(
            indptr=rows.indptr.astype(np.int64),
            indices=rows.indices.astype(dtype, copy=False),
            nodes=nodes.astype(dtype, copy=False),
            numbers=numbers,
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


def edges_of(
    graph: Graph, kind: EdgeType, numbers: NodeNumbers
) -> tuple[Numbers, Numbers, Numbers | None]:
    """Return both ends of the training edges of a type, by number, and their relations.

    Args:
        graph: An open graph.
        kind: The edge type.
        numbers: Its nodes.

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
