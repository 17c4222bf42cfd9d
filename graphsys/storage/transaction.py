"""Writing a generation: new files beside the old ones, committed by one rename.

A crash at any moment leaves the old graph (or none); the next writer sweeps away what
was left. See README.md, "Commits, locks, pins".
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from graphsys.core import ownership
from graphsys.core.checksums import file_digest
from graphsys.core.errors import (
    CorruptStoreError,
    GraphsysError,
    OutputExistsError,
    StorageFullError,
    is_write_refused,
    why_not_written,
)
from graphsys.storage.deltas.layout import before_deltas
from graphsys.storage.folder_kinds import generations as generations
from graphsys.storage.folder_kinds import is_generation_part, require_outside
from graphsys.storage.integrity import FirstLook
from graphsys.storage.locks import LOCK_NAME, WriterLock, is_pinned
from graphsys.storage.manifest import MANIFEST_NAME, FileEntry, Manifest


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn the system's refusals to write into errors that say what to do.

    Raises:
        StorageFullError: no space, no permission, or a read-only file system.
    """
    try:
        yield
    except OSError as err:
        if not is_write_refused(err) or isinstance(err, StorageFullError):
            raise
        raise StorageFullError(f"cannot write to {path}: {why_not_written(err)}") from err


class Transaction:
    """A new generation of a graph, under the writer's lock.

    Leaving the ``with`` block without :meth:`commit` removes everything written.

    Args:
        path: The graph's folder; made if missing.
        overwrite: Whether a graph that is there may be replaced.
        generation: Number of the new generation, larger than any; None for the next.
        is_scratch: Whether it is in the scratch folder of another transaction, which may be
            that of a graph to be replaced.

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
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        generation: int | None = None,
        is_scratch: bool = False,
    ) -> None:
        self.path = Path(path)
        self.files: list[FileEntry] = []
        self._is_committed = False
        if not is_scratch:
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
        self._begin_folder(is_part=is_generation_part)

    def _begin_folder(self, is_part: Callable[[str], bool]) -> None:
        """Make the folder to write into, and claim it until a manifest lists its files."""
        self._is_part = is_part
        ownership.make_folder(self.folder)
        ownership.claim(self.folder)
        self.scratch_dir = ownership.make_folder(self.folder / "scratch")

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
            path=path,
            rows=batch.num_rows,
            bytes=size,
            checksum=f"sha256:{sha256}",
            xxh3=file_digest(target),
        )
        self.files.append(entry)
        return entry

    def commit(self, manifest: Manifest) -> None:
        """Replace ``graph.json`` and drop the generations that nobody reads.

        Raises:
            StorageFullError: the manifest cannot be written; the old graph stays.
        """
        with disk_errors(self.path):
            ownership.remove_folder(self.scratch_dir)
            for folder, _, _ in os.walk(self.folder):
                sync_folder(Path(folder))
            draft = self.folder / MANIFEST_NAME
            with draft.open("w", encoding="utf-8") as file:
                file.write(manifest.to_json())
                file.flush()
                os.fsync(file.fileno())
            superseded = self._claim_superseded()
            try:
                draft.replace(self.path / MANIFEST_NAME)
            except BaseException:
                for before in superseded:
                    ownership.unclaim(before)
                raise
            self._is_committed = True
            sync_folder(self.path)
            sync_folder(self.path.parent)
        ownership.unclaim(self.folder)
        FirstLook(self.path, before_deltas(manifest)).remember_written(self.files)
        sweep(self.path, keep=self.generation)
        self._lock.release()

    def _claim_superseded(self) -> list[Path]:
        """Claim what the manifest lists that is replaced now: readers may hold it on.

        Of a damaged one, generations go that hold files of a graph and nothing else.
        """
        if not (self.path / MANIFEST_NAME).exists():
            return []
        found: dict[Path, list[str] | None] = {}
        try:
            before = Manifest.read(self.path)
        except CorruptStoreError:
            for number, folder in generations(self.path):
                names = [*ownership.files_below(folder)]
                if number != self.generation and all(map(is_generation_part, names)):
                    found[folder] = names
        else:
            name = f"gen-{before.generation}"
            listed = [it.path.removeprefix(f"{name}/") for it in before.files]
            if before.generation != self.generation and (self.path / name).is_dir():
                found[self.path / name] = listed
        for folder, listing in found.items():
            ownership.claim(folder, listing)
        return [*found]

    def _abort(self) -> None:
        folder = getattr(self, "folder", None)
        if folder is not None:
            ownership.remove_folder(folder / "scratch")
            with contextlib.suppress(OSError):
                ownership.remove_listed(self.path, (entry.path for entry in self.files))
            ownership.remove_claimed(folder, self._is_part)
        self._lock.release()
        self._remove_empty_folders()

    def _remove_empty_folders(self) -> None:
        for folder in self._made:
            ownership.remove_empty(folder)


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
        found = _what_is_strange(path, is_graph=is_graph)
        if not any(path.iterdir()) and not overwrite:
            raise OutputExistsError(
                f"{path} already exists, an empty folder; remove it or pass --overwrite"
            )
        if found is None:
            return
        found = f"it holds {found!r}, which is no part of a graph"
    elif path.exists() or path.is_symlink():
        found = "it is not a folder"
    else:
        return
    raise OutputExistsError(f"{path} already exists: {found}; choose another output")


def _what_is_strange(path: Path, *, is_graph: bool) -> str | None:
    """Return the name of something in a folder that no graph has, and no writer left.

    Beside a graph a folder that is named like a generation stays where it is, whosever it
    is.
    """
    found = generations(path)
    known = {LOCK_NAME}
    if is_graph:
        known |= {MANIFEST_NAME, *(folder.name for _, folder in found)}
        if not found:
            return MANIFEST_NAME  # somebody else's
    else:
        # a writer that is killed may leave an empty folder, which is then without a claim
        known |= {
            folder.name
            for _, folder in found
            if ownership.is_claimed(folder) or not any(folder.iterdir())
        }
    strange = sorted(entry.name for entry in path.iterdir() if entry.name not in known)
    return strange[0] if strange else None


def sweep(path: Path, *, keep: int) -> None:
    """Remove generations that are claimed and not pinned by a reader; ``keep`` stays."""
    for number, folder in generations(path):
        if number == keep:
            ownership.unclaim(folder)  # of a writer that was killed as it had committed
        elif not is_pinned(folder):
            ownership.remove_claimed(folder, is_generation_part)


def remove_superseded(path: Path, generation: int) -> None:
    """Remove a generation that a newer one replaced, if no reader holds it.

    Never raises: what cannot be removed now, the next writer sweeps away.
    """
    folder = path / f"gen-{generation}"
    with contextlib.suppress(OSError, GraphsysError):
        # a newer generation never goes back to an older one, so this cannot turn false
        if Manifest.read(path).generation > generation and not is_pinned(folder):
            ownership.remove_claimed(folder, is_generation_part)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
