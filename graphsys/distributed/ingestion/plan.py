"""What tasks of an ingest are told, and what they tell."""

import os
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core import ownership
from graphsys.core.types import EdgeType
from graphsys.datasets.build_store import open_data
from graphsys.distributed.shared_files import SharedFiles, shared_files
from graphsys.storage.manifest import FileEntry
from graphsys.storage.scratch import Scratch
from graphsys.storage.source import NodeChunk, Source
from graphsys.storage.transaction import Transaction
from graphsys.storage.write.edge_log import LogState
from graphsys.storage.write.edge_sort import Cleaning, RangePlan
from graphsys.storage.write.edge_write import EdgeTypeWriter
from graphsys.storage.write.row_store import FoundRowStore, as_arrow


@contextmanager
def own_scratch(folder: Path, memory_bytes: int) -> Iterator[Scratch]:
    """Have temporary space for one try of a task."""
    own = ownership.make_folder(folder / f"try-{uuid.uuid4().hex}")
    try:
        yield Scratch(own, memory_bytes)
    finally:
        ownership.remove_folder(own)


class TaskFiles(Transaction):
    """The files of a generation that one task writes; who began it commits them."""

    # not the base's: it begins a generation
    def __init__(self, store: SharedFiles, generation: int, scratch_dir: Path) -> None:
        self.path, self.generation, self.scratch_dir = store.path, generation, scratch_dir
        self.files = []
        self._store = store

    def file(self, path: str) -> Path:
        """Return where a file is that a task wrote, here to be mapped."""
        return self._store.local(path)

    def add_file(self, path: str, batch: pa.RecordBatch | pa.Table) -> FileEntry:
        """Write a file as the base does; it is there when it is complete."""
        new = os.path.relpath(self.scratch_dir / f"new-{uuid.uuid4().hex}", self.path)
        written = super().add_file(new, batch)
        self._store.add(path, self.path / new)
        self.files.remove(written)
        entry = replace(written, path=path)
        self.files.append(entry)
        return entry


Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestWork:
    """What all tasks know.

    Attributes:
        data: What ``open_data`` is told: paths, which every machine sees, and how to read.
        out: Folder of the graph, or its location.
        generation: Of the graph.
        shard_bits: Ids are in two to this power shards.
        memory_bytes: Budget of a task.
    """

    data: dict[str, Any]
    out: str
    generation: int
    shard_bits: int
    memory_bytes: int

    @property
    def between(self) -> str:
        """Where the files between tasks are."""
        return f"{self.out}/gen-{self.generation}/scratch/tasks"

    def source(self) -> Source:
        """Open the input; what there is to warn of, whoever began has told."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return open_data(**self.data)

    @contextmanager
    def opened(self) -> Iterator["OpenedWork"]:
        """Open what one try of a task reads and writes."""
        with (
            shared_files(self.between) as files,
            shared_files(self.out) as store,
            own_scratch(files.path, self.memory_bytes) as scratch,
        ):
            graph = TaskFiles(store, self.generation, files.path)
            yield OpenedWork(files=files, graph=graph, scratch=scratch)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedWork:
    """What one try of a task reads and writes.

    Attributes:
        files: Files between tasks.
        graph: Where files of the graph go.
        scratch: Temporary space.
    """

    files: SharedFiles
    graph: TaskFiles
    scratch: Scratch


@dataclass(frozen=True, slots=True, kw_only=True)
class IdBatch:
    """The distinct ids of a chunk's nodes or of one end of its edges, grouped by shard.

    Attributes:
        name: What the names of their files begin with.
        node_type: Their type.
        is_text: Whether they are strings.
        starts: Where each shard's begin, and their number, int64 ``[S + 1]``.
    """

    name: str
    node_type: str
    is_text: bool
    starts: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFiles:
    """One chunk of edges.

    Attributes:
        name: What the names of its columns' files begin with.
        edge_type: Type of the edges.
        split: Their split.
        length: How many.
        columns: Names of the columns besides the ends that have files of their own.
        first_row: Its first row in its piece's file of further columns.
        src: Ids of the sources.
        dst: Ids of the destinations.
    """

    name: str
    edge_type: EdgeType
    split: str
    length: int
    columns: tuple[str, ...]
    first_row: int
    src: IdBatch
    dst: IdBatch

    @property
    def batches(self) -> tuple[IdBatch, ...]:
        """Both ends."""
        return self.src, self.dst


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFiles:
    """One chunk of nodes.

    Attributes:
        name: What the names of its columns' files begin with.
        node_type: Type of the nodes.
        columns: Names of the columns.
        features: Names of the features, and whether each is dense.
        ids: Their ids.
    """

    name: str
    node_type: str
    columns: tuple[str, ...]
    features: dict[str, bool]
    ids: IdBatch

    @property
    def batches(self) -> tuple[IdBatch, ...]:
        """The ids."""
        return (self.ids,)

    @classmethod
    def save(
        cls, files: SharedFiles, chunk: NodeChunk, name: str, ids: IdBatch
    ) -> "NodeFiles":
        """Write what a chunk has besides its ids."""
        dense = {k: isinstance(v, np.ndarray) for k, v in chunk.features.items()}
        arrays = {
            f"{name}.column-{place}": as_arrow(values)
            for place, values in enumerate(chunk.columns.values())
        }
        for place, (feature, values) in enumerate(chunk.features.items()):
            found = values if dense[feature] else as_arrow(values)
            arrays[f"{name}.feature-{place}"] = found
        files.save_all(arrays)
        return cls(
            name=name,
            node_type=chunk.node_type,
            columns=tuple(chunk.columns),
            features=dense,
            ids=ids,
        )

    def chunk(self, files: SharedFiles) -> NodeChunk:
        """Return the chunk, mapped; places of ids in their batch stand for ids."""
        columns = {
            name: files.load(f"{self.name}.column-{place}", is_arrow=True)
            for place, name in enumerate(self.columns)
        }
        features = {
            name: files.load(f"{self.name}.feature-{place}", is_arrow=not is_dense)
            for place, (name, is_dense) in enumerate(self.features.items())
        }
        ids = files.load(f"{self.ids.name}.rows")
        return NodeChunk(
            ids=ids, node_type=self.node_type, columns=columns, features=features
        )

    @property
    def files(self) -> list[str]:
        """Names of the files of columns and features."""
        return [
            f"{self.name}.{what}-{place}"
            for what, known in (("column", self.columns), ("feature", self.features))
            for place in range(len(known))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartScan:
    """What reading a part of the input left.

    Attributes:
        chunks: Its chunks in order.
        states: What is known of each edge type's columns.
        further: Names of files of further columns by edge type (see ``RowStore``).
        bytes_read: Bytes of the part.
    """

    chunks: list[ChunkFiles | NodeFiles]
    states: list[LogState]
    further: dict[EdgeType, str]
    bytes_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeColumns:
    """Stands for an :class:`EdgeLog` whose columns are elsewhere.

    Attributes:
        further: Names of files of further columns.
        rows: They, once opened.
    """

    edge_type: EdgeType
    splits: dict[str, int]
    relation_names: list[str] | None
    time_unit: str
    types: dict[str, np.dtype[Any]]
    further: tuple[str, ...]
    rows: FoundRowStore | None = None

    def dtypes(self, *, coalesce: bool) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the columns, which were decided before."""
        return self.types


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeNumbers:
    """Stands for the numbering of a node type whose rows are cut already."""

    offsets: Ints

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.offsets[-1])

    def degrees(self) -> npt.NDArray[np.uint32]:
        """Return none: they told how rows are cut."""
        return np.empty(0, dtype=np.uint32)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterWork:
    """What writes the edges of a type; see :class:`EdgeTypeWriter`."""

    name: str
    log: TypeColumns
    src: TypeNumbers
    dst: TypeNumbers
    cleaning: Cleaning
    is_directed: bool
    ranges: RangePlan

    def writer(self, here: OpenedWork) -> EdgeTypeWriter:
        """Return the writer."""
        log = self.log
        if log.further:
            rows = FoundRowStore(log.further, here.files.local, here.scratch)
            log = replace(log, rows=rows)
        return EdgeTypeWriter(
            self.name,
            log,
            self.src,
            self.dst,
            here.graph,
            here.scratch,
            cleaning=self.cleaning,
            is_directed=self.is_directed,
            plan=self.ranges,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a task wrote of the graph."""

    files: list[FileEntry]
    counts: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    duplicates: int = 0
    self_loops: int = 0
    fingerprints: list[str] = field(default_factory=list)
