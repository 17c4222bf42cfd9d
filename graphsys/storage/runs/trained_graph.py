"""The graph that a run says it was trained on, opened again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.core.remote.locations import is_remote
from graphsys.storage.dynamic.snapshot import SnapshotGraph
from graphsys.storage.dynamic.timed_view import TimedGraph
from graphsys.storage.reader import GraphReader


def open_trained_graph(stated: Mapping[str, Any], run: Path) -> GraphReader:
    """Open the graph of a run, or the view of it that the run was trained on.

    A store that has grown since is opened as it was before the appends.

    Args:
        stated: What ``run.json`` says of the graph.
        run: The run, for messages.

    Raises:
        ConfigError: the graph is gone.
    """
    path = stated["path"]
    if not is_remote(path) and not Path(path).exists():
        raise ConfigError(
            f"the graph {path} of the run {run} is gone; give the graph it was trained on"
        )
    graph = GraphReader(path)
    if stated.get("window"):
        return TimedGraph(graph, *stated["window"])
    return SnapshotGraph.of(graph, stated.get("fingerprint")) or graph
