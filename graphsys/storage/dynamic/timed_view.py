"""A store as it was at a time, or what came to it in a span of time.

A view shows the edges whose ``time`` lies in the span and that were not deleted before its
end: a deletion that has a time counts from then on, one that has none always. All nodes of
the store are there, with their numbers, so that rows of nodes of different views fit each
other. Edge types whose edges have no time are there whole.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.types import number_dtype
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.rows import row_filter as kernels
from graphsys.storage.deltas.splice import MergedSpace
from graphsys.storage.manifest import Manifest, before_deltas
from graphsys.storage.reader import GraphReader, Window
from graphsys.storage.stored_edges import EdgeReader
from graphsys.storage.views import EdgeBucket
from graphsys.storage.write.times import duration, is_integer, moment, shown

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_FURTHER = ("weight", "relation", "time", "edge")


class TimedGraph(GraphReader):
    """The edges of a span of time; everything that takes a graph takes it.

    Args:
        stored: The graph, or a view of it; closing this closes nothing.
        first: Edges of earlier times are not shown; None for all.
        end: Neither are those of this time or a later one; None for all.

    Raises:
        ConfigError: no edges have a time.
    """

    def __init__(self, stored: GraphReader, first: int | None, end: int | None) -> None:
        _check(stored)
        vars(self).update(vars(stored))
        self.stored = stored
        known = stored.window or (None, None)
        first = max((it for it in (first, known[0]) if it is not None), default=None)
        end = min((it for it in (end, known[1]) if it is not None), default=None)
        self.window: Window = (first, end)
        whole = stored.whole_manifest
        inner = self._whole_edges
        if end is not None and any(delta.removed for delta in whole.deltas):
            inner = self._edge_reader(whole, before_deltas(whole), end)
        space = MergedSpace(Path(self.path) / f"gen-{self.generation}")
        self._edges = TimedEdges(inner, whole, self.window, space)
        self.manifest = _counted(whole, self._edges)
        self.whole_manifest = whole

    def __repr__(self) -> str:
        units = {entry.time_unit for entry in self.manifest.edge_types.values()} - {""}
        unit = units.pop() if len(units) == 1 else ""
        first, end = (None if it is None else shown(it, unit) for it in self.window)
        return f"{super().__repr__()[:-1]}, times {first} to before {end})"

    @property
    def fingerprint(self) -> str:
        """A hash of the content, which the span of time is part of."""
        text = f"{self.whole_manifest.fingerprint} {self.window}"
        return hashlib.sha256(text.encode()).hexdigest()

    def close(self) -> None:
        """Do nothing: the graph it was made of is open."""


class TimedEdges:
    """Hands out edges of a span of time.

    Args:
        inner: Who hands out all.
        manifest: Of the store.
        window: First time and first time behind the span; None for no bound.
        space: Where rows go.
    """

    def __init__(
        self, inner: EdgeReader, manifest: Manifest, window: Window, space: MergedSpace
    ) -> None:
        self._inner, self._manifest, self._space = inner, manifest, space
        self._first = _LEAST if window[0] is None else window[0]
        self._last = _MOST if window[1] is None else window[1] - 1
        self._counts: dict[tuple[str, str], npt.NDArray[np.int64]] = {}
        self._indexes: dict[tuple[str, str, int], Csr] = {}
        self._places: dict[str, npt.NDArray[np.int64]] = {}

    def bucket_counts(self, name: str, split: str) -> npt.NDArray[np.int64]:
        """Return the edges of every bucket, int64 ``[P_src, P_dst]``."""
        if (name, split) not in self._counts:
            counts = self._inner.bucket_counts(name, split)
            if self._is_timed(name):
                counts = counts.copy()
                for i, j in np.argwhere(counts).tolist():
                    time: Any = self._inner.bucket(name, i, j, split).time
                    counts[i, j] = kernels.count_kept(time, self._first, self._last)
            self._counts[name, split] = counts
        return self._counts[name, split]

    def bucket(self, name: str, i: int, j: int, split: str) -> EdgeBucket:
        """Return the edges from partition ``i`` to ``j``."""
        bucket = self._inner.bucket(name, i, j, split)
        if not self._is_timed(name) or bucket.time is None:
            return bucket
        is_kept = (bucket.time >= self._first) & (bucket.time <= self._last)
        rows = np.flatnonzero(is_kept)
        optional = {
            key: None if values is None else values[rows]
            for key in ("relation", "weight", "time")
            for values in [getattr(bucket, key)]
        }
        columns = {key: it.take(pa.array(rows)) for key, it in bucket.columns.items()}
        return EdgeBucket(
            src=bucket.src[rows], dst=bucket.dst[rows], columns=columns, **optional
        )

    def index(self, name: str, direction: str, part: int) -> Csr:
        """Return the ``out`` or ``in`` rows of a partition."""
        key = name, direction, part
        if key not in self._indexes:
            index = self._inner.index(name, direction, part)
            is_timed = self._is_timed(name) and index.time is not None
            self._indexes[key] = self._kept(name, index) if is_timed else index
        return self._indexes[key]

    def joined(self, name: str, direction: str) -> Csr | None:
        """Return the rows of all partitions, where they are at hand as one."""
        whole = self._inner.joined(name, direction)
        if whole is None or not self._is_timed(name) or whole.time is None:
            return whole
        return self._kept(name, whole)

    def _is_timed(self, name: str) -> bool:
        return "time" in self._manifest.edge_types[name].columns

    def _kept(self, name: str, index: Csr) -> Csr:
        time: Any = index.time
        span = self._first, self._last
        total = int(kernels.count_kept(time, *span))

        def keep(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return self._space.filled(
                total,
                values.dtype,
                lambda out: kernels.keep_entries(values, time, *span, out),
            )

        columns: dict[str, Any] = {
            key: keep(values)
            for key in _FURTHER
            if (values := getattr(index, key)) is not None
        }
        if "edge" in columns:
            split = self._manifest.edge_types[name].counting_split
            kind = number_dtype(int(self.bucket_counts(name, split).sum()))
            columns["edge"] = self._sequence(name)[columns["edge"]].astype(kind)
        return Csr(
            indptr=self._space.filled(
                len(index.indptr),
                number_dtype(total + 1),
                lambda out: kernels.kept_offsets(index.indptr, time, *span, out),
            ),
            indices=keep(index.indices),
            **columns,
        )

    def _sequence(self, name: str) -> npt.NDArray[np.int64]:
        """Return the place in the sequence of kept edges of every edge of all."""
        if name not in self._places:
            split = self._manifest.edge_types[name].counting_split
            counts = self._inner.bucket_counts(name, split)
            places = np.empty(int(counts.sum()), dtype=np.int64)
            begin = kept = 0
            for i, j in np.argwhere(counts).tolist():
                time: Any = self._inner.bucket(name, i, j, split).time
                out = places[begin : begin + int(counts[i, j])]
                kept = kernels.kept_before(time, self._first, self._last, kept, out)
                begin += len(out)
            self._places[name] = places
        return self._places[name]


def moment_of(graph: GraphReader, time: Any, *, is_next: bool = False) -> int:
    """Return a time in the unit of a graph's edges; see :func:`times.moment`."""
    return moment(time, _unit(graph, time), is_next=is_next)


def windows(graph: GraphReader, window: Any, step: Any = None) -> Iterator[tuple[int, int]]:
    """Yield spans of time, one after the other, from the first edge's time on.

    Args:
        graph: The graph.
        window: How long each is, in the unit of the edges' times, or as ``"7d"``.
        step: From the begin of one to that of the next; as long as a window by default.

    Raises:
        ConfigError: No edges have a time, or a length is not above 0.
    """
    length = duration("window", window, _unit(graph, window))
    stride = length if step is None else duration("step", step, _unit(graph, step))
    _check(graph)
    return _windows(graph, length, stride)


def _unit(graph: GraphReader, value: Any) -> str:
    """Return the unit of a graph's times, which integers do not ask for."""
    if is_integer(value):
        return ""
    _check(graph)
    return graph.time_unit()


def _windows(graph: GraphReader, window: int, step: int) -> Iterator[tuple[int, int]]:
    found = time_span(graph)
    if found is None:
        return
    begin, last = found
    while begin <= last:
        yield begin, begin + window
        begin += step


def time_span(graph: GraphReader) -> tuple[int, int] | None:
    """Return the times of the first and the last edge; None where there are no edges."""
    spans = []
    for name in graph.manifest.edge_types:
        for split in graph.splits(name):
            for i, j in graph.buckets(name, split):
                time = graph.bucket(name, i, j, split).time
                if time is not None and len(time):
                    spans.append((int(time.min()), int(time.max())))
    if not spans:
        return None
    return min(low for low, _ in spans), max(high for _, high in spans)


def _check(graph: GraphReader) -> None:
    if not any("time" in it.columns for it in graph.manifest.edge_types.values()):
        raise ConfigError(
            f"the edges of {graph.path} have no column 'time', which views of times need; "
            "ingest them with one"
        )


def _counted(manifest: Manifest, edges: TimedEdges) -> Manifest:
    """Return a manifest that counts what is shown; its deltas are merged already."""
    edge_types = {
        name: replace(
            entry,
            num_edges={
                split: int(edges.bucket_counts(name, split).sum())
                for split in entry.num_edges
            },
        )
        for name, entry in manifest.edge_types.items()
    }
    return replace(manifest, edge_types=edge_types)
