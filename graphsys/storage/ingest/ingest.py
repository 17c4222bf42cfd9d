"""Ingest: from a source read once to a committed store, within a memory budget.

Five steps (``ingest_steps``), each streaming over what the one before left in scratch:

1. scan: ids and columns are spilled as they come;
2. number: distinct ids are found, partitioned and ordered (``numbering``);
3. group: edges, now as numbers, are grouped by ranges of rows (``edge_sort``);
4. write: nodes and features (``node_tables``), then ranges of edges, sorted into buckets,
   CSR and CSC (``edge_write``);
5. commit: one rename (``transaction``).
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic

from graphsys.core.memory import MemoryMeter, format_bytes, parse_bytes, share_one_heap
from graphsys.core.notebook.tables import fields_table
from graphsys.core.progress import IN_NOTEBOOKS, SILENT, Progress
from graphsys.core.remote.locations import is_remote
from graphsys.storage.ids.id_mapping import Assignment
from graphsys.storage.info import shared_bytes
from graphsys.storage.ingest.graph_source import GraphSource
from graphsys.storage.ingest.node_stream import assign_nodes
from graphsys.storage.ingest.options import IngestOptions
from graphsys.storage.ingest.split_source import SplitSource, reserved_memory
from graphsys.storage.ingest.split_spec import SplitSpec
from graphsys.storage.ingest.steps import IngestSteps
from graphsys.storage.manifest import MANIFEST_NAME, Manifest
from graphsys.storage.reader import G, GraphReader
from graphsys.storage.remote.publishing import published
from graphsys.storage.source import Source
from graphsys.storage.transaction import Transaction, disk_errors
from graphsys.storage.write.feature_encoding import parse_forms


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport(Generic[G]):
    """What came of an ingest.

    Attributes:
        graph: The new store, open.
        duplicates: Edges beyond the first of each (src, dst, relation), as found.
        self_loops: Edges from a node to itself, as found.
        seconds: Wall time of the whole ingest.
        peak_memory_bytes: Peak of RssAnon + RssShmem during it, sampled.
        shared_bytes: What it saves that features are stored once where rows repeat.
    """

    graph: G
    duplicates: int
    self_loops: int
    seconds: float
    peak_memory_bytes: int
    shared_bytes: int = 0

    def _repr_html_(self) -> str:
        graph = self.graph
        facts = {
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "repeated edges found": self.duplicates,
            "self-loops found": self.self_loops,
            "seconds": self.seconds,
            "peak memory": format_bytes(self.peak_memory_bytes),
        }
        return fields_table(str(graph.path), facts)


def ingest(
    source: Source,
    out: str | os.PathLike[str],
    *,
    memory: int | str = "4GB",
    overwrite: bool = False,
    progress: Progress = IN_NOTEBOOKS,
    assigned: Mapping[str, Assignment] | None = None,
    split: SplitSpec | None = None,
    **options: Any,
) -> IngestReport[GraphReader]:
    """Read a source into a store.

    Args:
        source: The graph; read once.
        out: Folder of the store; made, or with ``overwrite`` given a new generation. Or a
            location (``s3://...``): the store is made in the user's cache and uploaded.
        memory: Budget of anonymous memory, as ``"4GB"`` or in bytes.
        overwrite: Whether a graph in ``out`` may be replaced; it stays if this fails.
        progress: Told of every stage.
        assigned: Partition of every node by node type, where found beforehand.
        split: How edges are parted into train, valid and test; None for as they come.
        **options: Fields of :class:`IngestOptions`.

    Returns:
        Counts, times and the open graph.

    Raises:
        InputError: the source is malformed; nothing is written.
        OutputExistsError: ``out`` holds something and may not be replaced.
        StoreBusyError: another process writes to ``out``.
        StorageFullError: the disk is full or read-only; nothing is left behind.
        ConfigError: an option is out of range.
    """
    began = time.perf_counter()
    if is_remote(out):
        with published(out, MANIFEST_NAME, overwrite=overwrite) as folder:
            report = ingest(
                source,
                folder,
                memory=memory,
                progress=progress,
                assigned=assigned,
                split=split,
                **options,
            )
            report.graph.close()
        return replace(report, graph=GraphReader(out), seconds=time.perf_counter() - began)
    settings = IngestOptions(memory_bytes=parse_bytes(memory), **options)
    share_one_heap()
    with (
        MemoryMeter() as meter,
        Transaction(out, overwrite=overwrite) as transaction,
        disk_errors(Path(out)),
    ):
        if split is not None:
            manifest = _ingest_split(source, split, settings, transaction, progress)
        else:
            manifest = write_generation(source, settings, transaction, progress, assigned)
        transaction.commit(manifest)
    progress.close()
    entries = manifest.edge_types.values()
    return IngestReport(
        graph=GraphReader(out),
        duplicates=sum(entry.duplicates for entry in entries),
        self_loops=sum(entry.self_loops for entry in entries),
        seconds=time.perf_counter() - began,
        peak_memory_bytes=meter.peak_bytes,
        shared_bytes=shared_bytes(manifest),
    )


def write_generation(
    source: Source,
    options: IngestOptions,
    transaction: Transaction,
    progress: Progress = SILENT,
    assigned: Mapping[str, Assignment] | None = None,
) -> Manifest:
    """Write a source as the files of a transaction and return the manifest to commit.

    Raises:
        InputError: the source is malformed.
        StorageFullError: the disk has too little space.
    """
    if assigned is None and options.needs_structure:
        return _ingest_twice(source, options, transaction, progress)
    return IngestSteps(source, options, transaction, progress, assigned).run()


def _ingest_twice(
    source: Source, options: IngestOptions, transaction: Transaction, progress: Progress
) -> Manifest:
    """Ingest into a temporary store, partition or order that, and write it again."""
    with _stored(source, options, transaction, progress, "unpartitioned") as graph:
        progress.stage("partition")
        assigned = assign_nodes(
            graph,
            partitioner=options.partitioner,
            num_partitions=options.num_partitions,
            order=options.order,
            seed=options.seed,
            memory_bytes=options.memory_bytes,
        )
        job = IngestSteps(
            GraphSource(graph, source.name),
            _again(options),
            transaction,
            progress,
            assigned,
        )
        return _as_found(job.run(), graph.manifest)


def _ingest_split(
    source: Source,
    spec: SplitSpec,
    options: IngestOptions,
    transaction: Transaction,
    progress: Progress,
) -> Manifest:
    """Ingest into a temporary store, part its edges, and write it again."""
    with _stored(source, options, transaction, progress, "unsplit") as graph:
        parted, again = SplitSource(graph, spec, source.name), _again(options)
        kept = reserved_memory(graph, options.memory_bytes, spec)
        again = replace(again, memory_bytes=kept)
        manifest = write_generation(parted, again, transaction, progress)
        return _as_found(manifest, graph.manifest)


def _stored(
    source: Source,
    options: IngestOptions,
    transaction: Transaction,
    progress: Progress,
    name: str,
) -> GraphReader:
    """Write a source into a temporary store with one partition."""
    form, _ = parse_forms(options.features_as)
    first = replace(
        options, partitioner="hash", partitions=1, order="original", features_as=form
    )
    folder = transaction.scratch_dir / name
    with Transaction(folder, is_scratch=True) as inner:
        inner.commit(IngestSteps(source, first, inner, progress).run())
    return GraphReader(folder)


def _again(options: IngestOptions) -> IngestOptions:
    """Return the options of a second writing: what removes edges was done."""
    return replace(options, undirected=False, coalesce=False, drop_self_loops=False)


def _as_found(manifest: Manifest, first: Manifest) -> Manifest:
    """Return a manifest that tells what was found in the source, the first time."""
    found = {entry.edge_type: entry for entry in first.edge_types.values()}
    edge_types = {
        name: replace(
            entry,
            duplicates=found[entry.edge_type].duplicates,
            self_loops=found[entry.edge_type].self_loops,
        )
        for name, entry in manifest.edge_types.items()
    }
    return replace(manifest, edge_types=edge_types)
