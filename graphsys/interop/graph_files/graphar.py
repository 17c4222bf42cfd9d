"""GraphAr archives, version 1: YAML descriptions, chunks of vertices and edges in Parquet.

Vertices have their node's number. The id is the primary property, in a group of its own;
all else is a second group. Edges are ordered by source, with offsets; an undirected edge
is there once, and its type says ``directed: false``.

References:
    GraphAr, "Format Specification", github.com/apache/incubator-graphar.
"""

import re
from collections.abc import Iterator
from json import dumps
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from graphsys.core.progress import Progress
from graphsys.interop.graph_files.blocks import EdgeBlock, EdgeRows, node_blocks
from graphsys.interop.graph_files.column_types import fitted, graphar_type
from graphsys.storage.manifest import file_name
from graphsys.storage.reader import GraphReader

SYSTEM = "GraphAr"
VERTEX_CHUNK: Final = 1 << 18  # what the specification recommends
EDGE_CHUNK: Final = 1 << 22
_VERSION = "gar/v1"
_NOT_PLAIN: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def write_graphar(
    graph: GraphReader,
    folder: Path,
    rows: int,
    progress: Progress,
    *,
    name: str = "graph",
    vertex_chunk: int = VERTEX_CHUNK,
    edge_chunk: int = EDGE_CHUNK,
) -> None:
    """Write a graph as a GraphAr archive.

    Args:
        graph: An open graph.
        folder: An empty folder.
        rows: Nodes or edges at a time.
        progress: Receives a stage for each type.
        name: Of the graph.
        vertex_chunk: Vertices of a chunk.
        edge_chunk: Edges of a chunk.

    Raises:
        ConfigError: A column has a type that GraphAr has not.
    """
    vertices: list[str] = []
    edges: list[str] = []
    for node_type in graph.node_types:
        at = f"vertex/{file_name(node_type)}/"
        types = _write_vertices(graph, node_type, folder / at, vertex_chunk, rows, progress)
        vertices.append(f"{file_name(node_type)}.vertex.yml")
        said = [f"type: {_scalar(node_type)}", f"chunk_size: {vertex_chunk}"]
        said += [f"prefix: {_scalar(at)}", "property_groups:", *_group("id", types)]
        if len(types) > 1:
            said += _group("properties", types)
        _write_lines(folder / vertices[-1], said)
    for edge_name in graph.manifest.edge_types:
        kind = graph.edge_type(edge_name)
        label = _label("_".join(map(file_name, kind)), edges)
        at = f"edge/{label}/"
        chunks = _EdgeChunks(folder / at / "ordered_by_source", vertex_chunk, edge_chunk)
        types = _write_edges(graph, edge_name, chunks, rows, progress)
        edges.append(f"{label}.edge.yml")
        said = [f"src_type: {_scalar(kind.src_type)}"]
        said += [f"edge_type: {_scalar(kind.relation)}"]
        said += [f"dst_type: {_scalar(kind.dst_type)}", f"chunk_size: {edge_chunk}"]
        said += [f"src_chunk_size: {vertex_chunk}", f"dst_chunk_size: {vertex_chunk}"]
        said += [f"directed: {str(graph.is_directed_type(edge_name)).lower()}"]
        said += [f"prefix: {_scalar(at)}", "adj_lists:", "  - ordered: true"]
        said += ["    aligned_by: src", "    prefix: ordered_by_source/"]
        said += ["    file_type: parquet"]
        if types:
            said += ["property_groups:", *_group("properties", types)]
        _write_lines(folder / edges[-1], said)
    said = [f"name: {_scalar(name)}", *_listed("vertices", vertices)]
    _write_lines(folder / f"{file_name(name)}.graph.yml", said + _listed("edges", edges))


def _write_vertices(
    graph: GraphReader,
    name: str,
    folder: Path,
    size: int,
    rows: int,
    progress: Progress,
) -> dict[str, str]:
    """Write the chunks of a node type; return what GraphAr calls its columns' types."""
    count = graph.num_nodes_of(name)
    progress.stage(f"nodes {name}", count, "nodes")
    is_number = graph.manifest.node_types[name].id_type == "int64"
    types = {"id": "int64" if is_number else "string"}
    ids, others = _Chunks(folder / "id", size), _Chunks(folder / "properties", size)
    first = 0
    for block in node_blocks(graph, name, rows):
        where = f"nodes of type {name!r}"
        table, types = fitted(block.whole_table, graphar_type, where, SYSTEM)
        numbers = np.arange(first, first + table.num_rows, dtype=np.int64)
        table = table.add_column(0, "_graphArVertexIndex", pa.array(numbers))
        ids.append(table.select(["_graphArVertexIndex", "id"]))
        if len(types) > 1:
            others.append(table.drop_columns(["id"]))
        first += table.num_rows
        progress.advance(table.num_rows)
    ids.close()
    others.close()
    folder.mkdir(parents=True, exist_ok=True)
    _write_count(folder / "vertex_count", count)
    return types


def _write_edges(
    graph: GraphReader, name: str, chunks: "_EdgeChunks", rows: int, progress: Progress
) -> dict[str, str]:
    """Write the chunks of an edge type; return what GraphAr calls its columns' types."""
    found, types = EdgeRows(graph, name), dict[str, str]()
    progress.stage(f"edges {name}", found.num_entries, "edges")
    chunks.begin(found.num_rows)
    for block in found.blocks(rows):
        columns = None
        if block.columns:
            table = pa.table(block.columns)
            columns, types = fitted(table, graphar_type, f"edges {name!r}", SYSTEM)
        chunks.append(
            block,
            columns,
            np.flatnonzero(block.dst >= block.src) if found.is_symmetric else None,
        )
        progress.advance(len(block.dst))
    chunks.close()
    return types


class _Chunks:
    """Parquet files ``chunk0``, ``chunk1`` ... of so many rows each, but for the last."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._size = folder, size
        self._number = self._filled = 0
        self._writer: pq.ParquetWriter | None = None

    def append(self, table: pa.Table) -> None:
        """Append rows."""
        first = 0
        while first < table.num_rows:
            some = table.slice(first, self._size - self._filled)
            if self._writer is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                path = self._folder / f"chunk{self._number}"
                self._writer = pq.ParquetWriter(path, table.schema, compression="zstd")
            self._writer.write_table(some)
            self._filled += some.num_rows
            first += some.num_rows
            if self._filled == self._size:
                self.close()

    def close(self) -> None:
        """Complete the chunk that was begun."""
        if self._writer is not None:
            self._writer.close()
            self._writer, self._filled = None, 0
            self._number += 1


class _EdgeChunks:
    """The edges of a type, ordered by source, in parts by the chunk of the source."""

    def __init__(self, folder: Path, vertex_chunk: int, edge_chunk: int) -> None:
        self._folder, self._size, self._edge_chunk = folder, vertex_chunk, edge_chunk
        self._part = self._num_rows = 0

    def begin(self, num_rows: int) -> None:
        """Say how many nodes edges may start from."""
        self._num_rows = num_rows
        self._folder.mkdir(parents=True)
        _write_count(self._folder / "vertex_count", num_rows)
        self._begin_part()

    def append(
        self, block: EdgeBlock, columns: pa.Table | None, kept: npt.NDArray[Any] | None
    ) -> None:
        """Append edges; of a block, those at the places ``kept``, or all."""
        src, dst = block.src, block.dst
        if kept is not None:
            src, dst = src[kept], dst[kept]
            columns = None if columns is None else columns.take(pa.array(kept))
        first = 0
        while first < len(src):
            begin = self._part * self._size
            end = first + int(np.searchsorted(src[first:], begin + self._size))
            some = slice(first, end)
            if end > first:
                self._degrees += np.bincount(
                    src[some] - begin, minlength=len(self._degrees)
                )
                self._lists.append(
                    pa.table({"_graphArSrcIndex": src[some], "_graphArDstIndex": dst[some]})
                )
                if columns is not None:
                    self._properties.append(columns.slice(first, end - first))
            if end < len(src):
                self._end_part()
            first = end

    def close(self) -> None:
        """Complete all parts; those without edges have offsets too."""
        while self._part * self._size < self._num_rows:
            self._end_part()

    def _begin_part(self) -> None:
        rows = max(min(self._size, self._num_rows - self._part * self._size), 0)
        self._degrees = np.zeros(rows, dtype=np.int64)
        part = f"part{self._part}"
        self._lists = _Chunks(self._folder / "adj_list" / part, self._edge_chunk)
        self._properties = _Chunks(self._folder / "properties" / part, self._edge_chunk)

    def _end_part(self) -> None:
        self._lists.close()
        self._properties.close()
        offsets = np.concatenate([[0], np.cumsum(self._degrees)])
        folder = self._folder / "offset"
        folder.mkdir(exist_ok=True)
        table = pa.table({"_graphArOffset": pa.array(offsets, pa.int64())})
        pq.write_table(table, folder / f"chunk{self._part}", compression="zstd")
        _write_count(self._folder / f"edge_count{self._part}", int(offsets[-1]))
        self._part += 1
        self._begin_part()


def _label(text: str, files: list[str]) -> str:
    """Return a label that no file has yet: of (a_b, c, d) and (a, b_c, d), say."""
    label, number = text, 2
    while f"{label}.edge.yml" in files:
        label, number = f"{text}_{number}", number + 1
    return label


def _write_count(path: Path, count: int) -> None:
    path.write_bytes(count.to_bytes(8, "little"))


def _group(prefix: str, types: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a group: of the id, or of all else."""
    yield f"  - prefix: {prefix}/"
    yield "    file_type: parquet"
    yield "    properties:"
    for name, kind in types.items():
        if (name == "id") == (prefix == "id"):
            yield f"      - name: {_scalar(name)}"
            yield f"        data_type: {kind}"
            yield f"        is_primary: {str(name == 'id').lower()}"


def _listed(key: str, names: list[str]) -> list[str]:
    return [f"{key}:", *(f"  - {_scalar(it)}" for it in names)] if names else [f"{key}: []"]


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join([*lines, f"version: {_VERSION}"]) + "\n", encoding="utf-8")


def _scalar(text: str) -> str:
    """Return a text as YAML, within quotes where it could be read as anything else."""
    if (
        re.fullmatch(r"[A-Za-z_][\w./-]*", text, re.ASCII)
        and text.lower() not in _NOT_PLAIN
    ):
        return text
    quoted = dumps(text, ensure_ascii=False)
    return re.sub(
        r"[\x7f-\xa0\u2028\u2029\ufeff]", lambda it: f"\\u{ord(it[0]):04x}", quoted
    )
