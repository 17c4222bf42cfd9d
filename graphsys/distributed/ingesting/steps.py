"""The steps of an ingest, with tasks of a cluster in place of threads."""

import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.progress import Progress
from graphsys.core.types import EdgeType
from graphsys.distributed.ingesting import plan, tasks
from graphsys.distributed.ingesting.files import load, save
from graphsys.distributed.ingesting.plan import (
    ChunkFiles,
    IdBatch,
    IngestWork,
    Piece,
    Written,
)
from graphsys.storage.ids.id_mapping import NodeNumbering
from graphsys.storage.ids.integer_ids import IntegerIds
from graphsys.storage.ids.string_ids import StringIds, string_buffers
from graphsys.storage.ingest.options import IngestOptions
from graphsys.storage.ingest.steps import IngestSteps
from graphsys.storage.scratch import Scratch
from graphsys.storage.source import Source
from graphsys.storage.transaction import Transaction
from graphsys.storage.write.edge_log import EdgeLog
from graphsys.storage.write.edge_sort import Cleaning
from graphsys.storage.write.edge_write import EdgeTypeWriter

Ints = npt.NDArray[np.int64]


class RunAll(Protocol):
    """Runs tasks somewhere."""

    def __call__(
        self, function: Callable[..., Any], questions: Sequence[tuple[Any, ...]],
        told: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Return the results of a function with each of some arguments.

        Args:
            function: The function.
            questions: Its arguments.
            told: Called with place and result of each, in order, as they come.
        """


class FoundIntegers(IntegerIds):
    """Distinct ids that shards found.

    Args:
        known: Shard after shard ``[N]``.
        degrees: Of each ``[N]``.
    """

    # not the base's: there is no stream
    def __init__(self, known: Ints, degrees: npt.NDArray[np.uint32]) -> None:
        self.known, self.degrees, self.is_sorted = known, degrees, False

    def build(self) -> None:
        """Do nothing."""


class FoundStrings(StringIds):
    """Distinct strings that shards found, likewise; with where each is first."""

    # not the base's: there is no stream
    def __init__(
        self, known: Sequence[Any], degrees: npt.NDArray[np.uint32],
        first: npt.NDArray[np.uint64], scratch: Scratch,
    ) -> None:  # fmt: skip
        self.degrees, self.first = degrees, first
        buffers = [string_buffers(strings) for strings in known]
        sizes = [int(offsets[-1] - offsets[0]) for offsets, _ in buffers]
        self.data = scratch.array(sum(sizes), np.uint8)
        self.offsets = scratch.zeros(len(degrees) + 1, np.int64)
        at = end = 0
        for (offsets, data), size in zip(buffers, sizes, strict=True):
            self.data[end : end + size] = data[offsets[0] : offsets[-1]]
            self.offsets[at + 1 : at + len(offsets)] = offsets[1:] - offsets[0] + end
            at, end = at + len(offsets) - 1, end + size

    def build(self) -> None:
        """Do nothing."""


class FarWriter(EdgeTypeWriter):
    """Has the buckets and indexes of an edge type written by tasks.

    Attributes:
        work: The ingest.
        run_all: What runs tasks.
        told: What tasks are told of it.
        chunks: Chunks of the type by split.
    """

    work: IngestWork
    run_all: RunAll
    told: plan.WriterWork
    chunks: Mapping[str, list[ChunkFiles]]

    def write_split(self, split: str) -> None:
        """Write the buckets of a split and, of one split, the indexes."""
        num_src, num_dst = len(self._src.offsets) - 1, len(self._dst.offsets) - 1
        parts: list[Written] = self.run_all(
            tasks.write_part,
            [(self.work, self.told, split, p, self.chunks[split]) for p in range(num_src)],
        )
        self._waiting.pop(split).remove()
        self.counts[split] = np.array([part.counts for part in parts], dtype=np.int64)
        for part in parts:
            self.duplicates += part.duplicates
            self.self_loops += part.self_loops
            self.fingerprints.extend(part.fingerprints)
        if split == self.indexed_split:
            counts = self.counts[split]
            parts += self.run_all(
                tasks.write_incoming,
                [(self.work, self.told, p, counts) for p in range(num_dst)],
            )
        self._transaction.files.extend(entry for part in parts for entry in part.files)


class ClusterSteps(IngestSteps):
    """The steps of one ingest on a cluster.

    Args:
        source: The graph, opened; tasks open it again.
        options: How the store is made.
        transaction: Where the files go.
        progress: Told of every stage.
        work: What tasks know.
        run_all: What runs them.
    """

    def __init__(
        self, source: Source, options: IngestOptions, transaction: Transaction,
        progress: Progress, work: IngestWork, run_all: RunAll,
    ) -> None:  # fmt: skip
        super().__init__(source, options, transaction, progress)
        self._work, self._run_all = work, run_all
        self._pieces: list[Piece] = []

    def _scan(self) -> None:
        self._progress.stage("read", self._source.total_bytes, "bytes")
        num_parts = self._source.num_parts  # type: ignore[attr-defined]  # looked for
        self._in_source = True
        self._pieces = self._run_all(
            tasks.scan,
            [(self._work, number) for number in range(num_parts)],
            lambda place, piece: self._progress.advance(piece.bytes_read),
        )
        self._in_source = False
        for piece in self._pieces:
            for state in piece.states:
                kind = state.edge_type
                if kind not in self._logs:
                    allows = self._source.allows_nan
                    self._logs[kind] = EdgeLog(kind, self._scratch, allows_nan=allows)
                self._logs[kind].absorb(state)
            self._num_edges += sum(chunk.length for chunk in piece.chunks)
        for chunk in self._chunks():
            for end in (chunk.src, chunk.dst):
                self._numbering(end.node_type)
            if self._options.order == "auto":
                self._sample(chunk)

    def _chunks(self) -> list[ChunkFiles]:
        return [chunk for piece in self._pieces for chunk in piece.chunks]

    def _sample(self, chunk: ChunkFiles) -> None:
        """Show the probe of locality the edges that it would have seen."""
        if chunk.src.node_type != chunk.dst.node_type or chunk.src.is_text:
            return
        ends = [
            load(Path(f"{end.path}.values"))[load(Path(f"{end.path}.rows"))]
            for end in (chunk.src, chunk.dst)
        ]
        self._numbering(chunk.src.node_type).sample(*ends)

    def _number(self) -> None:
        self._begins: dict[Path, Ints] = {}
        self._places = {name: place for place, name in enumerate(self._numberings)}
        sizes = {
            name: self._find_distinct(name, numbering)
            for name, numbering in self._numberings.items()
        }
        super()._number()
        for name, numbering in self._numberings.items():
            place = self._places[name]
            folder = self._work.folder / f"type-{place}"
            save(folder / "numbers", numbering.numbers)
            save(self._work.folder / f"degrees-{place}", numbering.degrees())
            bases = np.cumsum([0, *sizes[name]]).tolist()
            self._run_all(
                tasks.number_ids,
                [(self._work, place, s, bases[s]) for s in range(len(sizes[name]))],
            )

    def _find_distinct(self, name: str, numbering: NodeNumbering) -> list[int]:
        """Have the shards of a type's ids found; return the size of each."""
        batches = [
            end for c in self._chunks() for end in (c.src, c.dst) if end.node_type == name
        ]
        self._require_one_kind(name, batches)
        totals = np.cumsum([0, *(int(batch.starts[-1]) for batch in batches)])
        lengths = np.array([np.diff(batch.starts) for batch in batches])
        begins = np.cumsum(lengths, axis=0) - lengths
        for batch, begin in zip(batches, begins, strict=True):
            self._begins[batch.path] = begin
        work, place = self._work, self._places[name]
        shards = range(1 << work.shard_bits)
        bases = totals[:-1].tolist()
        sizes: list[int] = self._run_all(
            tasks.find_distinct, [(work, place, s, batches, bases) for s in shards]
        )

        def found(what: str, *, is_text: bool = False) -> list[Any]:
            paths = [tasks.shard_path(work, place, s, what) for s in shards]
            return [load(path, is_text=is_text) for path in paths]

        def joined(what: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
            array = self._scratch.array(sum(sizes), dtype)
            np.concatenate(found(what), out=array)
            return array

        degrees = joined("degrees", np.uint32)
        if batches[0].is_text:
            known, first = found("known", is_text=True), joined("first", np.uint64)
            numbering.use(FoundStrings(known, degrees, first, self._scratch))
        else:
            numbering.use(FoundIntegers(joined("known", np.int64), degrees))
        return sizes

    def _require_one_kind(self, name: str, batches: Sequence[IdBatch]) -> None:
        if len({batch.is_text for batch in batches}) > 1:
            numbering = NodeNumbering(name, self._scratch)  # whose message it is
            numbering.add(np.zeros(1, dtype=np.int64), weight=0)
            numbering.add(_text(), weight=0)

    def _group(self) -> Mapping[EdgeType, EdgeTypeWriter]:
        self._progress.stage("group", self._num_edges, "edges")
        writers = self._writers(FarWriter)
        by_split: dict[EdgeType, dict[str, list[ChunkFiles]]] = {}
        for chunk in self._chunks():
            splits = by_split.setdefault(chunk.edge_type, defaultdict(list))
            splits[chunk.split].append(chunk)
        for kind, writer in writers.items():
            writer.work, writer.run_all = self._work, self._run_all
            writer.chunks = by_split[kind]
            writer.told = self._told(kind, writer)
        questions = []
        for piece in self._pieces:
            names = {state.edge_type: state.relation_names for state in piece.states}
            for chunk in piece.chunks:
                ends = chunk.src, chunk.dst
                questions.append(
                    (
                        self._work, chunk,
                        tuple(self._places[end.node_type] for end in ends),
                        tuple(self._begins[end.path] for end in ends),
                        names[chunk.edge_type], writers[chunk.edge_type].told,
                    )
                )  # fmt: skip
        lengths = [chunk.length for chunk in self._chunks()]
        self._run_all(
            tasks.group_edges, questions,
            lambda place, _: self._progress.advance(lengths[place]),
        )  # fmt: skip
        self._remove_ids()
        return writers

    def _remove_ids(self) -> None:
        """Remove what no task reads from here on: ids, their numbers, columns as read."""
        for chunk in self._chunks():
            for name in chunk.columns:
                Path(f"{chunk.path}.{name}").unlink(missing_ok=True)
            for end in (chunk.src, chunk.dst):
                for what in ("values", "counts", "order", "rows"):
                    Path(f"{end.path}.{what}").unlink(missing_ok=True)
        for place in self._places.values():
            shutil.rmtree(self._work.folder / f"type-{place}", ignore_errors=True)

    def _told(self, kind: EdgeType, writer: FarWriter) -> plan.WriterWork:
        """Return what tasks are told of an edge type."""
        log = self._logs[kind]
        src, dst = (
            plan.TypeNumbers(
                offsets=self._numberings[name].offsets,
                path=self._work.folder / f"degrees-{self._places[name]}",
            )
            for name in (kind.src_type, kind.dst_type)
        )
        return plan.WriterWork(
            name=writer.name, src=src, dst=dst,
            log=plan.TypeColumns(
                edge_type=kind, splits=dict(log.splits), time_unit=log.time_unit,
                relation_names=log.relation_names, types=writer.dtypes,
            ),
            cleaning=Cleaning(
                same_type=kind.src_type == kind.dst_type,
                drop_self_loops=self._options.drop_self_loops,
                coalesce=self._options.coalesce,
            ),
            is_directed=self._source.is_directed and not self._options.undirected,
        )  # fmt: skip


def _text() -> Any:
    import pyarrow as pa

    return pa.array(["a"])
