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
from graphsys.storage.checked_files import FirstLook
from graphsys.storage.folder_kinds import generations as generations
from graphsys.storage.folder_kinds import (
    is_delta_part,
    is_generation_part,
    require_outside,
)
from graphsys.storage.locks import LOCK_NAME, WriterLock, is_pinned
from graphsys.storage.manifest import (
    MANIFEST_NAME,
    FileEntry,
    Manifest,
    before_deltas,
    delta_folder,
)


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

    Leaving the ``with`` block without :meth:`commit` removes everything written; after it,
    the generations that nobody reads.

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

    _is_begun = _is_committed = False
    _lock: WriterLock | None = None
    _made: tuple[Path, ...] = ()  # folders that were not there

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
        if not is_scratch:
            require_outside(self.path)
        refuse_existing(self.path, overwrite=overwrite)
        self._made = tuple(p for p in (self.path, *self.path.parents) if not p.exists())
        try:
            with disk_errors(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                self._lock = WriterLock(self.path)
                refuse_existing(self.path, overwrite=overwrite)  # again, under the lock
                self._begin(generation)
        except BaseException:
            self._end()
            raise

    def _begin(self, generation: int | None) -> None:
        current = 0
        with contextlib.suppress(CorruptStoreError):  # that goes after the commit alone
            if (self.path / MANIFEST_NAME).exists():
                manifest = Manifest.read(self.path)
                sweep_deltas(self.path, manifest)
                current = manifest.generation
            sweep(self.path, keep=current)
        # Above what lies there, even unlisted: a reader may have that folder pinned and
        # mapped.
        numbers = [current, *(number for number, _ in generations(self.path))]
        self.generation = generation or max(numbers) + 1
        self.folder = self.path / f"gen-{self.generation}"
        self._begin_folder(is_part=is_generation_part)

    def _begin_folder(self, is_part: Callable[[str], bool]) -> None:
        """Make the folder to write into, and claim it until a manifest lists its files."""
        self._is_part, self._is_begun = is_part, True
        ownership.make_folder(self.folder)
        ownership.claim(self.folder)
        self.scratch_dir = ownership.make_folder(self.folder / "scratch")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def __del__(self) -> None:
        """End what was interrupted before its ``with`` block; of a fork's copy nothing."""
        if self._lock is not None and self._lock.is_own:
            self._end()

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
            # Flushed before it is listed: after a power cut graph.json must not name a file
            # whose pages never reached the disk.
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
        """Replace ``graph.json``: from now on who opens the graph sees the new one.

        Raises:
            StorageFullError: the manifest cannot be written; the old graph stays.
        """
        with disk_errors(self.path):
            ownership.remove_folder(self.scratch_dir)
            # Names of files are entries of folders, which their own fsync does not flush.
            for folder, _, _ in os.walk(self.folder):
                sync_folder(Path(folder))
            # The draft lies on the same file system, or the rename would not be atomic.
            draft = self.folder / MANIFEST_NAME
            with draft.open("w", encoding="utf-8") as file:
                file.write(manifest.to_json())
                file.flush()
                os.fsync(file.fileno())
            # Claimed before the rename: killed right after it, the next writer may sweep
            # the old one.
            superseded = self._claim_superseded()
            try:
                draft.replace(self.path / MANIFEST_NAME)
                self._is_committed = True
            except BaseException:
                self._is_committed = not draft.exists()  # interrupted right after it
                for before in () if self._is_committed else superseded:
                    ownership.unclaim(before)
                raise
            # The rename is an entry of this folder: until here a power cut may bring back
            # the old.
            sync_folder(self.path)
            sync_folder(self.path.parent)
        FirstLook(self.path, before_deltas(manifest)).remember_written(self.files)

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

    def _end(self) -> None:
        """Remove what was not committed, or what nobody reads now; give the lock back."""
        try:
            if self._is_begun and self._is_committed:
                ownership.unclaim(self.folder)
                sweep(self.path, keep=self.generation)
            elif self._is_begun:
                self._remove_written()
        finally:
            self._is_begun = False
            if self._lock is not None:
                self._lock.release()
            self._lock = None
            # Innermost first; what holds files by now stays.
            for folder in self._made:
                ownership.remove_empty(folder)

    def _remove_written(self) -> None:
        ownership.remove_folder(self.folder / "scratch")
        with contextlib.suppress(OSError):
            ownership.remove_listed(self.path, (entry.path for entry in self.files))
        ownership.remove_claimed(self.folder, self._is_part)


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
            ownership.remove_empty(folder)  # of one that was killed as it removed the claim


def sweep_deltas(path: Path, manifest: Manifest) -> None:
    """Remove the folders that killed appends left; the caller holds the writer's lock.

    Those from before there were claims have files of deltas and nothing else.
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
    ownership.remove_empty(folder.parent)


def remove_superseded(path: Path, generation: int) -> None:
    """Remove a generation that a newer one replaced, if no reader holds it.

    Never raises: what cannot be removed now, the next writer sweeps away.
    """
    folder = path / f"gen-{generation}"
    with contextlib.suppress(OSError, GraphsysError):
        # a newer generation never goes back to an older one, so this cannot turn false
        if Manifest.read(path).generation > generation and not is_pinned(folder):
            ownership.remove_claimed(folder, is_generation_part)


def sync_file(file: Path) -> None:
    """Flush what was written to a file to disk."""
    with file.open("rb") as stream:
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
