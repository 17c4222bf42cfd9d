"""GraphAr archives: ``NAME.graph.yml``, descriptions of types, and chunks of tables.

Files of data are Parquet, CSV, ORC or lines of JSON. The primary property of a vertex is
its id, its place where there is none. Lists of floating-point numbers are features, other
properties columns. Of several orders of the same edges one is read. Where only some types
of edges are undirected, theirs are read both ways, and the graph is directed. The ids of
all vertices are held in memory while edges are read. Needs PyYAML (extra "all").

References:
    GraphAr, "Format Specification", github.com/apache/incubator-graphar.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
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
    taken_ids,
)
from graphsys.datasets.folders.yaml_files import load_yaml
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

SLICE_ROWS: Final = 1 << 18
_TYPES: Final = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("ms"),
}
_SOURCE, _DESTINATION = "_graphArSrcIndex", "_graphArDstIndex"
_DESCRIBED: Final = "as GraphAr describes graphs and types"


class GraphArSource(Source):
    """One archive, its descriptions read."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.name = str(path)
        self._ids_kind = options.ids
        graph = load_yaml(path, _DESCRIBED)
        with _Telling(path):
            _check_version(path, graph)
            folder = path.parent / str(graph.get("prefix") or "")
            listed = [
                [_Table(path.parent / str(it), folder) for it in graph.get(key) or []]
                for key in ("vertices", "edges")
            ]
        self._vertices = {str(it["type"]): it for it in listed[0]}
        self._edges = listed[1]
        directed = [bool(it.said.get("directed", True)) for it in self._edges]
        self.is_directed = not options.is_undirected and (any(directed) or not directed)
        self._is_doubled = {
            id(it): self.is_directed and not own
            for it, own in zip(self._edges, directed, strict=True)
        }

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the vertices of every type, then the edges.

        Raises:
            InputError: a file is missing, damaged, or does not fit its description.
        """
        ids: dict[str, Any] = {}
        for name, table in self._vertices.items():
            found: list[Any] = []
            for chunk in self._nodes(name, table):
                found.append(chunk.ids)
                yield chunk
            ids[name] = joined_ids(found)
        for table in self._edges:
            yield from self._edges_of(table, ids)

    def _nodes(self, name: str, table: "_Table") -> Iterator[NodeChunk]:
        count = table.count("vertex_count")
        size, where = table.size("chunk_size"), f"{self.name}: vertices of type {name!r}"
        groups = table.groups()
        primary = [n for group in groups for n, it in group.items() if it["is_primary"]]
        for chunk in range(-(-count // size)):
            columns: dict[str, Any] = {}
            rows = min(size, count - chunk * size)
            for group in groups:
                columns |= table.read(f"{group.prefix}chunk{chunk}", group, rows)
            for first in range(0, rows, SLICE_ROWS):
                begin, some = chunk * size + first, min(SLICE_ROWS, rows - first)
                part = {n: it.slice(first, some) for n, it in columns.items()}
                ids: Any = np.arange(begin, begin + some, dtype=np.int64)
                if primary:
                    key = part.pop(primary[0])
                    ids = id_column(key, kind=self._ids_kind, where=where, first_row=begin)
                yield node_chunk(name, ids, part, where, begin)

    def _edges_of(self, table: "_Table", ids: Mapping[str, Any]) -> Iterator[EdgeChunk]:
        kind = EdgeType(*(str(table[it]) for it in ("src_type", "edge_type", "dst_type")))
        ends = []
        for name in (kind.src_type, kind.dst_type):
            if name not in ids:
                raise InputError(
                    f"{table.path}: vertices of type {name!r}, expected one of those that "
                    f"{self.name} lists: {', '.join(ids)}"
                )
            ends.append(ids[name])
        order, by, file_type = _order_of(table)
        size, groups = table.size("chunk_size"), table.groups()
        count = table.count(f"{order}vertex_count")
        pair = {it: {"data_type": "int64"} for it in (_SOURCE, _DESTINATION)}
        lists = _Group(pair, "", file_type)
        for part in range(-(-count // table.size(f"{by}_chunk_size"))):
            num_edges = table.count(f"{order}edge_count{part}")
            for chunk in range(-(-num_edges // size)):
                at = f"part{part}/chunk{chunk}"
                rows = min(size, num_edges - chunk * size)
                columns = table.read(f"{order}adj_list/{at}", lists, rows)
                for group in groups:
                    columns |= table.read(f"{order}{group.prefix}{at}", group, rows)
                where = f"{table.folder / order}, {at}"
                yield from self._slices(table, kind, ends, columns, where)

    def _slices(
        self,
        table: "_Table",
        kind: EdgeType,
        ends: list[Any],
        columns: dict[str, Any],
        where: str,
    ) -> Iterator[EdgeChunk]:
        pair = [columns.pop(it) for it in (_SOURCE, _DESTINATION)]
        for first in range(0, len(pair[0]), SLICE_ROWS):
            both = [places_of(it.slice(first, SLICE_ROWS), where) for it in pair]
            found = [ids_at(ids, it, where) for ids, it in zip(ends, both, strict=True)]
            some = {
                name: graph_column(name, it.slice(first, SLICE_ROWS), f"{where}: {name}")
                for name, it in columns.items()
            }
            yield EdgeChunk(src=found[0], dst=found[1], edge_type=kind, columns=some)
            if self._is_doubled[id(table)] and kind.src_type == kind.dst_type:
                back = pa.array(np.flatnonzero(both[0] != both[1]))
                yield EdgeChunk(
                    src=taken_ids(found[1], back),
                    dst=taken_ids(found[0], back),
                    edge_type=kind,
                    columns={name: taken_ids(it, back) for name, it in some.items()},
                )


class _Group(dict[str, Mapping[str, Any]]):
    """Properties by name, and where and how they lie."""

    def __init__(self, properties: Any, prefix: str, file_type: str) -> None:
        super().__init__(properties)
        self.prefix, self.file_type = prefix, file_type


class _Table:
    """A type's description, and the files it tells of."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.said = (
            path,
            load_yaml(path, _DESCRIBED),
        )
        _check_version(path, self.said)
        self.folder = root / str(self.said.get("prefix") or "")

    def __getitem__(self, key: str) -> Any:
        if key not in self.said:
            raise InputError(f"{self.path}: lacks {key!r}, expected a type of GraphAr")
        return self.said[key]

    def size(self, key: str) -> int:
        """Return a number of rows that chunks have."""
        value = self[key]
        if type(value) is not int or value < 1:
            raise InputError(f"{self.path}: {key} is {value!r}, expected a number above 0")
        return value

    def count(self, name: str) -> int:
        """Return what a file of eight bytes counts."""
        path = self.folder / name
        try:
            data = path.read_bytes()
        except OSError as err:
            raise InputError(f"{path}: cannot be read: {err.strerror}") from err
        count = int.from_bytes(data, "little", signed=True)
        if len(data) != 8 or not 0 <= count < 1 << 48:
            raise InputError(f"{path}: {len(data)} bytes, expected a count in 8")
        return count

    def groups(self) -> list[_Group]:
        """Return the groups of properties."""
        found = []
        with _Telling(self.path):
            for it in self.said.get("property_groups") or []:
                properties = {str(p["name"]): p for p in it["properties"]}
                for one in properties.values():
                    one.setdefault("is_primary", False)
                prefix = str(it.get("prefix") or "_".join(properties)).rstrip("/") + "/"
                found.append(_Group(properties, prefix, str(it["file_type"])))
        return found

    def read(self, name: str, group: _Group, rows: int) -> dict[str, Any]:
        """Return the columns of a chunk.

        Raises:
            InputError: it is missing, damaged, or has other columns or rows.
        """
        path = self.folder / name
        reader = _READERS.get(group.file_type)
        if reader is None:
            raise InputError(
                f"{self.path}: file type {group.file_type!r}, expected one of "
                f"{', '.join(_READERS)}"
            )
        try:
            table = reader(path, group)
            names = table.schema.names  # which may be no text
        except (pa.ArrowException, OSError, ValueError) as err:
            text = " ".join(str(err).split())
            raise InputError(f"{path}: no {group.file_type} of GraphAr: {text}") from err
        if lacking := [it for it in group if it not in names]:
            raise InputError(
                f"{path}: lacks column {lacking[0]!r}, which {self.path} names"
            )
        if table.num_rows != rows:
            raise InputError(f"{path}: {table.num_rows} rows, expected {rows}")
        return {it: table.column(it).combine_chunks() for it in group}


def _read_parquet(path: Path, group: _Group) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.ParquetFile(path).read(columns=[*group])


def _read_csv(path: Path, group: _Group) -> pa.Table:
    from pyarrow import csv

    kinds = {name: _TYPES.get(str(it.get("data_type"))) for name, it in group.items()}
    known = {name: kind for name, kind in kinds.items() if kind is not None}
    return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=known))


def _read_orc(path: Path, group: _Group) -> pa.Table:
    from pyarrow import orc

    return orc.ORCFile(path).read(columns=[*group])


def _read_json(path: Path, group: _Group) -> pa.Table:
    del group
    from pyarrow import json

    return json.read_json(path)


_READERS: Final[Mapping[str, Callable[[Path, _Group], pa.Table]]] = {
    "parquet": _read_parquet,
    "csv": _read_csv,
    "orc": _read_orc,
    "json": _read_json,
}


def _order_of(table: _Table) -> tuple[str, str, str]:
    """Return the prefix of an order of the edges, what it goes by, and its file type."""
    with _Telling(table.path):
        lists = sorted(
            table["adj_lists"],
            key=lambda it: (it["aligned_by"] != "src", not it["ordered"]),
        )
        first = lists[0]
        by = str(first["aligned_by"])
        sort = "ordered" if first["ordered"] else "unordered"
        usual = f"{sort}_by_{'source' if by == 'src' else 'dest'}"
        prefix = str(first.get("prefix") or usual).rstrip("/") + "/"
        return prefix, by, str(first["file_type"])


class _Telling:
    """Says of what a description lacks where that is."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, err: BaseException | None, trace: object) -> None:
        wrong = (KeyError, TypeError, AttributeError, ValueError, IndexError)
        if isinstance(err, wrong) and not isinstance(err, InputError):
            raise InputError(
                f"{self._path}: lacks or misplaces {err}, expected a GraphAr description"
            ) from err


def _check_version(path: Path, said: Mapping[str, Any]) -> None:
    version = str(said.get("version", "gar/v1"))
    if re.match(r"gar/v1\b", version) is None:
        raise InputError(f"{path}: version {version!r:.40}, expected gar/v1")


def _find(folder: Path) -> list[Path]:
    return sorted(it for it in folder.glob("*.graph.yml") if it.is_file())


def open_graphar(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one archive.

    Raises:
        InputError: a description is missing, of another version, or there are several.
        MissingDependencyError: PyYAML is not installed.
    """
    if options.columns or options.roles or options.skip or options.edge_type:
        raise ConfigError("GraphAr archives name their types; leave those options out")
    if len(files) != 1:
        names = ", ".join(it.name for it in files[:3])
        raise InputError(f"{names}: {len(files)} graphs, expected one; name its file")
    return GraphArSource(files[0].path, options)


formats.register("graphar")(
    Format(
        open=open_graphar,
        patterns=("*.graph.yml",),
        find=_find,
        about="GraphAr archives, NAME.graph.yml and its folders",
    )
)
