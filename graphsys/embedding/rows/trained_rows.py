"""A finished (or interrupted) run, opened for use: rows by user id, operators."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.datasets.temporary import GraphLike, graph_of
from graphsys.embedding import run as runs
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.model import RelationSet, relation_sets
from graphsys.embedding.rows.node_rows import EmbeddingTables
from graphsys.embedding.rows.row_precision import (
    Stored,
    stored_dtype,
    stored_width,
    to_floats,
)
from graphsys.embedding.rows.table_files import first_table, read_global, state_shape
from graphsys.facade.graph import Graph
from graphsys.storage.find_node import find_node
from graphsys.storage.ids.mapped_gather import taken
from graphsys.storage.reader import GraphReader
from graphsys.storage.remote.fetching import run_folder
from graphsys.storage.runs.run_pins import pinned
from graphsys.storage.runs.trained_graph import open_trained_graph

if TYPE_CHECKING:
    import torch

Floats = npt.NDArray[np.float32]


class TrainedEmbedding:
    """The last checkpoint of a run, with the names of its graph.

    Rows are mapped from the run's files, not read.

    Args:
        path: The run's folder.
        graph: The graph it was trained on, or its path; opened from the recorded path if
            not given.
        content: Whether to compare files with their checksums, too, not their sizes alone.
        checkpoint: State and settings of a checkpoint that the caller has pinned, whose
            files are compared by their sizes alone; the last one, pinned here, if not
            given.

    Raises:
        ConfigError: There is no run, its graph is gone, or another was given.
        CorruptStoreError: A file of the checkpoint is missing or damaged.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        graph: GraphLike | None = None,
        content: bool = True,
        checkpoint: tuple[runs.EmbeddingRunState, EmbeddingConfig] | None = None,
    ) -> None:
        self.path = run_folder(path)
        if checkpoint is None:
            last, self.pin = pinned(self.path, partial(_read, self.path, content), self)
            self.state, self.config = last
        else:
            self.state, self.config = checkpoint
            runs.check_files(self.path, self.state, content=False)
        found = self._open_graph() if graph is None else graph_of(graph)
        self.graph: GraphReader = Graph.of(found)
        runs.require_same_graph(self.state.graph, self.graph, self.path)
        self.model: list[RelationSet] = relation_sets(self.graph, self.config)
        self._node_rows = EmbeddingTables(self.graph, self.config)
        self.indexes: dict[str, Any] = {}
        self._mapped: dict[tuple[str, bool], Stored] = {}
        self._tables: dict[tuple[str, int, bool], Floats] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, dim={self.config.dim})"

    @property
    def node_types(self) -> list[str]:
        """Node types that have embeddings: those of the edge types trained on."""
        used = {t for m in self.model for t in (m.edge_type.src_type, m.edge_type.dst_type)}
        return [name for name in self.graph.node_types if name in used]

    def dim_of(self, node_type: str) -> int:
        """Return the length of the rows of a node type."""
        self._require_type(node_type)
        return self.config.dim_of(node_type)

    def rows(self, node_type: str, part: int) -> Floats:
        """Return the rows of a partition, float32 ``[N, D]``.

        They are a read-only view of the run's file, in the order of the store, and the
        same memory at every call: a copy if the file has 16 or 8 bits a number. A partition
        that was never trained has its first values, drawn anew; rows made from features
        or with a global vector are made anew.
        """
        return self._rows(node_type, part, is_private=False)

    def blocks(self, node_type: str, part: int) -> "Floats | RowBlocks":
        """Return the rows of a partition for reading in slices, as :meth:`rows` has them.

        What is not in the run's file as it is wanted is made slice by slice, and not kept.
        """
        settings = self.config.of_type(node_type)
        is_made = settings.features is not None or self.config.has_global(node_type)
        stored = self._stored(node_type, part, is_private=False)
        if stored is None or (self.config.row_dtype == "float32" and not is_made):
            return self.rows(node_type, part)
        return RowBlocks(self, node_type, part)

    def rows_between(self, node_type: str, part: int, begin: int, end: int) -> Floats:
        """Return some rows of a partition as :meth:`rows` has them, a copy or a view."""
        first, last = self.graph.offsets(node_type)[part : part + 2].tolist()
        return self.take(node_type, np.arange(first + begin, min(first + end, last)))

    def table(self, node_type: str, part: int) -> Floats:
        """Return what was trained for a partition: the rows of its nodes or features."""
        return self._table(node_type, part, is_private=False)

    def arrow_rows(self, node_type: str, part: int) -> pa.FixedSizeListArray:
        """Return a view of :meth:`rows` as an Arrow array of FixedSizeList<float32>."""
        rows = self.rows(node_type, part)
        return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])

    def torch_rows(self, node_type: str, part: int) -> "torch.Tensor":
        """Return the rows of a partition as a float32 tensor ``[N, D]``.

        It is a view of the run's file, the same memory at every call. torch has no
        read-only tensors, so the mapping is private: what is written to the tensor stays
        in this process and never reaches the file.
        """
        import torch

        return torch.from_numpy(self._rows(node_type, part, is_private=True))

    def states(self, node_type: str, part: int) -> Floats:
        """Return the optimizer's states of a partition's rows, float32, mapped.

        Of Adagrad the sums of squares: ``[N]``, or ``[N, D]`` of ``adagrad``. Of ``adam``
        steps of a row, then both moving means ``[N, 1 + 2 D]``.
        """
        self._require_type(node_type)
        name = runs.find_file(self.state, runs.state_file(node_type, part, 0))
        if name is not None:
            size = int(self._node_rows.sizes(node_type)[part])
            shape = state_shape(self.config, node_type, size)
            return runs.read_array(self.path, name, mapped="r", shape=shape)
        size = int(np.diff(self.graph.offsets(node_type))[part])
        return np.zeros(state_shape(self.config, node_type, size), dtype=np.float32)

    def take(self, node_type: str, numbers: npt.NDArray[np.integer]) -> Floats:
        """Return the rows of nodes given by their numbers, a copy, float32 ``[n, D]``."""
        offsets = self.graph.offsets(node_type)
        result = np.empty((len(numbers), self.dim_of(node_type)), dtype=np.float32)
        parts = np.searchsorted(offsets, numbers, side="right") - 1
        for part in distinct(parts):
            chosen = np.flatnonzero(parts == part)
            local = numbers[chosen] - offsets[part]
            result[chosen] = self._take(node_type, int(part), local)
        return self._add_global(node_type, result)

    def lookup(self, ids: Sequence[Any], *, node_type: str | None = None) -> Floats:
        """Return the rows of nodes given by the user's ids, float32 ``[n, D]``.

        Raises:
            UnknownNameError: An id is not in the graph.
            ConfigError: The graph has several node types and none was given.
        """
        chosen = self.the_type(node_type)
        return self.take(chosen, self.graph.lookup(chosen, ids))

    def find(self, node: Any, node_type: str | None = None) -> tuple[str, int]:
        """Return the type and the number of a node given by its id.

        Raises:
            UnknownNameError: No type has it.
            ConfigError: Several types have it and none was given.
        """
        if node_type is not None:
            self._require_type(node_type)
            return node_type, int(self.graph.lookup(node_type, [node])[0])
        return find_node(self.graph, node, self.node_types)

    def ids(self, node_type: str, numbers: Iterable[int]) -> pa.Array:
        """Return the user's ids of nodes given by their numbers."""
        return self.graph.ids_of(node_type, _places(numbers))

    def names(self, node_type: str, numbers: Iterable[int]) -> pa.Array | None:
        """Return what the column ``name`` calls nodes; None where they have none."""
        parts = range(self.graph.num_partitions(node_type))
        tables = [self.graph.nodes(node_type, part) for part in parts]
        if not all("name" in table.column_names for table in tables):
            return None
        column = pa.chunked_array([c for table in tables for c in table["name"].chunks])
        return taken(column, _places(numbers))

    def operators(self, relations: RelationSet) -> Floats:
        """Return the operator parameters of an edge type (see ``RelationSet.initial``)."""
        name = runs.find_file(self.state, runs.relations_file(relations.name, 0))
        first = relations.initial()
        if name is None:
            return first
        return runs.read_array(self.path, name, shape=first.shape)

    def the_type(self, node_type: str | None) -> str:
        """Return a node type that has embeddings: the one named, or the only one.

        Raises:
            UnknownNameError: It has none.
            ConfigError: There are several and none was given.
        """
        chosen = node_type or self._only_type()
        self._require_type(chosen)
        return chosen

    def _rows(self, node_type: str, part: int, *, is_private: bool) -> Floats:
        table = self._table(node_type, part, is_private=is_private)
        return self._add_global(node_type, self._node_rows.pool(node_type, table))

    def _take(self, node_type: str, part: int, local: npt.NDArray[Any]) -> Floats:
        stored = self._stored(node_type, part, is_private=False)
        if stored is None or self.config.of_type(node_type).features is not None:
            return self._node_rows.pool(node_type, self.table(node_type, part), local)
        return self._floats(stored[local])

    def _add_global(self, node_type: str, rows: Floats) -> Floats:
        if not self.config.has_global(node_type):
            return rows
        vector = read_global(self.path, self.state, self.config, node_type)[0]
        result: Floats = rows + vector
        return result

    def _table(self, node_type: str, part: int, *, is_private: bool) -> Floats:
        key = node_type, part, is_private
        if key in self._tables:
            return self._tables[key]
        stored = self._stored(node_type, part, is_private=is_private)
        if stored is None:
            size = int(self._node_rows.sizes(node_type)[part])
            return self._floats(first_table(self.config, (node_type, part), size)[0])
        self._tables[key] = self._floats(stored)
        return self._tables[key]

    def _stored(self, node_type: str, part: int, *, is_private: bool) -> Stored | None:
        """Return what the run has of a partition, mapped; None where it has nothing."""
        self._require_type(node_type)
        name = runs.find_file(self.state, runs.rows_file(node_type, part, 0))
        if name is None:
            return None
        if (name, is_private) not in self._mapped:
            size = int(self._node_rows.sizes(node_type)[part])
            rows = runs.read_array(
                self.path,
                name,
                mapped="c" if is_private else "r",
                shape=(
                    size,
                    stored_width(self.config.row_dtype, self.config.dim_of(node_type)),
                ),
                dtype=stored_dtype(self.config.row_dtype),
            )
            self._mapped[name, is_private] = np.asarray(rows)
        return self._mapped[name, is_private]

    def _floats(self, stored: Stored) -> Floats:
        return to_floats(stored, self.config.row_dtype)

    def _only_type(self) -> str:
        if len(self.node_types) > 1:
            raise ConfigError(
                f"the run has node types {', '.join(self.node_types)}; give node_type"
            )
        return self.node_types[0]

    def _require_type(self, node_type: str) -> None:
        if node_type not in self.node_types:
            raise unknown_name("node type", node_type, self.node_types)

    def _open_graph(self) -> GraphReader:
        return open_trained_graph(self.state.graph, self.path)


def _read(path: Path, content: bool) -> tuple[runs.EmbeddingRunState, EmbeddingConfig]:
    """Read the last checkpoint, and check its files."""
    state, config = runs.read_state(path), runs.read_config(path)
    runs.check_files(path, state, content=content)
    return state, config


class RowBlocks:
    """The rows of a partition, made anew whenever they are sliced."""

    def __init__(self, run: TrainedEmbedding, node_type: str, part: int) -> None:
        self._run, self._node_type, self._part = run, node_type, part
        self._size = int(np.diff(run.graph.offsets(node_type))[part])

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, some: slice) -> Floats:
        begin, end, _ = some.indices(self._size)
        return self._run.rows_between(self._node_type, self._part, begin, end)


def _places(numbers: Iterable[int]) -> npt.NDArray[np.int64]:
    some = numbers if isinstance(numbers, np.ndarray) else list(numbers)
    return np.asarray(some, dtype=np.int64)
