"""NetworKit's icebug-disk, version 1: CSR in Parquet files, and a schema in Cypher.

``nodes_NAME.parquet`` holds the nodes, ``id`` first; ``indices_NAME.parquet`` a ``target``
(the row of a node) and columns for each edge, by source; ``indptr_NAME.parquet`` the
offsets of rows. Edges have a direction: undirected ones are there both ways, and the
file says so under the key ``graphsys_directed``.

References:
    Icebug Format, github.com/Ladybug-Memory/icebug-format, README and doc/spec.md.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from graphsys.core.progress import Progress
from graphsys.interop.graph_files.blocks import EdgeRows, node_blocks
from graphsys.interop.graph_files.column_types import fitted, icebug_type
from graphsys.storage.reader import GraphReader

SYSTEM = "icebug"
_STORED = "WITH (storage = '', format = 'icebug-disk');"


def write_icebug(graph: GraphReader, folder: Path, rows: int, progress: Progress) -> None:
    """Write a graph as icebug-disk.

    Args:
        graph: An open graph.
        folder: An empty folder.
        rows: Nodes or edges at a time.
        progress: Receives a stage for each type.

    Raises:
        ConfigError: A column has a type that is not there.
    """
    nodes = _table_names({name: (name,) for name in graph.node_types})
    kinds = {name: graph.edge_type(name) for name in graph.manifest.edge_types}
    relations = [kind.relation for kind in kinds.values()]
    edges = _table_names(
        {
            name: (kind.relation,) if relations.count(kind.relation) == 1 else tuple(kind)
            for name, kind in kinds.items()
        },
        taken=nodes.values(),
    )
    schema = []
    for name, table in nodes.items():
        types = _write_nodes(graph, name, folder / f"nodes_{table}.parquet", rows, progress)
        stated = [f"{_quoted(column)} {kind}" for column, kind in types.items()]
        schema.append(
            f"CREATE NODE TABLE {table}({', '.join(stated)}, PRIMARY KEY(id)) {_STORED}"
        )
    for name, table in edges.items():
        kind = kinds[name]
        types = _write_edges(graph, name, folder, table, rows, progress)
        stated = [f"FROM {nodes[kind.src_type]} TO {nodes[kind.dst_type]}"]
        stated += [f"{_quoted(column)} {it}" for column, it in types.items()]
        schema.append(f"CREATE REL TABLE {table}({', '.join(stated)}) {_STORED}")
    (folder / "schema.cypher").write_text("\n".join(schema) + "\n", encoding="utf-8")


def _write_nodes(
    graph: GraphReader, name: str, path: Path, rows: int, progress: Progress
) -> dict[str, str]:
    """Write the nodes of a type; return the types of their columns."""
    progress.stage(f"nodes {name}", graph.num_nodes_of(name), "nodes")
    is_number = graph.manifest.node_types[name].id_type == "int64"
    ids = pa.int64() if is_number else pa.string()
    types = {"id": icebug_type(ids)[0]}  # type: ignore[index] # both are there
    with _File(path, graphsys_type=name) as file:
        for block in node_blocks(graph, name, rows):
            where = f"nodes of type {name!r}"
            table, types = fitted(block.whole_table, icebug_type, where, SYSTEM)
            file.append(table)
            progress.advance(table.num_rows)
        file.finish(pa.schema([("id", ids)]))
    return types


def _write_edges(
    graph: GraphReader, name: str, folder: Path, table: str, rows: int, progress: Progress
) -> dict[str, str]:
    """Write the edges of a type; return the types of their columns."""
    found, types = EdgeRows(graph, name), dict[str, str]()
    progress.stage(f"edges {name}", found.num_entries, "edges")
    is_directed = "true" if graph.is_directed_type(name) else "false"
    facts = {"graphsys_type": graph.edge_type(name).relation}
    facts["graphsys_directed"] = is_directed
    with _File(folder / f"indptr_{table}.parquet") as file:
        for offsets in found.offsets():
            file.append(pa.table({"ptr": offsets}))
    with _File(folder / f"indices_{table}.parquet", **facts) as file:
        for block in found.blocks(rows):
            columns = pa.table(block.columns) if block.columns else None
            made = pa.table({"target": block.dst})
            if columns is not None:
                where = f"edges {name!r}"
                columns, types = fitted(columns, icebug_type, where, SYSTEM)
                for column in columns.schema.names:
                    made = made.append_column(column, columns.column(column))
            file.append(made)
            progress.advance(made.num_rows)
        file.finish(pa.schema([("target", pa.int64())]))
    return types


class _File:
    """A Parquet file that says which version it is of."""

    def __init__(self, path: Path, **facts: str) -> None:
        self._path = path
        self._facts = {"icebug_disk_version": "v1", **facts}
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> "_File":
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def append(self, table: pa.Table) -> None:
        """Append rows."""
        self.finish(table.schema).write_table(table.cast(self._writer.schema))  # type: ignore[union-attr] # made

    def finish(self, schema: pa.Schema) -> pq.ParquetWriter:
        """Make the file, if no row was written."""
        if self._writer is None:
            schema = schema.remove_metadata().with_metadata(self._facts)
            self._writer = pq.ParquetWriter(self._path, schema, compression="zstd")
        return self._writer


def _table_names(
    names: dict[str, tuple[str, ...]], taken: Iterable[str] = ()
) -> dict[str, str]:
    """Return a table for each type: letters, digits and ``_``, all different."""
    used, found = {name.lower() for name in taken}, {}
    for key, words in names.items():
        plain = re.sub(r"\W", "_", "_".join(words), flags=re.ASCII) or "_"
        plain = f"_{plain}" if plain[0].isdigit() else plain
        table, number = plain, 2
        while table.lower() in used:
            table, number = f"{plain}_{number}", number + 1
        used.add(table.lower())
        found[key] = table
    return found


def _quoted(column: str) -> str:
    is_plain = re.fullmatch(r"[A-Za-z_]\w*", column, flags=re.ASCII) is not None
    return column if is_plain else "`" + column.replace("`", "``") + "`"
