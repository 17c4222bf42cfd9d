"""Which stored edges are meant by deletions: pairs, and what else is given of an edge."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import number_dtype
from graphsys.kernels.cpu.rows import splice as kernels
from graphsys.storage.deltas.edges import bucket_numbers, read_added, read_removed
from graphsys.storage.dynamic.append_input import AppendInput
from graphsys.storage.dynamic.schema import edge_type_of
from graphsys.storage.manifest import EdgeTypeEntry, before_deltas
from graphsys.storage.mapped_files import MappedFiles
from graphsys.storage.reader import GraphReader
from graphsys.storage.source import EdgeChunk, NodeChunk, Source
from graphsys.storage.stored_edges import StoredEdges
from graphsys.storage.views import EdgeBucket, bucket_of
from graphsys.storage.write import times
from graphsys.storage.write.row_store import as_arrow

Ints = npt.NDArray[np.int64]
ANY: Final = -1  # as the code of a relation
UNKNOWN: Final = -2


@dataclass
class Wanted:
    """Deletions of one edge type.

    Attributes:
        src: Number of each source, -1 where there is no such node.
        dst: Number of each destination.
        relation: Code of each relation, ``ANY`` or ``UNKNOWN``.
        time: Time of each deletion, or None where they have none.
        shown: How each is called, for messages.
    """

    src: Ints
    dst: Ints
    relation: Ints
    time: Ints | None
    shown: "list[tuple[Any, Any]]"


@dataclass
class FoundEdges:
    """Stored edges to remove from one split.

    Attributes:
        delta: The delta that added each; 0 for the first buckets.
        src: Numbers of the sources.
        dst: Numbers of the destinations.
        row: Row of each in its bucket, or in the delta's file.
        copy: How many rows just before it are the same pair.
        time: Time of each deletion, or None.
    """

    delta: Ints
    src: Ints
    dst: Ints
    row: Ints
    copy: Ints
    time: Ints | None

    def batch(self, num_src: int, num_dst: int) -> pa.RecordBatch:
        """Return the rows of the file of deletions."""
        columns = {
            "delta": self.delta.astype(np.uint32),
            "src": self.src.astype(number_dtype(num_src)),
            "dst": self.dst.astype(number_dtype(num_dst)),
            "row": self.row,
            "copy": self.copy,
        }
        if self.time is not None:
            columns["time"] = self.time
        return pa.record_batch([pa.array(it) for it in columns.values()], list(columns))


@dataclass
class Deletions:
    """Reads deletions and finds the edges that they mean.

    Args:
        graph: The graph as the transaction found it.
        given: Who finds nodes.

    Attributes:
        num_missing: Deletions of what is not there.
    """

    graph: GraphReader
    given: AppendInput
    num_missing: int = 0
    _wanted: dict[str, list[Wanted]] = field(default_factory=dict)
    _first_missing: tuple[Any, Any] | None = None

    def read(self, source: Source) -> None:
        """Read all chunks of a source of edges to remove.

        Raises:
            InputError: it is malformed, or has columns by which no edge can be named.
        """
        for chunk in source.chunks():
            if isinstance(chunk, NodeChunk):
                if len(chunk.ids):
                    raise InputError(
                        f"{source.name} lists nodes to delete, expected edges; a node "
                        "stays when its edges are gone"
                    )
            elif len(chunk.src):
                name = edge_type_of(self.graph.manifest, chunk.edge_type)
                self._wanted.setdefault(name, []).append(self._of(chunk, name, source.name))

    def find(self) -> Iterator[tuple[str, str, FoundEdges]]:
        """Yield the edges to remove, by edge type and split."""
        for name, pieces in self._wanted.items():
            wanted = _joined(pieces)
            num_hits = np.zeros(len(wanted.src), dtype=np.int64)
            for split in self.graph.splits(name):
                search = SplitSearch(self.graph, name, split)
                found = search.find(wanted, num_hits)
                if len(found.src):
                    yield name, split, found
            missing = np.flatnonzero(num_hits == 0)
            self.num_missing += len(missing)
            if len(missing) and self._first_missing is None:
                self._first_missing = wanted.shown[int(missing[0])]

    def require_all(self) -> None:
        """Refuse deletions of what is not there.

        Raises:
            InputError: there are some.
        """
        if self.num_missing:
            src, dst = self._first_missing or ("?", "?")
            more = f" and {self.num_missing - 1} more" if self.num_missing > 1 else ""
            raise InputError(
                f"the edge {src!r} -> {dst!r}{more} is not in {self.graph.path}, so it "
                "cannot be deleted; leave it out, or pass --missing-deletes count"
            )

    def _of(self, chunk: EdgeChunk, name: str, where: str) -> Wanted:
        entry = self.graph.manifest.edge_types[name]
        odd = sorted(chunk.columns.keys() - {"relation", "time"})
        if odd:
            raise InputError(
                f"{where}: deletions have the column {odd[0]!r}, expected src, dst and, of "
                "those that the edges have, relation and time (when it is deleted)"
            )
        for column in chunk.columns:
            has = entry.relations is not None if column == "relation" else False
            if column == "time":
                has = "time" in entry.columns
            if not has:
                raise InputError(
                    f"{where}: deletions have the column {column!r}, which the edges of "
                    f"type {name!r} have not; leave it out"
                )
        ends, shown = [], []
        for kind, ids in ((entry.src_type, chunk.src), (entry.dst_type, chunk.dst)):
            finder = self.given.finder(kind)
            clean = finder.clean(ids)
            ends.append(finder.find(clean))
            shown.append(
                clean.tolist()
                if isinstance(clean, np.ndarray)
                else clean.dictionary_decode().to_pylist()
            )
        src, dst = ends
        if not entry.directed and entry.src_type == entry.dst_type:
            src, dst = np.minimum(src, dst), np.maximum(src, dst)
        pairs = list(zip(*shown, strict=True))
        return Wanted(src, dst, _codes(chunk, entry), _times(chunk, entry), pairs)


class SplitSearch:
    """Finds edges in the buckets and deltas of one split, by binary search."""

    def __init__(self, graph: GraphReader, name: str, split: str) -> None:
        self._graph, self._name, self._split = graph, name, split
        first = before_deltas(graph.manifest)
        self._files = MappedFiles(Path(graph.path), graph.manifest, first)
        self._stored = StoredEdges(first, self._files)
        self._first_shape = self._stored.bucket_counts(name, split).shape
        entry = graph.manifest.edge_types[name]
        self._src_offsets = graph.offsets(entry.src_type)
        self._dst_offsets = graph.offsets(entry.dst_type)

    @cached_property
    def _gone(self) -> dict[str, Ints]:
        return read_removed(
            self._graph.manifest, self._name, self._split, self._files.batch, None
        )

    def find(self, wanted: Wanted, num_hits: Ints) -> FoundEdges:
        """Return the edges to remove; add to the hits of each deletion."""
        pieces = [*self._in_buckets(wanted), *self._in_deltas(wanted)]
        hits = np.concatenate([hit for hit, _ in pieces] or [np.empty(0, np.int64)])
        keys = ("delta", "src", "dst", "row", "copy")
        columns = {
            key: np.concatenate([it[key] for _, it in pieces] or [np.empty(0, np.int64)])
            for key in keys
        }
        np.add.at(num_hits, hits, 1)
        time = None if wanted.time is None else wanted.time[hits]
        # two deletions may mean one edge: the earlier counts
        number = bucket_numbers(
            columns["src"], columns["dst"], self._src_offsets, self._dst_offsets
        )
        first = np.zeros(len(hits), np.int64) if time is None else time
        # The time last, so that the earliest deletion of an edge comes first among its own.
        order = np.lexsort((first, columns["row"], number, columns["delta"]))
        place = np.stack([columns["delta"], number, columns["row"]])[:, order]
        is_new = np.ones(len(hits), dtype=bool)
        is_new[1:] = (place[:, 1:] != place[:, :-1]).any(axis=0)
        kept = order[is_new]
        return FoundEdges(
            **{key: values[kept] for key, values in columns.items()},
            time=None if time is None else time[kept],
        )

    def _in_buckets(self, wanted: Wanted) -> Iterator[tuple[Ints, dict[str, Ints]]]:
        known = np.flatnonzero((wanted.src >= 0) & (wanted.dst >= 0))
        src, dst = wanted.src[known], wanted.dst[known]
        num_dst = len(self._dst_offsets) - 1
        numbers = bucket_numbers(src, dst, self._src_offsets, self._dst_offsets)
        # Edges that an earlier delta removed are still in the files: they are no hits.
        gone = {k: v[self._gone["delta"] == 0] for k, v in self._gone.items()}
        gone_numbers = bucket_numbers(
            gone["src"], gone["dst"], self._src_offsets, self._dst_offsets
        )
        for number in distinct(numbers).tolist():
            i, j = divmod(number, num_dst)
            if i >= self._first_shape[0] or j >= self._first_shape[1]:
                continue
            bucket = self._stored.bucket(self._name, i, j, self._split)
            if not bucket.num_edges:
                continue
            here = known[numbers == number]
            first = int(self._src_offsets[i]), int(self._dst_offsets[j])
            removed = gone["row"][gone_numbers == number]
            yield _matches(bucket, wanted, here, first, removed, 0)

    def _in_deltas(self, wanted: Wanted) -> Iterator[tuple[Ints, dict[str, Ints]]]:
        known = np.flatnonzero((wanted.src >= 0) & (wanted.dst >= 0))
        manifest = self._graph.manifest
        for delta in manifest.deltas:
            if not delta.added.get(self._name, {}).get(self._split):
                continue
            batch = read_added(
                manifest, delta.number, self._name, self._split, self._files.batch
            )
            removed = self._gone["row"][self._gone["delta"] == delta.number]
            edges = bucket_of(batch)
            yield _matches(edges, wanted, known, (0, 0), removed, delta.number)


def check_policy(policy: str) -> None:
    """Refuse what is no answer to deletions of what is not there.

    Raises:
        ConfigError: it is neither "error" nor "count".
    """
    if policy not in ("error", "count"):
        raise ConfigError(f"missing_deletes: got {policy!r}, expected error or count")


def _matches(
    edges: EdgeBucket,
    wanted: Wanted,
    which: Ints,
    first: tuple[int, int],
    removed: Ints,
    delta: int,
) -> tuple[Ints, dict[str, Ints]]:
    """Return which deletions mean an edge of a sorted list, and the edges."""
    src, dst = wanted.src[which] - first[0], wanted.dst[which] - first[1]
    low = np.searchsorted(edges.src, src, side="left").astype(np.int64)
    high = np.searchsorted(edges.src, src, side="right").astype(np.int64)
    begin, end = np.empty(len(which), np.int64), np.empty(len(which), np.int64)
    kernels.first_places(low, high, edges.dst, dst, False, begin)
    kernels.first_places(low, high, edges.dst, dst, True, end)
    many = end - begin
    hit = np.repeat(np.arange(len(which)), many)
    # 0, 1, 2 ... within the run of each pair, all runs at once.
    copy = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    row = begin[hit] + copy
    keep = ~np.isin(row, removed)
    relation = wanted.relation[which][hit]
    if edges.relation is not None:
        keep &= (relation == ANY) | (edges.relation[row].astype(np.int64) == relation)
    if wanted.time is not None and edges.time is not None:
        keep &= edges.time[row] <= wanted.time[which][hit]
    hit, row, copy = hit[keep], row[keep], copy[keep]
    return which[hit], {
        "delta": np.full(len(hit), delta, dtype=np.int64),
        "src": wanted.src[which][hit],
        "dst": wanted.dst[which][hit],
        "row": row,
        "copy": copy,
    }


def _codes(chunk: EdgeChunk, entry: EdgeTypeEntry) -> Ints:
    if "relation" not in chunk.columns:
        return np.full(len(chunk.src), ANY, dtype=np.int64)
    known = {name: code for code, name in enumerate(entry.relations or ())}
    names = as_arrow(chunk.columns["relation"]).to_pylist()
    return np.array([known.get(str(it), UNKNOWN) for it in names], dtype=np.int64)


def _times(chunk: EdgeChunk, entry: EdgeTypeEntry) -> Ints | None:
    if "time" not in chunk.columns:
        return None
    where = "the column time of deletions"
    values, unit = times.whole(as_arrow(chunk.columns["time"]), where)
    return times.in_unit(values, unit, entry.time_unit, where) if unit else values


def _joined(pieces: list[Wanted]) -> Wanted:
    given = [piece.time for piece in pieces if piece.time is not None]
    if given and len(given) < len(pieces):
        raise InputError("some deletions have a time and some have not; give all or none")
    return Wanted(
        np.concatenate([piece.src for piece in pieces]),
        np.concatenate([piece.dst for piece in pieces]),
        np.concatenate([piece.relation for piece in pieces]),
        np.concatenate(given) if given else None,
        [pair for piece in pieces for pair in piece.shown],
    )
