"""What tasks of an ingest are told, and what they tell."""

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EdgeType
from graphsys.datasets.build_store import open_data
from graphsys.distributed.ingesting.files import TaskFiles, load, save
from graphsys.storage.manifest import FileEntry
from graphsys.storage.scratch import Scratch
from graphsys.storage.source import NodeChunk, Source
from graphsys.storage.write.edge_log import LogState
from graphsys.storage.write.edge_sort import Cleaning
from graphsys.storage.write.edge_write import EdgeTypeWriter
from graphsys.storage.write.row_store import FoundRows, as_arrow

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestWork:
    """What all tasks know.

    Attributes:
        data: What ``open_data`` is told: paths, which every machine sees, and how to read.
        out: Folder of the graph.
        folder: Folder of the files between tasks, below that.
        generation: Of the graph.
        shard_bits: Ids are in two to this power shards.
        memory_bytes: Budget of a task.
    """

    data: dict[str, Any]
    out: Path
    folder: Path
    generation: int
    shard_bits: int
    memory_bytes: int

    def source(self) -> Source:
        """Open the input; what there is to warn of, whoever began has told."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return open_data(**self.data)

    def task_files(self) -> TaskFiles:
        """Return where files of the graph go."""
        return TaskFiles(self.out, self.generation, self.folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdBatch:
    """The distinct ids of a chunk's nodes or of one end of its edges, grouped by shard.

    Attributes:
        path: Where they are, less what follows in the files' names.
        node_type: Their type.
        is_text: Whether they are strings.
        starts: Where each shard's begin, and their number, int64 ``[S + 1]``.
    """

    path: Path
    node_type: str
    is_text: bool
    starts: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFiles:
    """One chunk of edges.

    Attributes:
        path: Where its columns are, less what follows in the files' names.
        edge_type: Type of the edges.
        split: Their split.
        length: How many.
        columns: Names of the columns besides the ends that have files of their own.
        first_row: Its first row in its piece's file of further columns.
        src: Ids of the sources.
        dst: Ids of the destinations.
    """

    path: Path
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
        path: Where its columns are, less what follows in the files' names.
        node_type: Type of the nodes.
        columns: Names of the columns.
        features: Names of the features, and whether each is dense.
        ids: Their ids.
    """

    path: Path
    node_type: str
    columns: tuple[str, ...]
    features: dict[str, bool]
    ids: IdBatch

    @property
    def batches(self) -> tuple[IdBatch, ...]:
        """The ids."""
        return (self.ids,)

    @classmethod
    def save(cls, chunk: NodeChunk, path: Path, ids: IdBatch) -> "NodeFiles":
        """Write what a chunk has besides its ids."""
        dense = {k: isinstance(v, np.ndarray) for k, v in chunk.features.items()}
        for place, values in enumerate(chunk.columns.values()):
            save(Path(f"{path}.column-{place}"), as_arrow(values))
        for place, (name, values) in enumerate(chunk.features.items()):
            found = values if dense[name] else as_arrow(values)
            save(Path(f"{path}.feature-{place}"), found)
        return cls(
            path=path, node_type=chunk.node_type, columns=tuple(chunk.columns),
            features=dense, ids=ids,
        )  # fmt: skip

    def chunk(self) -> NodeChunk:
        """Return the chunk, mapped; places of ids in their batch stand for ids."""
        columns = {
            name: load(Path(f"{self.path}.column-{place}"), is_arrow=True)
            for place, name in enumerate(self.columns)
        }
        features = {
            name: load(Path(f"{self.path}.feature-{place}"), is_arrow=not is_dense)
            for place, (name, is_dense) in enumerate(self.features.items())
        }
        ids = load(Path(f"{self.ids.path}.rows"))
        return NodeChunk(
            ids=ids, node_type=self.node_type, columns=columns, features=features
        )

    def remove(self) -> None:
        """Remove the files of columns and features."""
        for name, number in (
            ("column", len(self.columns)),
            ("feature", len(self.features)),
        ):
            for place in range(number):
                Path(f"{self.path}.{name}-{place}").unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What reading a part of the input left.

    Attributes:
        chunks: Its chunks in order.
        states: What is known of each edge type's columns.
        further: Files of further columns by edge type (see ``RowStore``).
        bytes_read: Bytes of the part.
    """

    chunks: list[ChunkFiles | NodeFiles]
    states: list[LogState]
    further: dict[EdgeType, Path]
    bytes_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeColumns:
    """Stands for an :class:`EdgeLog` whose columns are elsewhere.

    Attributes:
        further: Files of further columns.
        rows: They, once opened.
    """

    edge_type: EdgeType
    splits: dict[str, int]
    relation_names: list[str] | None
    time_unit: str
    types: dict[str, np.dtype[Any]]
    further: tuple[Path, ...]
    rows: FoundRows | None = None

    def dtypes(self, *, coalesce: bool) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the columns, which were decided before."""
        return self.types


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeNumbers:
    """Stands for the numbering of a node type, whose degrees are in a file."""

    offsets: Ints
    path: Path

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.offsets[-1])

    def degrees(self) -> npt.NDArray[np.uint32]:
        """Return the degrees by number, mapped."""
        found: npt.NDArray[np.uint32] = load(self.path)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterWork:
    """What writes the edges of a type; see :class:`EdgeTypeWriter`."""

    name: str
    log: TypeColumns
    src: TypeNumbers
    dst: TypeNumbers
    cleaning: Cleaning
    is_directed: bool

    def writer(self, files: TaskFiles, scratch: Scratch) -> EdgeTypeWriter:
        """Return the writer."""
        log = self.log
        if log.further:
            log = replace(log, rows=FoundRows(log.further, scratch))
        return EdgeTypeWriter(
            self.name, log, self.src, self.dst, files, scratch,
            cleaning=self.cleaning, is_directed=self.is_directed,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a task wrote of the graph."""

    files: list[FileEntry]
    counts: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    duplicates: int = 0
    self_loops: int = 0
    fingerprints: list[str] = field(default_factory=list)
