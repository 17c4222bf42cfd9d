"""The steps of an ingest; see ``ingest`` for what they are."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import GraphsysError, InputError, StorageFullError, unknown_name
from graphsys.core.events import span
from graphsys.core.memory import format_bytes, release_free_memory
from graphsys.core.progress import Progress
from graphsys.core.threads import map_in_order
from graphsys.core.types import EdgeType
from graphsys.storage.ids.id_mapping import Assignment, NodeNumbering
from graphsys.storage.ingest.graph_source import GraphSource
from graphsys.storage.ingest.options import IngestOptions
from graphsys.storage.ingest.quality import partition_quality, warn_of_duplicates
from graphsys.storage.ingest.split_column import chunks_of
from graphsys.storage.manifest import (
    EdgeTypeEntry,
    Manifest,
    NodeTypeEntry,
    needed_version,
)
from graphsys.storage.scratch import Scratch
from graphsys.storage.source import EdgeChunk, NodeChunk, Source
from graphsys.storage.transaction import Transaction
from graphsys.storage.write.edge_log import EdgeLog, EdgeRecord
from graphsys.storage.write.edge_sort import Cleaning
from graphsys.storage.write.edge_write import EdgeTypeWriter
from graphsys.storage.write.node_tables import NodeTables

Writer = TypeVar("Writer", bound=EdgeTypeWriter)


class IngestSteps:
    """The steps of one ingest, and what they hand on.

    Args:
        source: The graph; read once.
        options: How the store is made.
        transaction: Where the files go.
        progress: Told of every stage.
        assigned: Partitions and ranks by node type, where found beforehand.
    """

    def __init__(
        self,
        source: Source,
        options: IngestOptions,
        transaction: Transaction,
        progress: Progress,
        assigned: Mapping[str, Assignment] | None = None,
    ) -> None:
        self._source, self._options = source, options
        self._assigned = assigned or {}
        self._transaction, self._progress = transaction, progress
        self._scratch = Scratch(transaction.scratch_dir, options.memory_bytes)
        self._numberings: dict[str, NodeNumbering] = {}
        self._tables: dict[str, NodeTables] = {}
        self._logs: dict[EdgeType, EdgeLog] = {}
        self._records: list[EdgeRecord | tuple[str, int]] = []
        self._num_edges = 0
        self._in_source = False

    def run(self) -> Manifest:
        """Do all steps and return the manifest to commit.

        Raises:
            InputError: the source is malformed or cannot be read.
            StorageFullError: the disk has too little space.
        """
        try:
            return self._run()
        except InputError as err:
            if self._in_source or str(err).startswith(self._source.name):
                raise
            raise InputError(f"{self._source.name}: {err}") from err

    def _run(self) -> Manifest:
        self._check_space(self._source.total_bytes or 0)
        with span("scan"):
            self._scan()
        self._check_partition_names()
        # Before the long part: a disk that would fill up in an hour is told of now.
        self._check_space(40 * self._num_edges)
        with span("number"):
            self._number()
        # What a step has freed lies in the allocator's pools, and would count for the next
        # one.
        release_free_memory()
        with span("group"):
            writers = self._group()
        release_free_memory()
        with span("write"):
            return self._write(writers)

    # ---- steps

    def _scan(self) -> None:
        self._progress.stage("read", self._source.total_bytes, "bytes")
        for chunk in self._read():
            if isinstance(chunk, NodeChunk):
                self._numbering(chunk.node_type).add(chunk.ids, weight=0)
                self._table(chunk.node_type).add(chunk)
                self._records.append((chunk.node_type, len(chunk.ids)))
            else:
                self._scan_edges(chunk)
            self._progress.advance(chunk.bytes_read, edges=self._num_edges)
        self._require_rows(
            r.length if isinstance(r, EdgeRecord) else r[1] for r in self._records
        )

    def _read(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the source's chunks; what fails in it is not the output's fault."""
        chunks = chunks_of(self._source)
        while True:
            self._in_source = True
            try:
                chunk = next(chunks)
            except StopIteration:
                self._in_source = False
                return
            except GraphsysError:
                raise
            except OSError as err:
                reason = err.strerror.lower() if err.strerror else str(err)
                raise InputError(
                    f"{err.filename or self._source.name}: cannot be read: {reason}"
                ) from err
            self._in_source = False
            yield chunk

    def _scan_edges(self, chunk: EdgeChunk) -> None:
        kind = chunk.edge_type
        if kind not in self._logs:
            self._logs[kind] = EdgeLog(
                kind, self._scratch, allows_nan=self._source.allows_nan
            )
        record = self._logs[kind].add(chunk)
        self._numbering(kind.src_type).add(chunk.src, weight=1)
        self._numbering(kind.dst_type).add(chunk.dst, weight=1)
        if kind.src_type == kind.dst_type:
            self._numbering(kind.src_type).sample(chunk.src, chunk.dst)
        self._records.append(record)
        self._num_edges += record.length

    def _numbering(self, node_type: str) -> NodeNumbering:
        if node_type not in self._numberings:
            self._numberings[node_type] = NodeNumbering(node_type, self._scratch)
        return self._numberings[node_type]

    def _table(self, node_type: str) -> NodeTables:
        if node_type not in self._tables:
            self._tables[node_type] = NodeTables(
                node_type, self._scratch, self._options.features_as
            )
        return self._tables[node_type]

    def _number(self) -> None:
        self._progress.stage("number", len(self._numberings), "node types")
        for node_type, numbering in self._numberings.items():
            numbering.finish(
                partitioner=self._options.partitioner,
                num_partitions=self._options.num_partitions(node_type),
                order=self._options.order,
                seed=self._options.seed,
                assigned=self._assigned.get(node_type),
            )
            self._progress.advance(1)
        for log in self._logs.values():
            log.finish()

    def _group(self) -> Mapping[EdgeType, EdgeTypeWriter]:
        self._progress.stage("group", self._num_edges, "edges")
        writers = self._writers(EdgeTypeWriter)

        def group(item: "tuple[EdgeRecord, Any, Any]") -> tuple[EdgeTypeWriter, int, Any]:
            record, src, dst = item
            writer = writers[record.edge_type]
            columns = self._logs[record.edge_type].read(record, writer.dtypes)
            return writer, record.length, writer.group(record.split, src, dst, columns)

        for writer, length, grouped in map_in_order(group, self._numbered()):
            writer.append(*grouped)
            self._progress.advance(length)
        for node_type, table in self._tables.items():
            numbering = self._numberings[node_type]
            table.check_places(numbering)
            if self._options.missing_nodes:
                table.check_missing(numbering, self._options.missing_nodes)
        return writers

    def _writers(self, kind_of: type[Writer]) -> dict[EdgeType, Writer]:
        type_names = edge_type_names(list(self._logs))
        is_directed = self._source.is_directed and not self._options.undirected
        return {
            kind: kind_of(
                type_names[kind],
                log,
                self._numberings[kind.src_type],
                self._numberings[kind.dst_type],
                self._transaction,
                self._scratch,
                cleaning=Cleaning(
                    same_type=kind.src_type == kind.dst_type,
                    drop_self_loops=self._options.drop_self_loops,
                    coalesce=self._options.coalesce,
                ),
                is_directed=is_directed,
            )
            for kind, log in self._logs.items()
        }

    def _numbered(
        self,
    ) -> Iterator[tuple[EdgeRecord, npt.NDArray[Any], npt.NDArray[Any]]]:
        """Yield the chunks of edges as numbers; tell node tables theirs."""
        streams = {
            name: numbering.batches() for name, numbering in self._numberings.items()
        }
        for record in self._records:
            if isinstance(record, EdgeRecord):
                # A numbering gives back its batches in the order in which the scan added
                # them: nodes, sources and destinations must be asked for as they came.
                src = next(streams[record.edge_type.src_type])
                yield record, src, next(streams[record.edge_type.dst_type])
            else:
                name = record[0]
                num_nodes = self._numberings[name].num_nodes
                self._tables[name].place(next(streams[name]), num_nodes)

    def _write(self, writers: Mapping[EdgeType, EdgeTypeWriter]) -> Manifest:
        self._progress.stage("write", len(writers) + len(self._numberings), "types")
        node_types: dict[str, NodeTypeEntry] = {}
        for name, numbering in self._numberings.items():
            table = self._tables.get(name) or NodeTables(name, self._scratch)
            node_types[name] = table.write(numbering, self._transaction)
            numbering.release()
            self._progress.advance(1)
        edge_types: dict[str, EdgeTypeEntry] = {}
        counts = []
        for kind, writer in writers.items():
            edge_types[writer.name] = writer.write()
            counts.append((kind, sum(writer.counts.values(), np.zeros((), dtype=np.int64))))
            if not isinstance(self._source, GraphSource):  # known since it was ingested
                warn_of_duplicates(edge_types[writer.name], self._options)
            self._progress.advance(1)
        return Manifest(
            generation=self._transaction.generation,
            node_types=node_types,
            edge_types=edge_types,
            partitioning={
                "method": self._options.partitioner,
                "seed": self._options.seed,
                "quality": partition_quality(
                    {
                        name: numbering.offsets
                        for name, numbering in self._numberings.items()
                    },
                    counts,
                ),
            },
            order={name: numbering.order for name, numbering in self._numberings.items()},
            files=sorted(self._transaction.files, key=lambda entry: entry.path),
            source=self._source.name,
            format_version=needed_version(node_types.values(), edge_types.values()),
        )

    # ---- checks

    def _require_rows(self, lengths: Iterable[int]) -> None:
        if not any(lengths):
            raise InputError(
                f"{self._source.name} holds no edges and no nodes; expected at least one"
            )

    def _check_space(self, needed: int) -> None:
        free = shutil.disk_usage(self._transaction.path).free
        if needed > free:
            raise StorageFullError(
                f"{self._transaction.path} has {format_bytes(free)} free, about "
                f"{format_bytes(needed)} are needed; free some space or choose another "
                "output"
            )

    def _check_partition_names(self) -> None:
        if isinstance(self._options.partitions, Mapping):
            for name in self._options.partitions:
                if name not in self._numberings:
                    raise unknown_name("node type in --partitions", name, self._numberings)


def edge_type_names(kinds: list[EdgeType]) -> dict[EdgeType, str]:
    """Name edge types: by the relation alone where that is unique, else by all three."""
    relations = [kind.relation for kind in kinds]
    found: dict[EdgeType, str] = {}
    for kind in sorted(kinds, key=lambda kind: relations.count(kind.relation)):
        is_unique = relations.count(kind.relation) == 1
        base = kind.relation if is_unique else "-".join(kind)
        name, k = base, 1
        while name in found.values():  # types or relations may have dashes of their own
            k += 1
            name = f"{base}-{k}"
        found[kind] = name
    return {kind: found[kind] for kind in kinds}
