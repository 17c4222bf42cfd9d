"""A stored graph and more nodes and edges, written as one new store.

The delta is merged at once: a store holds no deltas yet. The old store stays as it is, so
that what is new can be told by comparing the two (``graphsys.embedding`` does).
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.storage.info import kept_form
from graphsys.storage.ingest.graph_source import GraphSource
from graphsys.storage.ingest.ingest import IngestReport, ingest
from graphsys.storage.reader import GraphReader
from graphsys.storage.source import EdgeChunk, NodeChunk, Source


class AppendedSource(Source):
    """A store, then a source of further nodes and edges.

    Args:
        graph: The store, open.
        more: What is added. Ids are the user's: one that the store has is the same node.
    """

    def __init__(self, graph: GraphReader, more: Source) -> None:
        self.name = f"{graph.path} and {more.name}"
        self.is_directed = graph.is_directed
        self.allows_nan = more.allows_nan
        self._parts: list[Source] = [GraphSource(graph), more]

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the chunks of the store, then the others."""
        for part in self._parts:
            yield from part.chunks()


def append(
    graph: GraphReader,
    source: Source,
    out: str | os.PathLike[str],
    *,
    partitions: int | Mapping[str, int] | None = None,
    partitioner: str | None = None,
    overwrite: bool = False,
    progress: Progress = IN_NOTEBOOKS,
    **options: Any,
) -> IngestReport[GraphReader]:
    """Write a graph with more nodes and edges as a new store; the old one stays.

    Args:
        graph: The graph, open.
        source: The nodes and edges to add, with the columns that the graph's have.
        out: Folder of the new store.
        partitions: Partitions of the new store; the graph's by default.
        partitioner: The method; the graph's by default. A node's partition may change.
        overwrite: Whether another graph in ``out`` may be replaced.
        progress: Told of every stage.
        **options: Further options of :func:`ingest`.

    Returns:
        Counts, times and the new graph, open.

    Raises:
        ConfigError: ``out`` is the graph itself, or edges without direction are added to
            directed ones or the other way round.
        InputError: The columns do not fit, or a node that the graph lists is listed again.
        OutputExistsError: ``out`` holds something and may not be replaced.
    """
    if graph.path.resolve() == Path(out).resolve():
        raise ConfigError(
            f"cannot append to {graph.path} in place; give another output (remove the old "
            "graph when no run needs it)"
        )
    if source.is_directed != graph.is_directed and graph.edge_types:
        kinds = ["directed" if g.is_directed else "undirected" for g in (source, graph)]
        raise ConfigError(
            f"cannot append {kinds[0]} edges ({source.name}) to the {kinds[1]} graph "
            f"{graph.path}; give edges of the same kind"
        )
    if partitions is None:
        partitions = {name: graph.num_partitions(name) for name in graph.node_types}
    return ingest(
        AppendedSource(graph, source),
        out,
        partitions=partitions,
        partitioner=partitioner or graph.manifest.partitioning["method"],
        overwrite=overwrite,
        progress=progress,
        **{"features_as": kept_form(graph.manifest), **options},
    )
