"""A graph written again with the places of its nodes as features, for training."""

import os
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import OutputExistsError
from graphsys.core.progress import SILENT, Progress
from graphsys.datasets.temporary import GraphLike, graph_of
from graphsys.facade.ingest import for_users
from graphsys.mining.census.orbits import node_orbits
from graphsys.mining.motifs import FEATURE, as_features
from graphsys.mining.plan_cache import NODE_FEATURES
from graphsys.mining.simple_graph import SimpleGraph
from graphsys.storage.info import kept_form
from graphsys.storage.ingest.graph_source import GraphSource
from graphsys.storage.ingest.ingest import IngestReport, ingest
from graphsys.storage.ingest.split import as_stored, stored_order
from graphsys.storage.node_numbers import NodeNumbers
from graphsys.storage.reader import GraphReader
from graphsys.storage.source import NodeChunk


@for_users
def store_with_orbits(
    graph: GraphLike,
    out: str | os.PathLike[str],
    *,
    num_threads: int | None = None,
    memory: int | str = "4GB",
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> IngestReport[GraphReader]:
    """Write a graph again with a feature of its nodes, :data:`FEATURE`.

    It has ``log(1 + count)`` of the 15 orbits of :func:`graphsys.mining.orbits`, float32
    ``[N, 15]``, counted over the training edges alone, so that nothing of valid and test
    edges is told. All else stays: splits, partitions, columns, other features.

    Args:
        graph: A store, its path, or an object that holds a graph.
        out: Folder of the new store.
        num_threads: That count; all cores by default.
        memory: Budget of anonymous memory of the process.
        overwrite: Whether a graph in ``out`` may be replaced.
        progress: Told of every stage of the writing.

    Raises:
        BudgetError: what is kept of nodes and edges does not fit.
        InvalidGraphError: a node has so many neighbors that counts may exceed 64 bits.
        OutputExistsError: there is something in ``out``.
    """
    opened = graph_of(graph)
    if os.path.lexists(out) and not overwrite:
        raise OutputExistsError(f"{os.fspath(out)} exists; pass --overwrite to replace it")
    rows = SimpleGraph.of(opened, memory, NODE_FEATURES)
    counts = node_orbits(rows, num_threads=num_threads)
    values = np.empty((rows.num_nodes, len(counts)), dtype=np.float32)
    values[rows.nodes] = as_features(counts)
    source = _WithFeature(opened, values, rows.numbers)
    del rows, counts
    partitioning = opened.manifest.partitioning
    return ingest(
        source,
        out,
        assigned={name: as_stored(opened, name) for name in opened.node_types},
        partitions={name: opened.num_partitions(name) for name in opened.node_types},
        partitioner=str(partitioning.get("method", "hash")),
        order=stored_order(opened),
        seed=int(partitioning.get("seed", 0)),
        memory=memory,
        overwrite=overwrite,
        progress=progress,
        features_as=kept_form(opened.manifest),
    )


class _WithFeature(GraphSource):
    """A store whose nodes have a feature more.

    Args:
        graph: The store, open.
        values: The feature of all nodes ``[N, D]``.
        numbers: Which row is of which node.
    """

    def __init__(
        self, graph: GraphReader, values: npt.NDArray[np.float32], numbers: NodeNumbers
    ) -> None:
        super().__init__(graph)
        self._values, self._numbers = values, numbers

    def _nodes(self, node_type: str, part: int, begin: int) -> NodeChunk:
        """Return a million nodes, with the feature."""
        chunk = super()._nodes(node_type, part, begin)
        first = self._numbers.base(node_type) + begin
        first += int(self._graph.offsets(node_type)[part])
        own = self._values[first : first + len(chunk.ids)]
        return replace(chunk, features={**chunk.features, FEATURE: own})
