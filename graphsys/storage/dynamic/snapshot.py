"""A store as it was before its last appends."""

from graphsys.storage.deltas.layout import after_deltas, before_deltas
from graphsys.storage.manifest import Manifest
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
