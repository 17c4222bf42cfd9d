"""A finished (or interrupted) run, opened for use: rows by user id, operators."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, UnknownNameError, unknown_name
from graphsys.embedding import run as runs
from graphsys.embedding.model import RelationSet, relation_sets
from graphsys.embedding.tables import first_values
from graphsys.storage.reader import Graph

Floats = npt.NDArray[np.float32]


class Embeddings:
    """The last checkpoint of a run, with the names of its graph.

    Rows are mapped from the run's files, not read.

    Args:
        path: The run's folder.
        graph: The graph it was trained on; opened from the recorded path if not given.

    Raises:
        ConfigError: There is no run, its graph is gone, or another was given.
        CorruptStoreError: A file of the checkpoint is missing or damaged.
    """

    def __init__(self, path: str | Path, *, graph: Graph | None = None) -> None:
        self.path = Path(path)
        self.state = runs.read_state(self.path)
        self.config = runs.read_config(self.path)
        runs.check_files(self.path, self.state)
        self.graph = graph or self._open_graph()
        runs.require_same_graph(self.state.graph, self.graph, self.path)
        self.model: list[RelationSet] = relation_sets(self.graph, self.config)

    def __repr__(self) -> str:
        return f"Embeddings({str(self.path)!r}, dim={self.config.dim})"

    @property
    def node_types(self) -> list[str]:
        """Node types that have embeddings: those of the edge types trained on."""
        used = {t for m in self.model for t in (m.edge_type.src_type, m.edge_type.dst_type)}
        return [name for name in self.graph.node_types if name in used]

    def rows(self, node_type: str, part: int) -> Floats:
        """Return the rows of a partition, float32 ``[N, D]``, mapped and read-only."""
        self._require_type(node_type)
        name = runs.find_file(self.state, runs.rows_file(node_type, part, 0))
        if name is not None:
            return runs.read_array(self.path, name, mapped=True)
        size = int(np.diff(self.graph.offsets(node_type))[part])
        return first_values(self.config, (node_type, part), size)

    def take(self, node_type: str, numbers: npt.NDArray[np.integer]) -> Floats:
        """Return the rows of nodes given by their numbers, a copy, float32 ``[n, D]``."""
        offsets = self.graph.offsets(node_type)
        result = np.empty((len(numbers), self.config.dim), dtype=np.float32)
        parts = np.searchsorted(offsets, numbers, side="right") - 1
        for part in np.unique(parts):
            chosen = np.flatnonzero(parts == part)
            result[chosen] = self.rows(node_type, int(part))[
                numbers[chosen] - offsets[part]
            ]
        return result

    def lookup(self, ids: Sequence[Any], *, node_type: str | None = None) -> Floats:
        """Return the rows of nodes given by the user's ids, float32 ``[n, D]``.

        Raises:
            UnknownNameError: An id is not in the graph.
            ConfigError: The graph has several node types and none was given.
        """
        chosen = node_type or self._only_type()
        self._require_type(chosen)
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
        found: list[tuple[str, int]] = []
        for name in self.node_types:
            try:
                found.append((name, int(self.graph.lookup(name, [node])[0])))
            except (UnknownNameError, ValueError):
                continue
        if not found:
            raise UnknownNameError(
                f"node {node!r} is not in the graph {self.graph.path} (node types "
                f"{', '.join(self.node_types)})"
            )
        if len(found) > 1:
            names = ", ".join(name for name, _ in found)
            raise ConfigError(
                f"node {node!r} is of several types ({names}); give node_type"
            )
        return found[0]

    def ids(self, node_type: str, numbers: Iterable[int]) -> pa.Array:
        """Return the user's ids of nodes given by their numbers."""
        column = self.graph.node_ids(node_type)
        taken = column.take(pa.array(np.asarray(list(numbers), dtype=np.int64)))
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken

    def operators(self, relations: RelationSet) -> Floats:
        """Return the operator parameters of an edge type (see ``RelationSet.initial``)."""
        name = runs.find_file(self.state, runs.relations_file(relations.name, 0))
        return relations.initial() if name is None else runs.read_array(self.path, name)

    def _only_type(self) -> str:
        if len(self.node_types) > 1:
            raise ConfigError(
                f"the run has node types {', '.join(self.node_types)}; give node_type"
            )
        return self.node_types[0]

    def _require_type(self, node_type: str) -> None:
        if node_type not in self.node_types:
            raise unknown_name("node type", node_type, self.node_types)

    def _open_graph(self) -> Graph:
        path = Path(self.state.graph["path"])
        if not path.exists():
            raise ConfigError(
                f"the graph {path} of the run {self.path} is gone; give the graph it was "
                "trained on"
            )
        return Graph(path)


def open_run(path: str | Path, *, graph: Graph | None = None) -> Embeddings:
    """Open a run for use; see :class:`Embeddings`."""
    return Embeddings(path, graph=graph)
