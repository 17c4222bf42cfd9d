"""Small stores for tests: a source of given chunks, and a store read back as Python."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from graphsys.core.types import EDGE, EdgeType
from graphsys.datasets import open_source
from graphsys.facade.graph import Graph
from graphsys.facade.ingest import for_users
from graphsys.storage import EdgeChunk, GraphReader, IngestReport, NodeChunk, Source, ingest


class ListSource(Source):
    """A source that yields given chunks."""

    name = "test"

    def __init__(
        self, chunks: Iterable[EdgeChunk | NodeChunk], *, is_directed: bool = True
    ) -> None:
        self._chunks = chunks
        self.is_directed = is_directed

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        yield from self._chunks


def edge_chunk(
    pairs: Iterable[tuple[Any, Any]],
    kind: EdgeType = EDGE,
    split: str = "train",
    **columns: Any,
) -> EdgeChunk:
    """Return a chunk of edges given as pairs of integers or of strings."""
    pairs = list(pairs)
    src, dst = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return EdgeChunk(
        src=as_ids(src), dst=as_ids(dst), edge_type=kind, split=split, columns=columns
    )


def as_ids(ids: list[Any]) -> Any:
    """Return ids as a numpy array of int64 or an Arrow array of strings."""
    if ids and isinstance(ids[0], str):
        return pa.array(ids, type=pa.string())
    return np.asarray(ids, dtype=np.int64)


def make_store(
    out: Path | str,
    *chunks: EdgeChunk | NodeChunk,
    is_directed: bool = True,
    **options: Any,
) -> IngestReport[Graph]:
    """Ingest chunks; warnings about the graph are not the test's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return for_users(ingest)(
            ListSource(chunks, is_directed=is_directed), out, **options
        )


class Edge(NamedTuple):
    """An edge as a user knows it: ids and values."""

    src: Any
    dst: Any
    relation: str | None
    values: tuple[tuple[str, Any], ...]


def read_edges(graph: GraphReader, name: str, split: str | None = None) -> list[Edge]:
    """Return the edges of a type and split in the sequence of buckets."""
    kind = graph.edge_type(name)
    src_ids = graph.node_ids(kind.src_type).to_pylist()
    dst_ids = graph.node_ids(kind.dst_type).to_pylist()
    src_offsets, dst_offsets = graph.offsets(kind.src_type), graph.offsets(kind.dst_type)
    found: list[Edge] = []
    for i, j in np.ndindex(len(src_offsets) - 1, len(dst_offsets) - 1):
        bucket = graph.bucket(name, i, j, split)
        src, dst = bucket.src + src_offsets[i], bucket.dst + dst_offsets[j]
        values: dict[str, list[Any]] = {k: v.to_pylist() for k, v in bucket.columns.items()}
        if bucket.weight is not None:
            values["weight"] = bucket.weight.tolist()
        if bucket.time is not None:
            values["time"] = bucket.time.tolist()
        names = graph.relations(name)
        for k in range(bucket.num_edges):
            relation = None
            if names is not None and bucket.relation is not None:
                relation = names[bucket.relation[k]]
            row = tuple(sorted((key, column[k]) for key, column in values.items()))
            found.append(Edge(src_ids[src[k]], dst_ids[dst[k]], relation, row))
    return found


def pairs_of(
    graph: GraphReader, name: str = "edge", split: str | None = None
) -> Counter[Any]:
    """Return the multiset of (src, dst) of an edge type."""
    return Counter((edge.src, edge.dst) for edge in read_edges(graph, name, split))


def read_file_edges(path: Path | str, options: str = "") -> list[tuple[str, str]]:
    """Return the ends of a file's edges as texts; options as on the command line."""
    given: dict[str, Any] = dict(re.findall(r"--(\w+) (\S+)", options))
    skip = int(given.pop("skip", 0))
    rows: list[tuple[str, str]] = []
    for chunk in open_source(path, skip=skip, **given).chunks():
        if isinstance(chunk, EdgeChunk):
            ends = (map(str, ids.tolist()) for ids in (chunk.src, chunk.dst))
            rows += zip(*ends, strict=True)
    return rows
