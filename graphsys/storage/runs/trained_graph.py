"""The graph that a run says it was trained on, opened again as it was then."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.core.remote.locations import is_remote
from graphsys.storage.dynamic.timed_view import TimedGraph
from graphsys.storage.manifest import Manifest, after_deltas, before_deltas
from graphsys.storage.mapped_files import MappedFiles
from graphsys.storage.reader import GraphReader


class SnapshotGraph(GraphReader):
    """What the first deltas of a store left; everything that takes a graph takes it.

    Args:
        stored: The graph, open; closing this closes it.
        manifest: Of the store after those deltas.
    """

    def __init__(self, stored: GraphReader, manifest: Manifest) -> None:
        vars(self).update(vars(stored))
        self.manifest = self.whole_manifest = manifest
        first = before_deltas(manifest)
        self._files = MappedFiles(self.path, manifest, first)
        self._kept = None  # what is kept is of now
        self._edges = self._whole_edges = self._edge_reader(manifest, first, None)

    @classmethod
    def of(cls, stored: GraphReader, fingerprint: str | None) -> "SnapshotGraph | None":
        """Return the earlier state of a store that has a fingerprint, or None."""
        whole = stored.whole_manifest
        if fingerprint in (None, whole.fingerprint):
            return None
        for count in reversed(range(len(whole.deltas))):
            manifest = after_deltas(whole, count)
            if manifest.fingerprint == fingerprint:
                return cls(stored, manifest)
        return None


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
