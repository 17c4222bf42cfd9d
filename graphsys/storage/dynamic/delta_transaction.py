"""Writing a delta: new files inside the current generation, committed by one rename."""

import os
from pathlib import Path

from graphsys.core import ownership
from graphsys.core.errors import OutputExistsError
from graphsys.storage.deltas.layout import delta_folder
from graphsys.storage.deltas.merge_cache import remove_kept
from graphsys.storage.folder_kinds import is_delta_part, require_outside
from graphsys.storage.locks import WriterLock
from graphsys.storage.manifest import Manifest
from graphsys.storage.transaction import Transaction, disk_errors, sweep, sync_folder


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
                self._begin_folder(is_part=is_delta_part)
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
    """Remove the folders that killed appends left; the caller holds the writer's lock.

    Those from before there were claims have files of deltas and nothing else.

    Raises:
        OutputExistsError: somebody else's folder is where the next delta goes.
    """
    folder = path / delta_folder(manifest.generation, 0)
    known = {str(delta.number) for delta in manifest.deltas}
    for entry in folder.parent.iterdir() if folder.parent.is_dir() else ():
        if entry.name in known:
            ownership.unclaim(entry)  # of a writer that was killed as it had committed
        elif entry.is_dir() and not entry.is_symlink():
            if entry.name.isdigit() and not ownership.strangers(entry, is_delta_part):
                ownership.claim(entry)
            ownership.remove_claimed(entry, is_delta_part)
    following = path / delta_folder(manifest.generation, len(manifest.deltas) + 1)
    if following.exists() or following.is_symlink():
        raise OutputExistsError(
            f"{following}, where the next delta goes, is none of ours; move it away"
        )
