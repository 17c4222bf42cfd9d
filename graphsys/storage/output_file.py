"""Output files: written whole beside the old one, never inside a graph or a run.

A file of an object store is made in the user's cache; an upload appears when all of it is
there, and replaces what was.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphsys.core import ownership
from graphsys.core.errors import ConfigError, OutputExistsError
from graphsys.core.remote.locations import Location, is_remote, new_progress
from graphsys.storage.folder_kinds import require_outside
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.objects.s3_writer import S3Writer
from graphsys.storage.objects.staging import staging
from graphsys.storage.remote import surroundings
from graphsys.storage.transaction import disk_errors, sync_file, sync_folder


def require_writable(*targets: Path, overwrite: bool) -> None:
    """Refuse files that may not be written, before any work is done.

    Raises:
        ConfigError: one is a folder, or lies inside a graph or a run; or there is no such
            bucket.
        OutputExistsError: one exists and ``overwrite`` is off.
        ObjectStoreError: the storage fails.
    """
    for target in targets:
        kind = _kind_of_object(target) if is_remote(target) else _kind_of(target)
        if kind == "folder":
            raise ConfigError(f"{target} is a folder; name a file")
        if kind == "file" and not overwrite:
            raise OutputExistsError(f"{target} exists; replace it with --overwrite")


def _kind_of(target: Path) -> str | None:
    if target.is_dir():
        return "folder"
    require_outside(target)
    return "file" if target.exists() else None


def _kind_of_object(target: Path) -> str | None:
    location = Location.parse(target)
    kind = ObjectStore(location.parent).kind(location.name)
    _store_of(location)  # what it needs is installed
    if kind is None:
        ObjectStore(location).require_bucket()
    surroundings.require_outside(location)
    return kind


@contextlib.contextmanager
def new_files(*targets: Path) -> Iterator[list[Path]]:
    """Give the names to write files under; at the end they replace their targets.

    The old files stay until all new ones are complete and on the disk. What a killed
    writer of the same file left beside it goes: a living one holds a lock on its own.

    Args:
        targets: The files to replace; their folders are made.

    Yields:
        A name for each, in the same folder, or of an object in the user's cache, of an
        empty file.

    Raises:
        StorageFullError: They cannot be written; the old ones stay.
        ObjectStoreError: A storage fails.
    """
    if is_remote(targets[0]):
        with _new_objects([Location.parse(target) for target in targets]) as files:
            yield files
        return
    made: list[tuple[Path, int]] = []
    try:
        with disk_errors(targets[0]):
            for target in targets:
                target.parent.mkdir(parents=True, exist_ok=True)
                _sweep(target)
                made.append(_begin(target))
            yield [new for new, _ in made]
            # All are on the disk before the first is renamed: a full disk leaves every old
            # file.
            for new, _ in made:
                sync_file(new)
            for target, (new, _) in zip(targets, made, strict=True):
                new.replace(target)
            for folder in {target.parent for target in targets}:
                sync_folder(folder)
    finally:
        for new, lock in made:
            ownership.remove_draft(new)
            os.close(lock)


@contextlib.contextmanager
def _new_objects(targets: Sequence[Location]) -> Iterator[list[Path]]:
    with staging(targets[0].parent) as folder:
        with disk_errors(folder):
            folder.mkdir()
            new = [folder / target.name for target in targets]
            for file in new:
                file.touch()
            yield new
        progress = new_progress()
        for target, file in zip(targets, new, strict=True):
            progress.stage(f"upload {target}", file.stat().st_size, "bytes")
            _store_of(target).upload(file, target.name)
            progress.advance(file.stat().st_size)
        progress.close()


def _store_of(target: Location) -> ObjectStore | S3Writer:
    """Return who writes an object, and on S3 keeps the old one if that is interrupted."""
    return S3Writer(target.parent) if target.scheme == "s3" else ObjectStore(target.parent)


def _begin(target: Path) -> tuple[Path, int]:
    """Make an empty file of this process's own, and lock it."""
    new = ownership.draft_of(target)
    lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return new, lock


def _sweep(target: Path) -> None:
    """Remove the unfinished files of writers that are dead: nobody holds their locks."""
    for path in target.parent.iterdir():
        is_left = ownership.is_draft(path.name, target.name)
        if is_left and path.is_file() and not path.is_symlink():
            # A living writer holds the lock of its own: then this fails, and the file
            # stays.
            with contextlib.suppress(OSError), ownership.held_alone(path):
                ownership.remove_draft(path)
