"""The steps of an ingest, with tasks of a cluster in place of threads.

Ids that tasks found are numbered here, and what tasks wrote becomes the store's.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from graphsys.core.progress import Progress
from graphsys.core.remote.locations import is_remote
from graphsys.core.types import EdgeType
from graphsys.distributed.ingestion import plan, tasks
from graphsys.distributed.ingestion.plan import (
    ChunkFiles,
    IdBatch,
    IngestWork,
    NodeFiles,
    PartScan,
    WriterWork,
    Written,
)
from graphsys.distributed.shared_files import SharedFiles
from graphsys.storage.ids.id_mapping import NodeNumbering
from graphsys.storage.ids.integer_ids import IntegerIds
from graphsys.storage.ids.string_ids import StringIds, string_buffers
from graphsys.storage.ingest.options import IngestOptions
from graphsys.storage.ingest.steps import IngestSteps
from graphsys.storage.manifest import FileEntry, index_file
from graphsys.storage.scratch import Scratch
from graphsys.storage.source import Source
from graphsys.storage.transaction import Transaction
from graphsys.storage.write.edge_log import EdgeLog
from graphsys.storage.write.edge_sort import Cleaning
from graphsys.storage.write.edge_write import EdgeTypeWriter
from graphsys.storage.write.row_store import FoundRowStore


class RunAll(Protocol):
    """Runs tasks somewhere."""

    def __call__(
        self,
        function: Callable[..., Any],
        questions: Sequence[tuple[Any, ...]],
        told: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """Return the results of a function with each of some arguments.

        Args:
            function: The function.
            questions: Its arguments.
            told: Called with place and result of each, in order, as they come.
        """


class RemoteWriter(EdgeTypeWriter):
    """Has the buckets and indexes of an edge type written by tasks.

    Attributes:
        work: The ingest.
        run_all: What runs tasks.
        told: What tasks are told of it.
        chunks: Chunks of the type by split.
    """

    work: IngestWork
    run_all: RunAll
    told: WriterWork
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
        files = {entry.path: entry for part in parts for entry in part.files}
        if split == self.indexed_split:
            counts = self.counts[split]
            again: list[Written] = self.run_all(
                tasks.place_edges,
                [(self.work, self.told, p, first) for p, first in self._displaced(files)],
            )
            again += self.run_all(
                tasks.write_incoming,
                [(self.work, self.told, p, counts) for p in range(num_dst)],
            )
            files |= {entry.path: entry for part in again for entry in part.files}
        self._transaction.files.extend(files.values())

    def _displaced(self, files: Mapping[str, FileEntry]) -> list[tuple[int, int]]:
        """Return partitions whose outgoing index tells edges, and how many are before."""
        if not self.told.log.further:
            return []
        lengths = self.counts[self.indexed_split].sum(axis=1)
        firsts = (np.cumsum(lengths) - lengths).tolist()
        generation = self._transaction.generation
        paths = [index_file(generation, self.name, "out", p) for p in range(len(firsts))]
        return [
            (part, first)
            for part, (first, path) in enumerate(zip(firsts, paths, strict=True))
            if first and path in files
        ]


Ints = npt.NDArray[np.int64]


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
        self,
        known: Sequence[Any],
        degrees: npt.NDArray[np.uint32],
        first: npt.NDArray[np.uint64],
        scratch: Scratch,
    ) -> None:
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


class ClusterSteps(IngestSteps):
    """The steps of one ingest on a cluster.

    Args:
        source: The graph, opened; tasks open it again.
        options: How the store is made.
        transaction: Where the files go.
        progress: Told of every stage.
        work: What tasks know.
        files: Files between them.
        run_all: What runs them.
    """

    def __init__(
        self,
        source: Source,
        options: IngestOptions,
        transaction: Transaction,
        progress: Progress,
        work: IngestWork,
        files: SharedFiles,
        run_all: RunAll,
    ) -> None:
        super().__init__(source, options, transaction, progress)
        self._work, self._files, self._run_all = work, files, run_all
        self._pieces: list[PartScan] = []

    def _check_space(self, needed: int) -> None:
        if not is_remote(self._work.out):  # else the edges are never here
            super()._check_space(needed)

    def _scan(self) -> None:
        self._progress.stage("read", self._source.total_bytes, "bytes")
        self._in_source = True
        self._pieces = self._run_all(
            tasks.scan,
            [(self._work, number) for number in range(self._source.num_parts)],
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
        for kind, log in self._logs.items():
            if further := self._further(kind):
                log.rows = FoundRowStore(further, self._files.local, self._scratch)
        self._num_edges = sum(chunk.length for chunk in self._edges())
        for batch in self._ids():
            self._numbering(batch.node_type)
        for nodes in self._nodes():
            self._table(nodes.node_type).add(nodes.chunk(self._files))
        if self._options.order == "auto":
            for chunk in self._edges():
                self._sample(chunk)
        tables = (len(nodes.chunk(self._files).ids) for nodes in self._nodes())
        self._require_rows([self._num_edges, *tables])

    def _edges(self) -> list[ChunkFiles]:
        chunks = [chunk for piece in self._pieces for chunk in piece.chunks]
        return [chunk for chunk in chunks if isinstance(chunk, ChunkFiles)]

    def _nodes(self) -> list[NodeFiles]:
        chunks = [chunk for piece in self._pieces for chunk in piece.chunks]
        return [chunk for chunk in chunks if isinstance(chunk, NodeFiles)]

    def _ids(self) -> list[IdBatch]:
        """Return the batches of ids in the order of the input."""
        chunks = [chunk for piece in self._pieces for chunk in piece.chunks]
        return [batch for chunk in chunks for batch in chunk.batches]

    def _further(self, kind: EdgeType) -> tuple[str, ...]:
        """Return the names of the files of an edge type's further columns."""
        return tuple(it.further[kind] for it in self._pieces if kind in it.further)

    def _sample(self, chunk: ChunkFiles) -> None:
        """Show the probe of locality the edges that it would have seen."""
        if chunk.src.node_type != chunk.dst.node_type or chunk.src.is_text:
            return
        ends = []
        for end in (chunk.src, chunk.dst):
            values, rows = f"{end.name}.values", f"{end.name}.rows"
            ends.append(self._files.load(values)[self._files.load(rows)])
            self._files.let_go([values, rows])
        self._numbering(chunk.src.node_type).sample(*ends)

    def _number(self) -> None:
        self._begins: dict[str, Ints] = {}
        self._places = {name: place for place, name in enumerate(self._numberings)}
        sizes = {
            name: self._find_distinct(name, numbering)
            for name, numbering in self._numberings.items()
        }
        super()._number()
        for name, numbering in self._numberings.items():
            place = self._places[name]
            self._files.save(f"type-{place}/numbers", numbering.numbers)
            bases = np.cumsum([0, *sizes[name]]).tolist()
            self._run_all(
                tasks.number_ids,
                [(self._work, place, s, bases[s]) for s in range(len(sizes[name]))],
            )

    def _find_distinct(self, name: str, numbering: NodeNumbering) -> list[int]:
        """Have the shards of a type's ids found; return the size of each."""
        batches = [batch for batch in self._ids() if batch.node_type == name]
        self._require_one_kind(name, batches)
        totals = np.cumsum([0, *(int(batch.starts[-1]) for batch in batches)])
        lengths = np.array([np.diff(batch.starts) for batch in batches])
        begins = np.cumsum(lengths, axis=0) - lengths
        for batch, begin in zip(batches, begins, strict=True):
            self._begins[batch.name] = begin
        work, place = self._work, self._places[name]
        shards = range(1 << work.shard_bits)
        bases = totals[:-1].tolist()
        sizes: list[int] = self._run_all(
            tasks.find_distinct, [(work, place, s, batches, bases) for s in shards]
        )

        def found(what: str, *, is_arrow: bool = False) -> list[Any]:
            names = [tasks.shard_file(place, s, what) for s in shards]
            return [self._files.load(name, is_arrow=is_arrow) for name in names]

        def joined(what: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
            array = self._scratch.array(sum(sizes), dtype)
            np.concatenate(found(what), out=array)
            return array

        degrees = joined("degrees", np.uint32)
        if batches[0].is_text:
            known, first = found("known", is_arrow=True), joined("first", np.uint64)
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
        writers = self._writers(RemoteWriter)
        by_split: dict[EdgeType, dict[str, list[ChunkFiles]]] = {}
        for chunk in self._edges():
            splits = by_split.setdefault(chunk.edge_type, defaultdict(list))
            splits[chunk.split].append(chunk)
        for kind, writer in writers.items():
            writer.work, writer.run_all = self._work, self._run_all
            writer.chunks = by_split[kind]
            writer.told = self._told(kind, writer)
        lengths = [chunk.length for chunk in self._edges()]
        self._run_all(
            tasks.group_edges,
            self._grouping(writers),
            lambda place, _: self._progress.advance(lengths[place]),
        )
        self._place_nodes()
        self._remove_ids()
        return writers

    def _grouping(self, writers: Mapping[EdgeType, RemoteWriter]) -> list[tuple[Any, ...]]:
        """Return what each task of ``group_edges`` is asked."""
        questions: list[tuple[Any, ...]] = []
        rows: dict[EdgeType, int] = defaultdict(int)
        for piece in self._pieces:
            names = {state.edge_type: state.relation_names for state in piece.states}
            base = dict(rows)
            for chunk in piece.chunks:
                if isinstance(chunk, NodeFiles):
                    continue
                kind, first_row = chunk.edge_type, base.get(chunk.edge_type, 0)
                questions.append(
                    (
                        self._work,
                        chunk,
                        tuple(self._places[end.node_type] for end in chunk.batches),
                        tuple(self._begins[end.name] for end in chunk.batches),
                        names[kind],
                        first_row + chunk.first_row,
                        writers[kind].told,
                    )
                )
                rows[kind] += chunk.length
        return questions

    def _place_nodes(self) -> None:
        """Tell node tables the numbers of their rows."""
        for nodes in self._nodes():
            name, begins = nodes.node_type, self._begins[nodes.ids.name]
            numbers = tasks.numbers_of(self._files, nodes.ids, self._places[name], begins)
            self._tables[name].place(numbers, self._numberings[name].num_nodes)
        for name, table in self._tables.items():
            table.check_places(self._numberings[name])

    def _remove_ids(self) -> None:
        """Remove what no task reads from here on: ids, their numbers, columns as read."""
        names = [f"{it.name}.{column}" for it in self._edges() for column in it.columns]
        names += [name for nodes in self._nodes() for name in nodes.files]
        whats = ("values", "counts", "order", "rows")
        names += [f"{batch.name}.{what}" for batch in self._ids() for what in whats]
        self._files.remove(names)
        for place in self._places.values():
            self._files.remove_folder(f"type-{place}")

    def _told(self, kind: EdgeType, writer: RemoteWriter) -> plan.WriterWork:
        """Return what tasks are told of an edge type."""
        log = self._logs[kind]
        src, dst = (
            plan.TypeNumbers(offsets=self._numberings[name].offsets)
            for name in (kind.src_type, kind.dst_type)
        )
        return plan.WriterWork(
            name=writer.name,
            src=src,
            dst=dst,
            log=plan.TypeColumns(
                edge_type=kind,
                splits=dict(log.splits),
                time_unit=log.time_unit,
                relation_names=log.relation_names,
                types=writer.dtypes,
                further=self._further(kind),
            ),
            cleaning=Cleaning(
                same_type=kind.src_type == kind.dst_type,
                drop_self_loops=self._options.drop_self_loops,
                coalesce=self._options.coalesce,
            ),
            is_directed=self._source.is_directed and not self._options.undirected,
            ranges=writer.plan,
        )


def _text() -> Any:
    import pyarrow as pa

    return pa.array(["a"])
