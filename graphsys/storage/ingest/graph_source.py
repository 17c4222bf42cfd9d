"""A store as a source: for writing it again, partitioned or ordered in another way."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.types import Bucket, EdgeType
from graphsys.storage.reader import GraphReader
from graphsys.storage.source import EdgeChunk, NodeChunk, Source
from graphsys.storage.views import EdgeBucket
from graphsys.storage.write import times

_CHUNK_ROWS = 1 << 20


class GraphSource(Source):
    """Reads a whole store: all nodes in the order of their numbers, then all edges.

    Args:
        graph: The store, open.
        name: What to call it; the store's path by default.
    """

    allows_nan = True  # what is in a store was accepted before

    def __init__(self, graph: GraphReader, name: str | None = None) -> None:
        self.name = name or str(graph.path)
        self.is_directed = graph.is_directed
        self.total_bytes = None
        self._graph = graph

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield nodes partition by partition, then edges bucket by bucket."""
        graph = self._graph
        for node_type in graph.node_types:
            sizes = np.diff(graph.offsets(node_type))
            # a partition without nodes does not know the others' columns
            for part in np.flatnonzero(sizes).tolist() or [0]:
                for begin in range(0, max(int(sizes[part]), 1), _CHUNK_ROWS):
                    yield self._nodes(node_type, part, begin)
        for edge_type in graph.edge_types:
            src_ids = graph.node_ids(edge_type.src_type).combine_chunks()
            dst_ids = graph.node_ids(edge_type.dst_type).combine_chunks()
            for split in graph.splits(edge_type):
                yield self._no_edges(edge_type, split)
                for i, j in graph.buckets(edge_type, split):
                    bucket = graph.bucket(edge_type, i, j, split)
                    src = _Numbered(src_ids, int(graph.offsets(edge_type.src_type)[i]))
                    dst = _Numbered(dst_ids, int(graph.offsets(edge_type.dst_type)[j]))
                    relations = graph.relations(edge_type)
                    unit = graph.time_unit(edge_type)
                    for begin in range(0, bucket.num_edges, _CHUNK_ROWS):
                        piece = slice(begin, begin + _CHUNK_ROWS)
                        chunk = EdgeChunk(
                            src=src.take(bucket.src[piece]),
                            dst=dst.take(bucket.dst[piece]),
                            edge_type=edge_type,
                            split=split,
                            columns=_columns(bucket, piece, relations, unit),
                        )
                        yield from self._parts(chunk, bucket, i, j, piece)

    def _parts(
        self, chunk: EdgeChunk, bucket: EdgeBucket, i: int, j: int, piece: slice
    ) -> Iterator[EdgeChunk]:
        """Yield a chunk, as it is."""
        yield chunk

    def _nodes(self, node_type: str, part: int, begin: int) -> NodeChunk:
        """Return a million nodes, whose shared rows are repeated."""
        graph = self._graph
        table = graph.nodes(node_type, part).slice(begin, _CHUNK_ROWS)
        features = {}
        for name in graph.feature_names(node_type):
            rows, places = graph.feature_rows(node_type, part, name)
            piece = slice(begin, begin + _CHUNK_ROWS)
            features[name] = rows[piece] if places is None else rows[places[piece]]
        columns = {
            name: table.column(name).combine_chunks()
            for name in table.column_names
            if name != "id"
        }
        return NodeChunk(
            ids=as_ids(table.column("id").combine_chunks()),
            node_type=node_type,
            columns=columns,
            features=features,
        )

    def _no_edges(self, edge_type: EdgeType, split: str) -> EdgeChunk:
        """Return an empty chunk, so that types and splits without edges are kept too."""
        graph, nothing = self._graph, slice(0, 0)
        places = (
            (s, ij) for s in graph.splits(edge_type) for ij in graph.buckets(edge_type, s)
        )
        where = next(places, (split, Bucket(0, 0)))
        bucket = graph.bucket(edge_type, *where[1], where[0])
        columns = dict(_columns(bucket, nothing, graph.relations(edge_type)))
        entry = graph.manifest.edge_types[graph.edge_type_name(edge_type)]
        for name in entry.columns.keys() - columns.keys():
            columns[name] = _nothing_of(entry.columns[name])
        if "time" in columns:
            none = np.empty(0, dtype=np.int64)
            columns["time"] = times.typed(none, entry.time_unit)
        ends = [
            as_ids(graph.node_ids(name).slice(0, 0).combine_chunks())
            for name in (edge_type.src_type, edge_type.dst_type)
        ]
        return EdgeChunk(
            src=ends[0], dst=ends[1], edge_type=edge_type, split=split, columns=columns
        )


class _Numbered:
    """Ids of one partition, by local number."""

    def __init__(self, ids: pa.Array, offset: int) -> None:
        self._ids, self._offset = ids, offset

    def take(self, local: npt.NDArray[Any]) -> Any:
        numbers = local.astype(np.int64) + self._offset
        return as_ids(self._ids.take(pa.array(numbers)))


def as_ids(ids: pa.Array) -> Any:
    """Return ids as a chunk has them: integers as NumPy, strings as Arrow."""
    return ids.to_numpy() if pa.types.is_integer(ids.type) else ids


def _nothing_of(kind: str) -> pa.Array:
    try:
        return pa.array([], type=pa.type_for_alias(kind))
    except ValueError:  # a nested type, of which no edge tells more
        return pa.nulls(0)


def _columns(
    bucket: EdgeBucket, piece: slice, relations: list[str] | None, unit: str = ""
) -> Mapping[str, Any]:
    columns: dict[str, Any] = {}
    if bucket.weight is not None:
        columns["weight"] = bucket.weight[piece]
    if bucket.time is not None:
        columns["time"] = times.typed(bucket.time[piece], unit)
    if bucket.relation is not None:
        codes = pa.array(bucket.relation[piece].astype(np.int32))
        columns["relation"] = pa.DictionaryArray.from_arrays(
            codes, pa.array(relations, type=pa.string())
        )
    length = len(bucket.src[piece])
    for name, values in bucket.columns.items():
        columns[name] = values.slice(piece.start, length)
    return columns
