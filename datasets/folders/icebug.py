"""NetworKit's icebug-disk folders: ``schema.cypher``, and CSR in Parquet files.

The schema names tables of nodes, with their primary keys, and of edges, with both ends;
``nodes_NAME.parquet`` holds the nodes, ``indices_NAME.parquet`` a ``target`` and columns
for each edge, ``indptr_NAME.parquet`` the offsets of rows. Primary keys are ids, lists of
floating-point numbers features. Edges have a direction, unless all files say otherwise
under the key ``graphsys_directed``, as our own do. The ids of all nodes are held in memory
while edges are read.

References:
    Icebug Format, github.com/Ladybug-Memory/icebug-format, README and doc/spec.md.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EdgeType
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.columns import graph_column, id_column
from graphsys.datasets.files import InputFile
from graphsys.datasets.folders.numbered_ids import (
    ids_at,
    joined_ids,
    node_chunk,
    places_of,
)
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

SLICE_ROWS: Final = 1 << 18
_NAME: Final = r"`?([^`\s(]+)`?"
_NODES: Final = re.compile(
    rf"CREATE\s+NODE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}\s*\((.*?)"
    r"PRIMARY\s+KEY\s*\(\s*`?([^`)]+?)`?\s*\)",
    re.IGNORECASE | re.DOTALL,
)
_EDGES: Final = re.compile(
    rf"CREATE\s+REL\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}\s*\(\s*FROM\s+"
    r"`?([^`\s,)]+)`?\s+TO\s+`?([^`\s,)]+)`?",
    re.IGNORECASE,
)


class IcebugSource(Source):
    """One folder, its schema read."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.name = str(path)
        self._folder, self._ids_kind = path.parent, options.ids
        self._files = {it.name.lower(): it for it in self._folder.iterdir()}
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as err:
            raise InputError(f"{path}: cannot be read: {err}") from err
        self._keys = {it[1]: it[3] for it in _NODES.finditer(text)}
        self._ends = {it[1]: (it[2], it[3]) for it in _EDGES.finditer(text)}
        if not self._keys:
            raise InputError(
                f"{path}: no CREATE NODE TABLE with a PRIMARY KEY, expected icebug's schema"
            )
        marks = [
            self._open("indices", name).schema_arrow.metadata or {} for name in self._ends
        ]
        self._names = {
            name: _told(mark, name) for name, mark in zip(self._ends, marks, strict=True)
        }
        self._is_once = bool(marks) and all(
            it.get(b"graphsys_directed") == b"false" for it in marks
        )
        self.is_directed = not options.is_undirected and not self._is_once

    def _open(self, kind: str, name: str) -> Any:
        """Open a file of a table.

        Raises:
            InputError: it is missing or no Parquet.
        """
        import pyarrow.parquet as pq

        path = self._folder / f"{kind}_{name}.parquet"
        path = self._files.get(path.name.lower(), path)
        try:
            file = pq.ParquetFile(path)
            file.schema_arrow.names  # noqa: B018 # which may be no text
            return file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as err:
            text = " ".join(str(err).split())
            raise InputError(f"{path}: no Parquet file of icebug: {text}") from err

    def _batches(
        self, kind: str, name: str, columns: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        file = self._open(kind, name)
        where = f"{self._folder}: {kind}_{name}.parquet"
        for column in columns:
            if column not in file.schema_arrow.names:
                raise InputError(f"{where}: lacks column {column!r}, expected it")
        try:
            yield from file.iter_batches(batch_size=SLICE_ROWS)
        except (pa.ArrowException, OSError) as err:
            text = " ".join(str(err).split())
            raise InputError(f"{where}: no Parquet file of icebug: {text}") from err

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the nodes of every table, then the edges.

        Raises:
            InputError: a file is missing, damaged, or does not fit the others.
        """
        ids: dict[str, Any] = {}
        types: dict[str, str] = {}
        for name, key in self._keys.items():
            found: list[Any] = []
            mark = self._open("nodes", name).schema_arrow.metadata or {}
            types[name.lower()] = _told(mark, name)
            where, first = f"{self._folder}: nodes_{name}.parquet", 0
            for batch in self._batches("nodes", name, (key,)):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                own = columns.pop(key)
                own = id_column(own, kind=self._ids_kind, where=where, first_row=first)
                found.append(own)
                yield node_chunk(types[name.lower()], own, columns, where, first)
                first += batch.num_rows
            ids[name.lower()] = joined_ids(found)
        for name, pair in self._ends.items():
            yield from self._edges(name, pair, types, ids)

    def _edges(
        self,
        name: str,
        pair: tuple[str, str],
        types: Mapping[str, str],
        ids: Mapping[str, Any],
    ) -> Iterator[EdgeChunk]:
        for end in pair:
            if end.lower() not in ids:
                raise InputError(
                    f"{self.name}: edges {name!r} to nodes {end!r}, expected one of "
                    f"{', '.join(self._keys)}"
                )
        own, other = (ids[it.lower()] for it in pair)
        ptr = self._offsets(name, len(own))
        kind = EdgeType(types[pair[0].lower()], self._names[name], types[pair[1].lower()])
        where, first = f"{self._folder}: indices_{name}.parquet", 0
        for batch in self._batches("indices", name, ("target",)):
            if first + batch.num_rows > ptr[-1]:
                break
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            dst = places_of(columns.pop("target"), where)
            at = np.arange(first, first + batch.num_rows)
            src = np.searchsorted(ptr, at, side="right") - 1
            first += batch.num_rows
            if self._is_once and kind.src_type == kind.dst_type:  # else there once
                kept = src <= dst
                src, dst, mask = src[kept], dst[kept], pa.array(kept)
                columns = {key: it.filter(mask) for key, it in columns.items()}
            yield EdgeChunk(
                src=ids_at(own, src, where),
                dst=ids_at(other, dst, where),
                edge_type=kind,
                columns={
                    key: graph_column(key, it, f"{where}: {key}")
                    for key, it in columns.items()
                },
            )
        if first != ptr[-1]:
            raise InputError(
                f"{where}: other than the {ptr[-1]} edges of indptr_{name}.parquet"
            )

    def _offsets(self, name: str, rows: int) -> npt.NDArray[np.int64]:
        where = f"{self._folder}: indptr_{name}.parquet"
        parts = [
            places_of(it.column("ptr"), where)
            for it in self._batches("indptr", name, ("ptr",))
        ]
        ptr = np.concatenate([*parts, np.empty(0, dtype=np.int64)])
        if len(ptr) != rows + 1 or ptr[0] != 0 or (np.diff(ptr) < 0).any():
            raise InputError(
                f"{where}: {len(ptr)} offsets, expected {rows + 1} that begin with 0 and "
                "never fall"
            )
        return ptr


def _told(mark: Mapping[bytes, bytes], name: str) -> str:
    """Return a type's name: what our own files say, or the table's."""
    return mark.get(b"graphsys_type", name.encode()).decode("utf-8", "replace")


def _find(folder: Path) -> list[Path]:
    path = folder / "schema.cypher"
    is_here = path.is_file() and any(folder.glob("nodes_*.parquet"))
    return [path] if is_here else []


def open_icebug(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one folder.

    Raises:
        InputError: a file is missing, or there are several schemas.
    """
    if options.columns or options.roles or options.skip or options.edge_type:
        raise ConfigError("icebug's folders name their types; leave those options out")
    if len(files) != 1:
        raise InputError(f"{files[1].name}: a second folder, expected one schema.cypher")
    return IcebugSource(files[0].path, options)


formats.register("networkit")(
    Format(
        open=open_icebug,
        patterns=("schema.cypher",),
        find=_find,
        about="NetworKit's icebug-disk folders, schema.cypher",
    )
)
