"""From data in any shape to a delta of a store."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsys.core.errors import ConfigError
from graphsys.datasets.base import ColumnNames, read_options
from graphsys.datasets.build_store import is_paths
from graphsys.datasets.opening import open_source
from graphsys.datasets.readers.in_memory import from_object
from graphsys.datasets.signed_edges import SignedSource
from graphsys.datasets.table_spec.typed_tables import open_given
from graphsys.storage.folder_kinds import require_outside
from graphsys.storage.manifest import Manifest
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

if TYPE_CHECKING:
    from graphsys.storage.dynamic.append import AppendReport
    from graphsys.storage.reader import GraphReader


class _Sources(Source):
    """Several sources, one after the other."""

    def __init__(self, parts: Sequence[Source]) -> None:
        self.name = ", ".join(part.name for part in parts)
        self.is_directed = all(part.is_directed for part in parts)
        self.allows_nan = any(part.allows_nan for part in parts)
        self._parts = parts

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        for part in self._parts:
            yield from part.chunks()


def append(
    graph: "GraphReader | str | os.PathLike[str]",
    data: Any = None,
    *,
    nodes: Mapping[str, Any] | None = None,
    edges: Mapping[Any, Any] | None = None,
    delete: Any = None,
    missing_deletes: str = "error",
    format: str | None = None,
    ids: str = "auto",
    columns: ColumnNames = None,
    delete_columns: ColumnNames = None,
    separator: str | None = None,
    skip: int = 0,
    signed: bool = False,
    num_threads: int | None = None,
) -> "AppendReport[GraphReader]":
    """Add edges and nodes to a store and remove edges, at the cost of what changes.

    Args:
        graph: An open graph, which goes on showing what it showed, or a graph's folder.
        data: New edges: paths, or a Python object, as ``graphsys.ingest`` takes them.
        nodes: Table of new nodes of each type: a path, or a table of any library.
        edges: Table of new edges of each type, ``("user", "trusts", "user")``.
        delete: Edges to remove: paths or a Python object with ``src``, ``dst`` and, where
            edges have them, ``relation`` and ``time``, that of the deletion. All copies
            that the graph has before the append go; with a relation only those that have
            it, with a time only those that are not younger.
        missing_deletes: "error" to refuse deletions of what is not there, "count" to count
            them.
        format: Format of files; None to guess it.
        ids: "auto" (the graph's kind), "int" or "string".
        columns: Names of the columns of ``data``; of ``nodes`` and ``edges`` by type.
        delete_columns: Names of the columns of ``delete``.
        separator: What separates columns in text.
        skip: Lines to leave out at the beginning of each text file.
        signed: The sign of a new edge's weight becomes its relation, as ingest has it.
        num_threads: Threads that read ahead.

    Returns:
        Counts and the graph as it is now, open.

    Raises:
        InvalidGraphError: there is no graph.
        InputError: data cannot be read, or do not fit the graph (see
            ``graphsys.storage.dynamic.append``).
        ConfigError: nothing was given, or an option has a value that does not exist.
        StoreBusyError: another process writes to the graph.
    """
    from graphsys.storage.dynamic.append import append as append_source  # slow: numba

    path = Path(graph) if isinstance(graph, (str, os.PathLike)) else Path(graph.path)
    require_outside(path)
    manifest = Manifest.read(path)
    kinds = {node.id_type for node in manifest.node_types.values()}
    guards_names = ids == "auto" and kinds == {"large_string"}
    if guards_names:
        ids = "string"
    is_directed = not manifest.edge_types or any(
        edge.directed for edge in manifest.edge_types.values()
    )
    known = _known_kinds(manifest)
    how: dict[str, Any] = {
        "ids": ids,
        "separator": separator,
        "undirected": not is_directed,
        "num_threads": num_threads,
    }

    def opened(given: Any, names: ColumnNames) -> Source:
        if is_paths(given):
            return open_source(
                given,
                format=format,
                columns=names,
                skip=skip,
                guards_names=guards_names,
                known=known,
                **how,
            )
        return from_object(given, columns=names, **{k: how[k] for k in _OBJECT})

    parts = [] if data is None else [opened(data, columns)]
    if nodes or edges:
        named = columns if data is None else None
        options = read_options(columns=named, **how)
        options = replace(options, guards_names=guards_names, known=known)
        parts.append(open_given(nodes or {}, edges or {}, options, needs_edges=False))
    deletes = [] if delete is None else [opened(delete, delete_columns)]
    if not parts and not deletes:
        raise ConfigError("nothing to append: give edges, nodes, or edges to delete")
    source = parts[0] if len(parts) == 1 else _Sources(parts)
    if signed:
        source = SignedSource(source)
    return append_source(
        path, source if parts else None, deletes=deletes, missing_deletes=missing_deletes
    )


_OBJECT = ("ids", "undirected", "num_threads")


def _known_kinds(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Return the kinds of a graph's columns as readers have them, by type.

    A few lines of text say little: of ``007`` alone, or of an empty cell, not what it is in
    a column of names, or of numbers.
    """
    columns = {name: it.columns for name, it in manifest.node_types.items()}
    columns |= {",".join(it.edge_type): it.columns for it in manifest.edge_types.values()}
    if len(manifest.edge_types) == 1:
        columns[""] = next(iter(manifest.edge_types.values())).columns
    return {
        kind: {
            name: "float" if type_ in ("double", "float") else "string"
            for name, type_ in found.items()
            if name not in ("weight", "time", "relation")
            and (type_ in ("double", "float") or "string" in type_)
        }
        for kind, found in columns.items()
    }
