"""A store as PyG and DGL see it: compressed rows, features, labels, masks, edge columns.

Nothing here knows either library; arrays are NumPy's.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.types import EdgeType
from graphsys.sampling import FeatureTable, PartitionedCsr, message_rows
from graphsys.storage.reader import GraphReader

Values = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
REVERSE: Final = "rev_"  # as PyG's ToUndirected and DGL's AddReverse call such edges
MASKS: Final = {"valid": "val_mask"}  # other splits have their own name
INDEXED: Final = {"weight": "edge_weight", "time": "edge_time", "relation": "edge_type"}
_LARGEST: Final = {np.dtype(np.int32): 2**31 - 1, np.dtype(np.int64): 2**63 - 1}


def relations(
    graph: GraphReader, *, reverse: bool = False
) -> dict[EdgeType, PartitionedCsr]:
    """Return the relations that messages travel along, by the type of their edges.

    Edges against a stored type are of the type ``(dst, rev_NAME, src)``. Undirected edges
    between two node types have both; those within one type are their own reverse.

    Args:
        graph: An open graph.
        reverse: Whether directed edges are traveled both ways.
    """
    found = {}
    for rows in message_rows(graph, reverse=reverse):
        stored = rows.edge_type
        is_along = rows.name == graph.edge_type_name(stored)
        name = stored.relation if is_along else REVERSE + stored.relation
        kind = EdgeType(rows.neighbor_type, name, rows.node_type)
        if kind in found:
            raise ConfigError(
                f"edge type {kind} is there twice; rename one and ingest again"
            )
        found[kind] = rows
    return found


def is_heterogeneous(graph: GraphReader, kinds: dict[EdgeType, PartitionedCsr]) -> bool:
    """Whether there is more than one type of nodes or of edges."""
    return len(graph.node_types) > 1 or len(kinds) > 1


def compressed(rows: PartitionedCsr, dtype: Any) -> tuple[Values, Values]:
    """Return all rows as one ``indptr`` and ``indices``.

    Views of the mapped file where the type has one partition and ``dtype`` is int32 (the
    file holds uint32), else copies.

    Raises:
        ConfigError: The numbers do not fit the dtype.
    """
    dtype = np.dtype(dtype)
    largest = max(rows.num_entries, rows.num_neighbors, rows.num_nodes)
    if largest > _LARGEST[dtype]:
        raise ConfigError(
            f"edges {rows.name!r}: {largest} entries or nodes do not fit {dtype}; use int64"
        )
    if len(rows.indexes) == 1:
        index = rows.indexes[0]
        return _as(index.indptr, dtype), _as(index.indices, dtype)
    indptr = np.empty(rows.num_nodes + 1, dtype)
    indices = np.empty(rows.num_entries, dtype)
    indptr[-1] = rows.num_entries
    for part, index in enumerate(rows.indexes):
        first = rows.first_entry[part]
        begin, end = rows.offsets[part : part + 2]
        indptr[begin:end] = index.indptr[:-1].astype(np.int64) + first
        indices[first : first + len(index.indices)] = index.indices
    return indptr, indices


def _as(values: Values, dtype: np.dtype[Any]) -> Values:
    if values.dtype.kind == "u" and values.dtype.itemsize == dtype.itemsize:
        return values.view(dtype)
    return values.astype(dtype, copy=False)


class NodeColumns:
    """Features, labels and splits of one node type, under the names that PyG has.

    ``x`` holds all dense features side by side, gathered from the mapped files when asked
    for; ``y`` and the masks are read into memory once, when first asked for.

    Args:
        graph: An open graph.
        node_type: The node type.
        label: Column of the labels.
        split: Column of the splits.
    """

    def __init__(
        self,
        graph: GraphReader,
        node_type: str,
        *,
        label: str = "label",
        split: str = "split",
    ) -> None:
        self._graph, self._label = graph, label
        self.node_type, self.num_nodes = node_type, graph.num_nodes_of(node_type)
        entry = graph.manifest.node_types[node_type]
        is_dense = any(feature["dim"] for feature in entry.features.values())
        self.rows = FeatureTable(graph, node_type) if is_dense else None
        self._read: dict[str, Values] = {}
        if split in entry.columns:
            self._read |= _masks(graph.node_column(node_type, split))
        self.names = [
            *(["x"] if is_dense else []),
            *(["y"] if label in entry.columns else []),
            *self._read,
        ]

    def get(self, name: str, nodes: Ints | None = None) -> Values:
        """Return a column of the nodes with these numbers, or of all; a copy.

        Raises:
            UnknownNameError: There is no such column, or no such node.
        """
        if name == "x" and self.rows is not None:
            return self.rows.gather(np.arange(self.num_nodes) if nodes is None else nodes)
        values = self._values(name)
        return values.copy() if nodes is None else values[nodes]

    def size(self, name: str) -> tuple[int, ...]:
        """Return the shape of a column of all nodes."""
        if name == "x" and self.rows is not None:
            return (self.num_nodes, self.rows.dim)
        return self._values(name).shape

    def _values(self, name: str) -> Values:
        if name not in self.names:
            raise unknown_name(f"column of node type {self.node_type!r}", name, self.names)
        if name not in self._read:
            column = self._graph.node_column(self.node_type, self._label)
            self._read[name] = label_values(column)
        return self._read[name]


def _masks(splits: Any) -> dict[str, Values]:
    names = sorted(str(it) for it in pc.unique(splits).to_pylist() if it)
    usual: list[str] = ["train", "valid", "test"]
    order = [it for it in usual if it in names]
    order += [it for it in names if it not in order]
    return {
        MASKS.get(name, f"{name}_mask"): np.asarray(
            pc.fill_null(pc.equal(splits, name), False).to_numpy(), dtype=np.bool_
        )
        for name in order
    }


def label_values(labels: Any) -> Values:
    """Return labels as numbers.

    Integers stay as they are (int64, -1 where missing), texts and booleans become their
    places among the sorted values, floats float32 (NaN where missing), and lists float32
    ``[N, C]`` with a 1 for each of a node's classes, sorted.
    """
    kind = labels.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.fill_null(pc.list_value_length(labels), 0).to_numpy()
        classes, codes = np.unique(_plain(pc.list_flatten(labels)), return_inverse=True)
        hot = np.zeros((len(labels), len(classes)), dtype=np.float32)
        hot[np.repeat(np.arange(len(labels)), lengths), codes] = 1
        return hot
    if pa.types.is_floating(kind):
        return np.asarray(pc.fill_null(labels, np.nan).to_numpy(), dtype=np.float32)
    known = pc.is_valid(labels).to_numpy()
    values = np.full(len(labels), -1, dtype=np.int64)
    plain = _plain(pc.drop_null(labels))
    is_number = pa.types.is_integer(kind)
    values[known] = plain if is_number else np.unique(plain, return_inverse=True)[1]
    return values


def _plain(column: Any) -> Values:
    values: Values = column.to_numpy()
    return values.astype(str) if values.dtype == object else values


class EdgeColumns:
    """Numeric columns of one relation's edges, by the entries of its index.

    They are called as PyG would: ``edge_weight``, ``edge_time``, ``edge_type`` (the code of
    the relation), others ``edge_NAME``.

    Args:
        graph: An open graph.
        rows: The relation.
    """

    def __init__(self, graph: GraphReader, rows: PartitionedCsr) -> None:
        self._graph, self._rows = graph, rows
        self._further: dict[str, Values] = {}
        self._stored = {}
        name = graph.edge_type_name(rows.edge_type)
        entry = graph.manifest.edge_types[name]
        filled = [index for index in rows.indexes if len(index.indices)]
        for column, shown in INDEXED.items():
            if filled and all(getattr(index, column) is not None for index in filled):
                self._stored[shown] = column
        buckets = graph.buckets(name)
        for column in entry.columns if buckets else ():
            if column not in INDEXED and self._is_numeric(column, *buckets[0]):
                self._stored[_shown(column)] = column

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return self._rows.num_entries

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self._stored)

    def get(self, name: str, entries: Ints | None = None) -> Values:
        """Return a column of the entries at these positions, or of all; a copy.

        Raises:
            UnknownNameError: There is no such column.
        """
        if name not in self._stored:
            raise unknown_name(f"column of edges {self._rows.name!r}", name, self.names)
        if entries is None:
            entries = np.arange(self._rows.num_entries)
        column = self._stored[name]
        if column in INDEXED:
            return self._rows.column(column, entries)
        if column not in self._further:
            self._further[column] = self._read(column)
        found: Values = self._further[column][self._rows.column("edge", entries)]
        return found

    def _is_numeric(self, column: str, i: int, j: int) -> bool:
        kind = self._graph.bucket(self._rows.edge_type, i, j).columns[column].type
        if pa.types.is_fixed_size_list(kind):
            kind = kind.value_type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        return bool(is_number or pa.types.is_boolean(kind))

    def _read(self, column: str) -> Values:
        """Return a column in the sequence of buckets, ``[E]`` or ``[E, d]``."""
        graph, kind, parts = self._graph, self._rows.edge_type, []
        for i, j in graph.buckets(kind):
            array = graph.bucket(kind, i, j).columns[column]
            if pa.types.is_fixed_size_list(array.type):
                flat = array.flatten().to_numpy(zero_copy_only=False)
                parts.append(flat.reshape(len(array), array.type.list_size))
            else:
                parts.append(array.to_numpy(zero_copy_only=False))
        return np.concatenate(parts)


def _shown(column: str) -> str:
    return column if column.startswith("edge_") else f"edge_{column}"
