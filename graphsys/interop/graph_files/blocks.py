"""A store's nodes and edges, a few at a time, in the order of their numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.graph.csr import Csr
from graphsys.storage.reader import GraphReader
from graphsys.storage.write.times import typed

Ints = npt.NDArray[np.int64]
LARGEST_BLOCK: Final = 1 << 17
LEAST_BLOCK: Final = 1 << 10
_OWN: Final = ("weight", "time", "relation")  # what indexes hold themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBlock:
    """Some nodes of one type.

    Attributes:
        table: ``id`` and further columns ``[n]``.
        features: Rows ``[n, d]``, or bags as an Arrow array of lists ``[n]``, by name.
    """

    table: pa.Table
    features: dict[str, Any]

    @property
    def whole_table(self) -> pa.Table:
        """The table with features as columns of lists."""
        table = self.table
        for name, rows in self.features.items():
            column = rows
            if isinstance(rows, np.ndarray):
                flat = pa.array(np.ascontiguousarray(rows).reshape(-1))
                column = pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])
            table = table.append_column(name, column)
        return table


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeBlock:
    """Some edges of one type, sorted by (source, destination).

    Attributes:
        src: Numbers of the sources, int64 ``[n]``.
        dst: Numbers of the destinations, int64 ``[n]``.
        columns: ``weight``, ``time``, ``relation`` and others ``[n]``, NumPy or Arrow.
    """

    src: Ints
    dst: Ints
    columns: dict[str, Any]


def node_blocks(graph: GraphReader, node_type: str, rows: int) -> Iterator[NodeBlock]:
    """Yield the nodes of a type, ``rows`` at most at a time.

    Raises:
        ConfigError: A feature is called as a column is.
    """
    names = graph.feature_names(node_type)
    for part in range(graph.num_partitions(node_type)):
        table = graph.nodes(node_type, part)
        if twice := sorted(set(names) & set(table.schema.names)):
            raise ConfigError(
                f"node type {node_type!r} has both a column and a feature {twice[0]!r}, "
                "expected different names; rename one and ingest again"
            )
        features = {name: graph.feature_rows(node_type, part, name) for name in names}
        for first in range(0, table.num_rows, rows):
            some = slice(first, min(first + rows, table.num_rows))
            yield NodeBlock(
                table=table.slice(first, rows),
                features={
                    name: stored[some] if places is None else stored[places[some]]
                    for name, (stored, places) in features.items()
                },
            )


class EdgeRows:
    """The training edges of one edge type by their sources; nothing is copied.

    An undirected edge within one node type is there both ways, as in every index.

    Args:
        graph: An open graph.
        name: The edge type's name.

    Attributes:
        is_symmetric: Whether every edge is there both ways.
        num_entries: Entries of all rows.
        num_rows: Nodes of the sources' type.
        columns: Names of the columns.
    """

    def __init__(self, graph: GraphReader, name: str) -> None:
        self._graph, self.name, kind = graph, name, graph.edge_type(name)
        self.edge_type = kind
        self.is_symmetric = (
            not graph.is_directed_type(name) and kind.src_type == kind.dst_type
        )
        joined = graph.joined_index(name, "out")
        parts = range(graph.num_partitions(kind.src_type))
        self._indexes = [graph.out_index(name, part) for part in parts]
        if joined is not None:
            self._indexes = [joined]
        self._entries = [len(index.indices) for index in self._indexes]
        self.num_entries, self.num_rows = (
            sum(self._entries),
            sum(index.num_nodes for index in self._indexes),
        )
        stored = graph.manifest.edge_types[name].columns
        filled = [it for it in self._indexes if len(it.indices)]
        own = [it for it in _OWN if any(getattr(i, it) is not None for i in filled)]
        self.columns = own + [it for it in stored if it not in _OWN]
        self._unit, self._relations = graph.time_unit(name), graph.relations(name)
        self._buckets = _Buckets(graph, name, self.columns[len(own) :])

    @property
    def row_bytes(self) -> int:
        """Bytes of an edge in memory, roughly."""
        return 32 + self._buckets.row_bytes

    def offsets(self) -> Iterator[Ints]:
        """Yield the offsets of rows in all entries, int64, ``num_rows + 1`` in all."""
        first = 0
        for index in self._indexes:
            for low in range(0, index.num_nodes, LARGEST_BLOCK):
                some = index.indptr[low : min(low + LARGEST_BLOCK, index.num_nodes)]
                yield some.astype(np.int64) + first
            first += len(index.indices)
        yield np.array([first], dtype=np.int64)

    def blocks(self, rows: int, *, is_typed: bool = True) -> Iterator[EdgeBlock]:
        """Yield all entries, ``rows`` at most at a time.

        Args:
            rows: Entries of a block.
            is_typed: Whether times are timestamps where their unit is known, and relations
                their names; else as they are stored.
        """
        before = 0
        for index in self._indexes:
            for first in range(0, len(index.indices), rows):
                some = slice(first, min(first + rows, len(index.indices)))
                yield EdgeBlock(
                    src=_rows_at(index.indptr, some) + before,
                    dst=index.indices[some].astype(np.int64),
                    columns=self._columns_at(index, some, is_typed=is_typed),
                )
            before += index.num_nodes

    def _columns_at(self, index: Csr, some: slice, *, is_typed: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self.columns:
            if name not in _OWN:
                continue
            values = getattr(index, name)[some]
            if is_typed and name == "time":
                values = typed(values, self._unit)
            elif is_typed and name == "relation" and self._relations is not None:
                values = pa.array(self._relations, pa.string()).take(pa.array(values))
            found[name] = values
        if any(name not in _OWN for name in self.columns):
            found |= self._buckets.at(index.edge, some)
        return found


def _rows_at(indptr: npt.NDArray[Any], some: slice) -> Ints:
    """Return the row of each of some entries."""
    low = int(np.searchsorted(indptr, some.start, side="right")) - 1
    high = int(np.searchsorted(indptr, some.stop, side="left"))
    ends = np.clip(indptr[low : high + 1].astype(np.int64), some.start, some.stop)
    return np.repeat(np.arange(low, high, dtype=np.int64), np.diff(ends))


class _Buckets:
    """Further columns of edges, by their position in the sequence of buckets."""

    def __init__(self, graph: GraphReader, name: str, columns: list[str]) -> None:
        self._graph, self._name, self._columns = graph, name, columns
        self._places = graph.buckets(name) if columns else []
        counts = graph.bucket_counts(name) if columns else np.zeros((0, 0), np.int64)
        sizes = [int(counts[i, j]) for i, j in self._places]
        self._first = np.cumsum([0, *sizes], dtype=np.int64)
        self.kinds: dict[str, pa.DataType] = {}
        self.row_bytes = 0
        for number, (i, j) in enumerate(self._places):
            found = graph.bucket(name, i, j).columns
            new = {k: it.type for k, it in found.items() if k not in self.kinds}
            self.kinds |= new
            if number < _LOOKED_AT:
                size = sum(it.nbytes for it in found.values()) // max(sizes[number], 1)
                self.row_bytes = max(self.row_bytes, size)
            elif len(self.kinds) == len(columns):
                break

    def at(self, positions: npt.NDArray[Any] | None, some: slice) -> dict[str, Any]:
        """Return the columns of entries; null where a bucket has none."""
        size = some.stop - some.start
        if positions is None:
            return {name: pa.nulls(size, self._kind(name)) for name in self._columns}
        wanted = positions[some].astype(np.int64)
        which = np.searchsorted(self._first, wanted, side="right") - 1
        order = np.argsort(which, kind="stable")
        filled, starts = np.unique(which[order], return_index=True)
        pieces: dict[str, list[pa.Array]] = {name: [] for name in self._columns}
        for number, places in zip(filled, np.split(order, starts[1:]), strict=True):
            columns = self._graph.bucket(self._name, *self._places[number]).columns
            local = pa.array(wanted[places] - self._first[number])
            for name, into in pieces.items():
                column = columns.get(name)
                into.append(
                    pa.nulls(len(places), self._kind(name))
                    if column is None
                    else column.take(local)
                )
        back = np.empty(size, dtype=np.int64)
        back[order] = np.arange(size)
        return {
            name: pa.concat_arrays(parts).take(pa.array(back))
            for name, parts in pieces.items()
        }

    def _kind(self, name: str) -> pa.DataType:
        return self.kinds.get(name, pa.null())


_LOOKED_AT: Final = 8
