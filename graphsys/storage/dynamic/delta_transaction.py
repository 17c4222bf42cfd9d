"""Writing a delta: new files inside the current generation, committed by one rename."""

import os
from pathlib import Path

from graphsys.core.errors import OutputExistsError
from graphsys.storage.deltas.merge_cache import remove_kept
from graphsys.storage.folder_kinds import is_delta_part, require_outside
from graphsys.storage.locks import WriterLock
from graphsys.storage.manifest import Manifest, delta_folder
from graphsys.storage.transaction import (
    Transaction,
    disk_errors,
    sweep,
    sweep_deltas,
    sync_folder,
)


class DeltaTransaction(Transaction):
    """The next delta of a graph, under the writer's lock.

    Files that readers of the same generation use are never touched: whoever opened the
    graph before goes on reading what ``graph.json`` listed then. Leaving the ``with`` block
    without :meth:`commit` removes everything written.

    Attributes:
        manifest: What the graph holds, read under the lock.
        number: Number of the new delta.

    Raises:
        InvalidGraphError: there is no graph.
        CorruptStoreError: the manifest is damaged.
        StoreBusyError: another process is writing.
        OutputExistsError: somebody else's folder is where the delta goes.
        StorageFullError: the folder cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.files = []
        require_outside(self.path)
        Manifest.read(self.path)  # a folder without a graph gets no lock either
        try:
            with disk_errors(self.path):
                self._lock = WriterLock(self.path)
            # Read again under the lock: another append may have committed since.
            self.manifest = Manifest.read(self.path)
            self.generation = self.manifest.generation
            self.number = len(self.manifest.deltas) + 1
            with disk_errors(self.path):
                sweep(self.path, keep=self.generation)
                sweep_deltas(self.path, self.manifest)
                self.folder = self.path / delta_folder(self.generation, self.number)
                _require_free(self.folder)
                self._made = (self.folder.parent,)
                self._begin_folder(is_part=is_delta_part)
        except BaseException:
            self._end()
            raise

    def commit(self, manifest: Manifest) -> None:
        """Replace ``graph.json``: from now on who opens the graph sees the delta.

        Raises:
            StorageFullError: the manifest cannot be written; the graph stays as it was.
        """
        with disk_errors(self.path):
            # The first delta of a generation makes these folders: their entries need a
            # flush too.
            sync_folder(self.folder.parent)
            sync_folder(self.folder.parent.parent)
        super().commit(manifest)
        remove_kept(self.path)  # of the state before


def _require_free(folder: Path) -> None:
    if folder.exists() or folder.is_symlink():
        raise OutputExistsError(
            f"{folder}, where the next delta goes, is none of ours; move it away"
        )
