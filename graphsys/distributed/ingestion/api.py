"""``ingest`` on a cluster: files read, ids numbered and buckets written by workers."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.memory import MemoryMeter, parse_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.core.remote.locations import Location, is_remote
from graphsys.datasets.build_store import open_data
from graphsys.datasets.files import as_uri
from graphsys.distributed.cluster import Cluster, connected
from graphsys.distributed.group import run_tasks
from graphsys.distributed.ingestion.plan import IngestWork
from graphsys.distributed.ingestion.steps import ClusterSteps
from graphsys.distributed.shared_files import shared_files
from graphsys.facade.graph import Graph
from graphsys.storage.ingest.ingest import IngestReport
from graphsys.storage.ingest.options import IngestOptions
from graphsys.storage.manifest import MANIFEST_NAME, Manifest
from graphsys.storage.remote.publishing import own_number, published
from graphsys.storage.transaction import Transaction, disk_errors, refuse_existing

AnyPath: TypeAlias = str | os.PathLike[str]
_ID_BYTES = 64  # of an id in a shard: as read, distinct, counted
_MAX_SHARD_BITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIngestReport(IngestReport[Graph]):
    """What came of an ingest on a cluster.

    Attributes:
        workers: How many processors worked.
    """

    workers: int


def ingest(
    files: Sequence[AnyPath],
    out: AnyPath,
    *,
    cluster: Cluster,
    nodes: Mapping[str, AnyPath] | None = None,
    edges: Mapping[Any, AnyPath | Sequence[AnyPath]] | None = None,
    memory: int | str = "4GB",
    overwrite: bool = False,
    progress: Progress = SILENT,
    reading: dict[str, Any] | None = None,
    **options: Any,
) -> ClusterIngestReport:
    """Read files into a store, byte for byte the one that one machine makes.

    Args:
        files: Files as ``graphsys.ingest`` takes them, which all machines see, or which
            lie on an object store; none where there are ``edges``. Tasks read files of text
            and tables, and a description's tables, side by side; one task reads other
            formats.
        out: Folder of the store, which all machines see, or a location (``s3://...``).
            There workers of several machines put files themselves; those of this machine
            make the store in the user's cache, and it is uploaded.
        cluster: Where.
        nodes: File of each node type, as ``graphsys.ingest`` takes them.
        edges: File or files of each edge type, likewise.
        memory: Budget of a task, and of this process.
        overwrite: Whether a graph in ``out`` may be replaced; it stays if this fails.
        progress: Told of every stage.
        reading: Options of ``graphsys.ingest`` about reading: format, ids, columns ...
        **options: Fields of ``IngestOptions``.

    Returns:
        As on one machine; the peak of memory is this process's.

    Raises:
        ConfigError: What only one machine takes.
        ClusterError: Nothing answers, or workers are lost again and again.
        InputError: the input is malformed; nothing is written.
        OutputExistsError: ``out`` holds something and may not be replaced.
        StorageFullError: the disk is full or read-only; nothing is left behind.
    """
    settings = IngestOptions(memory_bytes=parse_bytes(memory), **options)
    began = time.perf_counter()
    reading = {**(reading or {}), "undirected": settings.undirected}
    given: dict[str, Any] = {
        "data": list(files) or None,
        "nodes": nodes or None,
        "edges": edges or None,
    }
    _refuse(settings)
    make = _Making(given, reading, settings, cluster, progress)
    if not is_remote(out):
        target = Path(out).absolute()
        refuse_existing(target, overwrite=overwrite)  # before a cluster is started
        made = make.run(target, str(target), overwrite=overwrite)
    else:
        number = None if cluster.local_workers else own_number()
        with published(out, MANIFEST_NAME, overwrite=overwrite, number=number) as folder:
            place = str(folder if number is None else Location.parse(out))
            made = make.run(folder, place, generation=number)
    entries = made.manifest.edge_types.values()
    return ClusterIngestReport(
        graph=Graph(out),
        duplicates=sum(entry.duplicates for entry in entries),
        self_loops=sum(entry.self_loops for entry in entries),
        seconds=time.perf_counter() - began,
        peak_memory_bytes=made.peak_bytes,
        workers=made.workers,
    )


@dataclass(frozen=True, slots=True)
class _Made:
    """What came of a graph's making.

    Attributes:
        manifest: Of the graph.
        peak_bytes: Of this process's memory.
        workers: How many processors worked.
    """

    manifest: Manifest
    peak_bytes: int
    workers: int


@dataclass(frozen=True, slots=True)
class _Making:
    """Makes a graph by workers.

    Attributes:
        given: What is read.
        reading: How.
        settings: How the store is made.
        cluster: Where.
        progress: Told of every stage.
    """

    given: dict[str, Any]
    reading: dict[str, Any]
    settings: IngestOptions
    cluster: Cluster
    progress: Progress

    def run(
        self,
        target: Path,
        place: str,
        *,
        overwrite: bool = False,
        generation: int | None = None,
    ) -> _Made:
        """Make it.

        Args:
            target: Its folder, in which the manifest and what this process writes go.
            place: Where workers read and write: that folder, or a location.
            overwrite: Whether a graph in the folder may be replaced.
            generation: Of the graph; None for the next.
        """
        memory_bytes, settings = self.settings.memory_bytes, self.settings
        source = open_data(**self.given, **self.reading)
        with (
            MemoryMeter() as meter,
            connected(self.cluster) as workers,
            Transaction(target, overwrite=overwrite, generation=generation) as transaction,
            disk_errors(target),
        ):
            paths = {name: _absolute(it) for name, it in self.given.items()}
            work = IngestWork(
                data={**paths, **self.reading},
                out=place,
                generation=transaction.generation,
                memory_bytes=memory_bytes,
                shard_bits=_shard_bits(source.total_bytes or 0, memory_bytes, workers),
            )
            with shared_files(work.between) as files, _named(_paths(self.given)):
                steps = ClusterSteps(
                    source, settings, transaction, self.progress, work, files, run_tasks
                )
                manifest = steps.run()
            transaction.commit(manifest)
        self.progress.close()
        return _Made(manifest, meter.peak_bytes, workers)


def _refuse(settings: IngestOptions) -> None:
    """Refuse what only one machine takes.

    Raises:
        ConfigError: It was asked for.
    """
    if settings.needs_structure:
        raise ConfigError(
            f"partitioner {settings.partitioner} with order {settings.order} looks at the "
            "whole graph, which --cluster does not; leave out --cluster, or partition "
            "the graph afterwards"
        )


def _paths(given: Any) -> list[AnyPath]:
    """Return the paths in lists and mappings of them."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, (list, tuple)):
        return [path for item in given for path in _paths(item)]
    return [] if given is None else [given]


def _absolute(given: Any) -> Any:
    """Return lists and mappings of paths with whole paths; locations stay."""
    if isinstance(given, Mapping):
        return {name: _absolute(item) for name, item in given.items()}
    if isinstance(given, (list, tuple)):
        return [_absolute(item) for item in given]
    return given if given is None else as_uri(given) or str(Path(given).absolute())


@contextmanager
def _named(paths: Sequence[AnyPath]) -> Iterator[None]:
    """Have messages of tasks name files, and those beside them, as the user does.

    Raises:
        InputError: What a task raised.
    """
    try:
        yield
    except InputError as err:
        text = str(err)
        here = [Path(path) for path in paths if as_uri(path) is None]
        for path in here:
            text = text.replace(str(path.absolute()), str(path))
        for folder in {path.parent for path in here}:
            shown = "" if str(folder) == "." else f"{folder}/"
            text = text.replace(f"{folder.absolute()}/", shown)
        raise InputError(text) from None


def _shard_bits(total_bytes: int, memory_bytes: int, workers: int) -> int:
    """Cut ids so that a shard of the most that there can be fits a task's budget."""
    most_ids = total_bytes // 4
    needed = max(workers, most_ids * _ID_BYTES // max(memory_bytes // 2, 1) + 1)
    return min((needed - 1).bit_length(), _MAX_SHARD_BITS)
