"""Writing a generation: new files beside the old ones, committed by one rename.

A crash at any moment leaves the old graph (or none); the next writer sweeps away what
was left. See README.md, "Commits".
"""

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from graphsys.core.checksums import file_digest
from graphsys.core.errors import (
    CorruptStoreError,
    GraphsysError,
    OutputExistsError,
    StorageFullError,
)
from graphsys.storage.deltas.layout import before_deltas
from graphsys.storage.first_look import FirstLook
from graphsys.storage.folder_kinds import generations as generations
from graphsys.storage.folder_kinds import require_outside
from graphsys.storage.locks import LOCK_NAME, WriterLock, is_pinned
from graphsys.storage.manifest import MANIFEST_NAME, FileEntry, Manifest

_DISK_ERRORS = {
    errno.ENOSPC,
    errno.EROFS,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
}


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn the system's refusals to write into errors that say what to do.

    Raises:
        StorageFullError: no space, no permission, or a read-only file system.
    """
    try:
        yield
    except OSError as err:
        if err.errno not in _DISK_ERRORS or isinstance(err, StorageFullError):
            raise
        reason = os.strerror(err.errno).lower()
        raise StorageFullError(
            f"cannot write to {path}: {reason}; free some space or choose another output"
        ) from err


class Transaction:
    """A new generation of a graph, under the writer's lock.

    Leaving the ``with`` block without :meth:`commit` removes everything written.

    Args:
        path: The graph's folder; made if missing.
        overwrite: Whether a graph that is there may be replaced.
        generation: Number of the new generation, larger than any; None for the next.

    Attributes:
        generation: That number.
        scratch_dir: Folder for temporary files on the same file system.
        files: What :meth:`add_file` wrote so far.

    Raises:
        OutputExistsError: the folder holds a graph and ``overwrite`` is off, or holds
            something else (which is never overwritten).
        ConfigError: it lies inside another graph or a run.
        StoreBusyError: another process is writing.
        StorageFullError: the folder cannot be made.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, overwrite: bool = False,
        generation: int | None = None,
    ) -> None:  # fmt: skip
        self.path = Path(path)
        self.files: list[FileEntry] = []
        self._is_committed = False
        require_outside(self.path)
        refuse_existing(self.path, overwrite=overwrite)
        with disk_errors(self.path):
            self._made = [p for p in (self.path, *self.path.parents) if not p.exists()]
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                self._lock = WriterLock(self.path)
            except BaseException:
                self._remove_empty_folders()
                raise
        try:
            refuse_existing(self.path, overwrite=overwrite)  # again, now under the lock
            with disk_errors(self.path):
                self._begin(generation)
        except BaseException:
            self._abort()
            raise

    def _begin(self, generation: int | None) -> None:
        current = self._current_generation()
        if current is not None:
            sweep(self.path, keep=current)
        numbers = [current or 0, *(number for number, _ in generations(self.path))]
        self.generation = generation or max(numbers) + 1
        self.folder = self.path / f"gen-{self.generation}"
        self.scratch_dir = self.folder / "scratch"
        self.scratch_dir.mkdir(parents=True)

    def _current_generation(self) -> int | None:
        """Return the committed generation, 0 for none, None where it cannot be told."""
        if not (self.path / MANIFEST_NAME).exists():
            return 0
        try:
            return Manifest.read(self.path).generation
        except CorruptStoreError:  # it may be replaced, but goes only after the commit
            return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_committed:
            self._abort()

    def file(self, path: str) -> Path:
        """Return where a file is that was added, to be mapped."""
        return self.path / path

    def add_file(self, path: str, batch: pa.RecordBatch | pa.Table) -> FileEntry:
        """Write an Arrow file, flush it to disk, hash it and list it.

        Thread-safe. A record batch becomes one record batch of the file.

        Args:
            path: Relative to the graph's folder (see ``manifest.node_file`` and others).
            batch: Its content.

        Returns:
            The file's entry in the manifest.

        Raises:
            StorageFullError: the disk is full.
        """
        target = self.path / path
        with disk_errors(self.path):
            target.parent.mkdir(parents=True, exist_ok=True)
            with (
                pa.OSFile(str(target), "wb") as sink,
                pa.ipc.new_file(sink, batch.schema) as writer,
            ):
                writer.write(batch)
            with target.open("rb") as written:
                os.fsync(written.fileno())
                sha256 = hashlib.file_digest(written, "sha256").hexdigest()
                size = os.fstat(written.fileno()).st_size
        entry = FileEntry(
            path=path, rows=batch.num_rows, bytes=size, checksum=f"sha256:{sha256}",
            xxh3=file_digest(target),
        )  # fmt: skip
        self.files.append(entry)
        return entry

    def commit(self, manifest: Manifest) -> None:
        """Replace ``graph.json`` and drop the generations that nobody reads.

        Raises:
            StorageFullError: the manifest cannot be written; the old graph stays.
        """
        with disk_errors(self.path):
            shutil.rmtree(self.scratch_dir)
            for folder, _, _ in os.walk(self.folder):
                sync_folder(Path(folder))
            draft = self.folder / MANIFEST_NAME
            with draft.open("w", encoding="utf-8") as file:
                file.write(manifest.to_json())
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path / MANIFEST_NAME)
            self._is_committed = True
            sync_folder(self.path)
            sync_folder(self.path.parent)
        FirstLook(self.path, before_deltas(manifest)).remember_written(self.files)
        sweep(self.path, keep=self.generation)
        self._lock.release()

    def _abort(self) -> None:
        folder = getattr(self, "folder", None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        self._lock.release()
        self._remove_empty_folders()

    def _remove_empty_folders(self) -> None:
        for folder in self._made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Refuse an output folder that holds anything but a graph to be overwritten.

    What a killed writer left counts as nothing; an empty folder counts as an output.

    Raises:
        OutputExistsError: something is there.
    """
    is_graph = (path / MANIFEST_NAME).exists()
    if is_graph and not overwrite:
        raise OutputExistsError(
            f"{path} already holds a graph; choose another output or pass --overwrite"
        )
    if path.is_dir():
        known = {LOCK_NAME, *(folder.name for _, folder in generations(path))}
        if is_graph:
            known.add(MANIFEST_NAME)
        strange = sorted(entry.name for entry in path.iterdir() if entry.name not in known)
        if is_graph and not generations(path):
            strange = [MANIFEST_NAME]  # somebody else's
        if not any(path.iterdir()) and not overwrite:
            raise OutputExistsError(
                f"{path} already exists, an empty folder; remove it or pass --overwrite"
            )
        if not strange:
            return
        found = f"it holds {strange[0]!r}, which is no part of a graph"
    elif path.exists() or path.is_symlink():
        found = "it is not a folder"
    else:
        return
    raise OutputExistsError(f"{path} already exists: {found}; choose another output")


def sweep(path: Path, *, keep: int) -> None:
    """Remove every generation but ``keep`` that no reader has pinned."""
    for number, folder in generations(path):
        if number != keep and not is_pinned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def remove_superseded(path: Path, generation: int) -> None:
    """Remove a generation that a newer one replaced, if no reader holds it.

    Never raises: what cannot be removed now, the next writer sweeps away.
    """
    folder = path / f"gen-{generation}"
    with contextlib.suppress(OSError, GraphsysError):
        # a newer generation never goes back to an older one, so this cannot turn false
        if Manifest.read(path).generation > generation and not is_pinned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
