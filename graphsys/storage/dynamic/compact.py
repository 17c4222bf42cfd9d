"""Compacting a store: its deltas folded into a new generation, which renumbers nodes."""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from graphsys.core.memory import parse_bytes, share_one_heap
from graphsys.core.progress import SILENT, Progress
from graphsys.storage.deltas.merge_cache import remove_kept
from graphsys.storage.folder_kinds import require_outside
from graphsys.storage.info import kept_form
from graphsys.storage.ingest.graph_source import GraphSource
from graphsys.storage.ingest.ingest import write_generation
from graphsys.storage.ingest.options import IngestOptions
from graphsys.storage.manifest import MANIFEST_NAME, Manifest, before_deltas
from graphsys.storage.reader import GraphReader
from graphsys.storage.transaction import Transaction, disk_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactReport:
    """What came of compacting.

    Attributes:
        graph: The graph without deltas, open.
        folded: Deltas that there were.
        bytes_written: Bytes of the new generation and of the manifest.
        seconds: Wall time.
    """

    graph: GraphReader
    folded: int
    bytes_written: int
    seconds: float


def compact(
    path: str | os.PathLike[str],
    *,
    memory: int | str = "4GB",
    progress: Progress = SILENT,
) -> CompactReport:
    """Write a graph again without deltas: what was removed goes, partitions are few.

    Partitions are as many as the generation was written with, found by the same method; the
    order of nodes is found anew. Readers of the old generation keep it. A graph without
    deltas is left as it is.

    Args:
        path: The graph's folder.
        memory: Budget of anonymous memory, as ``"4GB"`` or in bytes.
        progress: Told of every stage.

    Returns:
        Counts and the graph, open.

    Raises:
        InvalidGraphError: there is no graph.
        StoreBusyError: another process writes to it.
        StorageFullError: the disk is full; the graph stays as it was.
        ConfigError: the memory is too little.
    """
    began = time.perf_counter()
    budget = parse_bytes(memory)
    share_one_heap()
    require_outside(Path(path))
    manifest = Manifest.read(Path(path))
    if not manifest.deltas:
        seconds = time.perf_counter() - began
        return CompactReport(
            graph=GraphReader(path), folded=0, bytes_written=0, seconds=seconds
        )
    with Transaction(path, overwrite=True) as transaction, disk_errors(Path(path)):
        with GraphReader(path) as graph:  # under the lock: nobody appends any more
            old = graph.manifest
            written = write_generation(
                GraphSource(graph, old.source), _options(old, budget), transaction, progress
            )
        transaction.commit(replace(written, source=old.source))
    remove_kept(Path(path))
    progress.close()
    size = sum(entry.bytes for entry in transaction.files)
    return CompactReport(
        graph=GraphReader(path),
        folded=len(old.deltas),
        bytes_written=size + (Path(path) / MANIFEST_NAME).stat().st_size,
        seconds=time.perf_counter() - began,
    )


def how_written(manifest: Manifest) -> tuple[str, str]:
    """Return the partitioner and the order that a store is written again with."""
    orders = set(manifest.order.values())
    order = orders.pop() if len(orders) == 1 else "auto"
    return manifest.partitioning.get("method", "hash"), order


def _options(manifest: Manifest, memory_bytes: int) -> IngestOptions:
    first = before_deltas(manifest).node_types
    partitioner, order = how_written(manifest)
    return IngestOptions(
        partitions={name: node.num_partitions for name, node in first.items()},
        partitioner=partitioner,
        seed=manifest.partitioning.get("seed", 0),
        order=order,
        memory_bytes=memory_bytes,
        features_as=kept_form(manifest),
    )
