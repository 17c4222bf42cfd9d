"""Rows of a graph whose nodes and edges have labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import unknown_name
from graphsys.graph.csr import Csr, csr_from_edges
from graphsys.mining.simple_graph import edges_of
from graphsys.storage.node_numbers import NodeNumbers
from graphsys.storage.reader import GraphReader

Numbers = npt.NDArray[Any]
TYPE = "type"
NO_LABEL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledEdges:
    """A graph without direction and loops, where two nodes have an edge once a label.

    Attributes:
        rows: Both directions of the edges; their labels are the relations, int64.
        node_labels: Label of every node, int64 ``[N]``; -1 for none.
        node_names: Names of the nodes' labels.
        edge_names: Names of the edges' labels.
    """

    rows: Csr
    node_labels: npt.NDArray[np.int64]
    node_names: list[str]
    edge_names: list[str]


def labeled_rows(
    graph: GraphReader, labels: str | None, *, has_edge_labels: bool
) -> LabeledEdges:
    """Read a graph's training edges with labels.

    Args:
        graph: An open graph.
        labels: ``type`` for the node's type, or the name of a column of nodes; by default
            the types where there are several, else the column ``label`` if there is one.
        has_edge_labels: Whether relations and edge types are labels of edges.

    Raises:
        UnknownNameError: no node type has such a column.

    Complexity:
        O(N + E log E) time, some 80 bytes an edge.
    """
    numbers = NodeNumbers.of(graph)
    src, dst, codes, edge_names = labeled_edges(graph, numbers, has_edge_labels)
    node_labels, node_names = labels_of_nodes(graph, labels)
    low, high = np.minimum(src, dst), np.maximum(src, dst)
    order = np.lexsort((codes, high, low))
    low, high, codes = low[order], high[order], codes[order]
    is_new = np.ones(len(low), dtype=bool)
    is_new[1:] = (np.diff(low) != 0) | (np.diff(high) != 0) | (np.diff(codes) != 0)
    is_new &= low != high
    low, high, codes = low[is_new], high[is_new], codes[is_new]
    rows = csr_from_edges(
        np.concatenate([low, high]),
        np.concatenate([high, low]),
        numbers.num_nodes,
        relation=np.concatenate([codes, codes]),
    )
    return LabeledEdges(
        rows=rows.with_indptr(rows.indptr.astype(np.int64)),
        node_labels=node_labels,
        node_names=node_names,
        edge_names=edge_names,
    )


def labeled_edges(
    graph: GraphReader, numbers: NodeNumbers, has_labels: bool
) -> tuple[Numbers, Numbers, Numbers, list[str]]:
    """Return both ends of all training edges, the codes and names of their labels."""
    names: list[str] = []
    found: list[tuple[Numbers, Numbers, Numbers]] = []
    for kind in graph.edge_types:
        src, dst, relation = edges_of(graph, kind, numbers)
        known = graph.relations(kind)
        own = [kind.relation] if relation is None or known is None else known
        codes = np.zeros(len(src), dtype=np.int64) if len(own) == 1 else relation
        assert codes is not None  # several names have codes
        names += [name for name in own if name not in names]
        places = np.array([names.index(name) for name in own], dtype=np.int64)
        found.append((src, dst, places[codes]))
    none = np.empty(0, dtype=np.int64)
    columns = [np.concatenate([none, *(each[k] for each in found)]) for k in range(3)]
    if not has_labels:
        columns[2], names = np.zeros_like(columns[2]), ["edge"]
    return columns[0], columns[1], columns[2], names


def labels_of_nodes(graph: GraphReader, labels: str | None) -> tuple[Numbers, list[str]]:
    """Return the codes of the nodes' labels, and their names."""
    kinds = graph.node_types
    if labels is None:
        labels = TYPE if len(kinds) > 1 else "label"
        if labels not in {TYPE, *_columns(graph)}:
            labels = TYPE
    if labels == TYPE:
        sizes = [graph.num_nodes_of(kind) for kind in kinds]
        return np.repeat(np.arange(len(kinds), dtype=np.int64), sizes), kinds
    if labels not in _columns(graph):
        raise unknown_name("column of nodes", labels, [TYPE, *_columns(graph)])
    chunks = [pa.array([], type=pa.large_string())]
    for kind in kinds:
        for part in range(graph.num_partitions(kind)):
            table = graph.nodes(kind, part)
            if labels in table.column_names:
                column = table[labels].combine_chunks().cast(pa.large_string())
            else:
                column = pa.nulls(table.num_rows, pa.large_string())
            chunks.append(column)
    values = pa.chunked_array(chunks).combine_chunks()
    known = pc.unique(values.drop_null()).sort()
    codes = pc.fill_null(pc.index_in(values, value_set=known), NO_LABEL)
    return codes.to_numpy(zero_copy_only=False).astype(np.int64), known.to_pylist()


def _columns(graph: GraphReader) -> list[str]:
    """Return the names of all columns of nodes."""
    entries = (graph.manifest.node_types[kind] for kind in graph.node_types)
    return sorted({name for entry in entries for name in entry.columns})
