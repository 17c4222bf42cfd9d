"""Writing a stored graph again with other partitions, or in another order."""

import os
import time
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from graphsys.core.memory import parse_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.storage.info import kept_form
from graphsys.storage.ingest.graph_source import GraphSource
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.ingest.node_stream import StoreNodeStream, assign_nodes
from graphsys.storage.ingest.options import IngestOptions
from graphsys.storage.ingest.partition_compare import PartitionQuality, measure
from graphsys.storage.reader import GraphReader


def repartition(
    graph: GraphReader,
    out: str | os.PathLike[str],
    *,
    partitioner: str,
    partitions: int | Mapping[str, int],
    seed: int = 0,
    memory: int | str = "4GB",
    structure_memory: int | str | None = None,
    order: str = "auto",
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> PartitionQuality:
    """Write a stored graph again with other partitions.

    Args:
        graph: The graph, open; stays as it is.
        out: Folder of the new store.
        partitioner: Name of the method.
        partitions: Partitions of every node type, or of each by name.
        seed: Seed of the method.
        memory: Budget of anonymous memory for what is kept while it is written.
        structure_memory: Budget of partitioners and orders that hold the graph; that of
            ``memory`` by default.
        order: Order of the nodes inside a partition.
        overwrite: Whether a graph in ``out`` may be replaced.
        progress: Told of every stage.

    Returns:
        Quality of the new partitioning; ``seconds`` is that of the whole work.
    """
    began = time.perf_counter()
    options = IngestOptions(
        partitions=partitions,
        partitioner=partitioner,
        order=order,
        seed=seed,
        memory_bytes=parse_bytes(memory),
    )
    assigned = None
    if options.needs_structure:
        progress.stage("partition")
        assigned = assign_nodes(
            graph,
            partitioner=partitioner,
            num_partitions=options.num_partitions,
            order=order,
            seed=seed,
            memory_bytes=parse_bytes(structure_memory or memory),
        )
    report = ingest(
        GraphSource(graph),
        out,
        partitions=partitions,
        partitioner=partitioner,
        seed=seed,
        memory=memory,
        order=order,
        overwrite=overwrite,
        progress=progress,
        assigned=assigned,
        features_as=kept_form(graph.manifest),
    )
    with report.graph as new:
        stream = StoreNodeStream(new)
        parts, num_parts = _stored_parts(new), _largest(new)
        seconds = time.perf_counter() - began
        return measure(stream, parts, num_parts, partitioner, seconds)


def _stored_parts(graph: GraphReader) -> npt.NDArray[np.uint32]:
    pieces = [np.diff(graph.offsets(name)) for name in graph.node_types]
    return np.concatenate(
        [np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes) for sizes in pieces]
    )


def _largest(graph: GraphReader) -> int:
    return max((graph.num_partitions(name) for name in graph.node_types), default=1)
