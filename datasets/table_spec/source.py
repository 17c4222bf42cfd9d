"""The source of a description: tables of nodes, then tables of edges."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from graphsys.core.config import load_toml
from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, file_in
from graphsys.datasets.node_rows import RepeatedNodes
from graphsys.datasets.readers.tables import Batches
from graphsys.datasets.table_spec.arrays import NodeArrays
from graphsys.datasets.table_spec.edges import list_chunks, matrix_chunks
from graphsys.datasets.table_spec.joins import Joined, refuse_same_columns
from graphsys.datasets.table_spec.rows import Table
from graphsys.datasets.table_spec.spec import EdgeCard, NodeCard, TableCard, TablesCard
from graphsys.datasets.text.layout import read_alike
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

CHUNK_ROWS: Final = 1 << 18
Part: TypeAlias = Callable[[], Iterator[EdgeChunk | NodeChunk]]


class DescribedSource(Source):
    """The nodes and edges of a description's tables.

    Args:
        name: What messages call it.
        card: The description.
        folder: Where its files lie.
        num_threads: Threads that parse.
        tables: Tables in memory, by the name that stands for the file.

    Raises:
        InputError: a file is missing, or its first lines do not fit.
    """

    def __init__(
        self,
        name: str,
        card: TablesCard,
        folder: Path,
        *,
        num_threads: int | None = None,
        tables: Mapping[str, Batches] | None = None,
    ) -> None:
        self._tables = tables or {}
        self.name = name
        self.is_directed = card.directed
        self._card = card
        self._folder = folder
        self._num_threads = num_threads
        self._text_tables: dict[tuple[str, ...], list[Table]] = {}
        of_edges: list[Part] = []
        sizes = []
        for edges in card.edges:
            chunks, num_bytes = self._open_edges(edges)
            of_edges.append(chunks)
            sizes.append(num_bytes)
        for alike in self._text_tables.values():
            layouts = read_alike([each.layout for each in alike])
            for each, layout in zip(alike, layouts, strict=True):
                each.layout = layout
        self._nodes: list[tuple[NodeCard, Table | None]] = []
        for nodes in card.nodes:
            table = self._table(nodes, ("id",)) if nodes.file else None
            self._nodes.append((nodes, table))
            sizes.append(table.num_bytes if table is not None else 0)
        self.total_bytes = sum(sizes)
        of_nodes: list[Part] = [
            partial(self._node_chunks, nodes, table)
            for nodes, table in self._nodes
            if not nodes.join
        ]
        self._parts = [*of_nodes, *of_edges]

    @property
    def num_parts(self) -> int:
        """How many node types and tables of edges there are."""
        return len(self._parts)

    def keep_part(self, number: int) -> None:
        """Forget all of them but one."""
        self._parts = [self._parts[number]]

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the nodes of every type, then the edges of every table.

        Raises:
            InputError: a line does not fit, a node has two rows or a row no node, or
                arrays have other numbers of rows than their table.
        """
        for chunks in self._parts:
            yield from chunks()

    def _node_chunks(self, card: NodeCard, table: Table | None) -> Iterator[NodeChunk]:
        joins = [
            Joined(other, card.type)
            for nodes, other in self._nodes
            if nodes.join and nodes.type == card.type and other is not None
        ]
        refuse_same_columns(joins, card.type)
        arrays = NodeArrays(card, self._folder)
        what = f"type {card.type!r}" if table is None else table.file.name
        if table is None:
            arrays.check(what, card.count)
        rows = 0
        for ids, columns, num_bytes in _listed(card, table):
            features = {
                name: columns.pop(name)
                for name in list(columns)
                if getattr(columns[name], "ndim", 1) == 2
            }
            last = rows + len(ids)
            columns |= arrays.columns(rows, last)
            features |= arrays.features(rows, last)
            for join in joins:
                more, more_features = join.take(ids)
                columns |= more
                features |= more_features
            rows = last
            yield NodeChunk(
                ids=ids,
                node_type=card.type,
                columns=columns,
                features=features,
                bytes_read=num_bytes,
            )
        arrays.check(what, rows)
        for join in joins:
            join.check()

    def _open_edges(self, card: EdgeCard) -> tuple[Part, int]:
        """Look at a table of edges; return what reads it, and its size."""
        if card.layout != "table":
            file = file_in(self._folder, card.file)
            read = list_chunks if card.layout == "lists" else matrix_chunks
            return (lambda: read(file, card, self._num_threads)), file.num_bytes
        table = self._table(card, ("src", "dst"))
        if hasattr(table, "layout"):
            self._text_tables.setdefault(tuple(card.type), []).append(table)
        self.has_millionths |= table.has_millionths
        counted = {it.type: it for it in self._card.nodes if it.count >= 0}
        ends = [counted.get(card.type[0]), counted.get(card.type[2])]
        return (lambda: _table_chunks(table, card, ends)), table.num_bytes

    def _table(self, card: TableCard, id_columns: tuple[str, ...]) -> Table:
        batches = self._tables.get(card.file)
        return Table(card, self._folder, id_columns, self._num_threads, batches)


def _listed(
    card: NodeCard, table: Table | None
) -> Iterator[tuple[Any, dict[str, Any], int]]:
    """Yield ids, columns and bytes of a table, or of numbers that stand for one."""
    if table is None:
        for begin in range(0, card.count, CHUNK_ROWS):
            end = min(begin + CHUNK_ROWS, card.count)
            yield np.arange(begin, end, dtype=np.int64) + card.first, {}, 0
        return
    is_text = hasattr(table, "layout") and not card.where
    unique = RepeatedNodes(table.file, table.layout, skip=table.skip) if is_text else None
    for rows in table.read():
        columns = rows.columns
        ids = columns.pop("id")
        if unique is not None:
            unique.add(ids)
        yield ids, columns, rows.bytes_read
    if unique is not None:
        unique.check()


def _table_chunks(
    table: Table, card: EdgeCard, counted: list[NodeCard | None]
) -> Iterator[EdgeChunk]:
    is_empty = True
    for rows in table.read():
        columns = rows.columns
        src, dst = columns.pop("src"), columns.pop("dst")
        is_empty &= not len(src)
        for ids, nodes in zip((src, dst), counted, strict=True):
            if nodes is not None and isinstance(ids, np.ndarray):
                _refuse_unknown(table, rows.first, ids, nodes)
        yield EdgeChunk(
            src=src,
            dst=dst,
            edge_type=card.edge_type,
            split=card.split,
            columns=columns,
            bytes_read=rows.bytes_read,
        )
    if is_empty:
        raise InputError(f"{table.file.name}: no edge in the file, expected at least one")


def _refuse_unknown(table: Table, first: int, ids: Any, nodes: NodeCard) -> None:
    """Refuse edges to nodes beyond those that are counted.

    Raises:
        InputError: there is one.
    """
    last = nodes.first + nodes.count
    wrong = np.flatnonzero((ids < nodes.first) | (ids >= last))
    if len(wrong):
        row = int(wrong[0])
        where = table.file.name if table.card.where else table.line(first + row)
        raise InputError(
            f"{where}: unknown node {ids[row]}, expected {nodes.first} to {last - 1}, the "
            f"nodes of type {nodes.type!r}"
        )


def describe_source(
    mapping: Mapping[str, Any], folder: Path, *, where: str, num_threads: int | None = None
) -> DescribedSource:
    """Make a source of a description that is already parsed.

    Raises:
        ConfigError: the description does not make sense.
        InputError: a file is missing, or its first lines do not fit.
    """
    card = TablesCard.parse(mapping, where)
    return DescribedSource(where, card, folder, num_threads=num_threads)


def open_tables(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one description.

    Raises:
        ConfigError: it does not make sense, or options go with its tables.
        InputError: one of its files is missing, or its first lines do not fit.
    """
    if options.columns or options.roles or options.skip or options.separator:
        raise ConfigError(
            "a tables file says itself what columns there are; put columns, separator and "
            "skip into it"
        )
    if len(files) != 1:
        raise InputError(f"{files[1].name}: a second description, expected one")
    path = files[0].path
    source = describe_source(
        load_toml(path), path.parent, where=str(path), num_threads=options.num_threads
    )
    if options.is_undirected:
        source.is_directed = False
    return source


formats.register("tables")(
    Format(
        open=open_tables,
        suffixes=(".toml",),
        about="a TOML file that describes tables of nodes and edges",
    )
)
