"""Writing a delta: new files inside the current generation, committed by one rename."""

import os
import shutil
from pathlib import Path

from graphsys.storage.deltas.kept import remove_kept
from graphsys.storage.deltas.layout import delta_folder
from graphsys.storage.folder_kinds import require_outside
from graphsys.storage.locks import WriterLock
from graphsys.storage.manifest import Manifest
from graphsys.storage.transaction import Transaction, disk_errors, sweep, sync_folder


class DeltaTransaction(Transaction):
    """The next delta of a graph, under the writer's lock.

    Files that readers of the same generation use are never touched: whoever opened the
    graph before goes on reading what ``graph.json`` listed then. Leaving the ``with`` block
    without :meth:`commit` removes everything written.

    Args:
        path: The graph's folder.

    Attributes:
        manifest: What the graph holds, read under the lock.
        number: Number of the new delta.

    Raises:
        InvalidGraphError: there is no graph.
        CorruptStoreError: the manifest is damaged.
        StoreBusyError: another process is writing.
        StorageFullError: the folder cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.files = []
        self._is_committed = False
        self._made = []
        require_outside(self.path)
        Manifest.read(self.path)  # a folder without a graph gets no lock either
        with disk_errors(self.path):
            self._lock = WriterLock(self.path)
        try:
            self.manifest = Manifest.read(self.path)
            self.generation = self.manifest.generation
            self.number = len(self.manifest.deltas) + 1
            with disk_errors(self.path):
                sweep(self.path, keep=self.generation)
                remove_unlisted_deltas(self.path, self.manifest)
                self.folder = self.path / delta_folder(self.generation, self.number)
                self.scratch_dir = self.folder / "scratch"
                self.scratch_dir.mkdir(parents=True)
        except BaseException:
            self._abort()
            raise

    def commit(self, manifest: Manifest) -> None:
        """Replace ``graph.json``: from now on who opens the graph sees the delta.

        Raises:
            StorageFullError: the manifest cannot be written; the graph stays as it was.
        """
        with disk_errors(self.path):
            sync_folder(self.folder.parent)
            sync_folder(self.folder.parent.parent)
        super().commit(manifest)
        remove_kept(self.path)  # of the state before


def remove_unlisted_deltas(path: Path, manifest: Manifest) -> None:
    """Remove the folders that killed appends left; the caller holds the writer's lock."""
    folder = path / delta_folder(manifest.generation, 0)
    known = {str(delta.number) for delta in manifest.deltas}
    if folder.parent.is_dir():
        for entry in folder.parent.iterdir():
            if entry.name not in known and entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
