"""What tasks of an ingest are told, and what they tell."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.datasets.opening import open_source
from graphsys.distributed.ingesting.files import TaskFiles, load
from graphsys.storage.manifest import FileEntry
from graphsys.storage.scratch import Scratch
from graphsys.storage.source import Source
from graphsys.storage.write.edge_log import LogState
from graphsys.storage.write.edge_sort import Cleaning
from graphsys.storage.write.edge_write import EdgeTypeWriter

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestWork:
    """What all tasks know.

    Attributes:
        files: Paths of the input, which every machine sees.
        reading: Options of ``open_source``.
        out: Folder of the graph.
        folder: Folder of the files between tasks, below that.
        generation: Of the graph.
        shard_bits: Ids are in two to this power shards.
        memory_bytes: Budget of a task.
    """

    files: tuple[str, ...]
    reading: dict[str, Any]
    out: Path
    folder: Path
    generation: int
    shard_bits: int
    memory_bytes: int

    def source(self) -> Source:
        """Open the input."""
        return open_by_parts(self.files, self.reading)

    def task_files(self) -> TaskFiles:
        """Return where files of the graph go."""
        return TaskFiles(self.out, self.generation, self.folder)


def open_by_parts(files: Sequence[str], reading: dict[str, Any]) -> Source:
    """Open files that tasks read part by part.

    Args:
        files: The files.
        reading: Options of ``open_source``.

    Raises:
        ConfigError: They are of a format that is read as a whole.
        InputError: As of ``open_source``.
    """
    source = open_source(list(files), **reading)
    if not hasattr(source, "keep_part"):
        raise ConfigError(
            f"{source.name} is of a format that is read as a whole, --cluster takes edges "
            "in text and tables; leave out --cluster"
        )
    return source


@dataclass(frozen=True, slots=True, kw_only=True)
class IdBatch:
    """The distinct ids of one column of a chunk, grouped by shard.

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
        columns: Names of the columns besides the ends.
        src: Ids of the sources.
        dst: Ids of the destinations.
    """

    path: Path
    edge_type: EdgeType
    split: str
    length: int
    columns: tuple[str, ...]
    src: IdBatch
    dst: IdBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What reading a file left.

    Attributes:
        chunks: Its chunks in order.
        states: What is known of each edge type's columns.
        bytes_read: Bytes of the file.
    """

    chunks: list[ChunkFiles]
    states: list[LogState]
    bytes_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeColumns:
    """Stands for an :class:`EdgeLog` whose columns are elsewhere."""

    edge_type: EdgeType
    splits: dict[str, int]
    relation_names: list[str] | None
    time_unit: str
    types: dict[str, np.dtype[Any]]
    rows: None = None

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
        return EdgeTypeWriter(
            self.name, self.log, self.src, self.dst, files, scratch,
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
