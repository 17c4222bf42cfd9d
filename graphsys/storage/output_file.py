"""Output files: written whole beside the old one, never inside a graph or a run."""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from graphsys.core.errors import ConfigError, OutputExistsError
from graphsys.storage.folder_kinds import require_outside
from graphsys.storage.transaction import disk_errors, sync_folder


def require_writable(*targets: Path, overwrite: bool) -> None:
    """Refuse files that may not be written, before any work is done.

    Raises:
        ConfigError: one is a folder, or lies inside a graph or a run.
        OutputExistsError: one exists and ``overwrite`` is off.
    """
    for target in targets:
        if target.is_dir():
            raise ConfigError(f"{target} is a folder; name a file")
        require_outside(target)
        if target.exists() and not overwrite:
            raise OutputExistsError(f"{target} exists; replace it with --overwrite")


@contextlib.contextmanager
def new_files(*targets: Path) -> Iterator[list[Path]]:
    """Give the names to write files under; at the end they replace their targets.

    The old files stay until all new ones are complete and on the disk. What a killed
    writer of the same file left beside it goes: a living one holds a lock on its own.

    Args:
        targets: The files to replace; their folders are made.

    Yields:
        A name for each, in the same folder, of an empty file.

    Raises:
        StorageFullError: They cannot be written; the old ones stay.
    """
    made: list[tuple[Path, int]] = []
    try:
        with disk_errors(targets[0]):
            for target in targets:
                target.parent.mkdir(parents=True, exist_ok=True)
                _sweep(target)
                made.append(_begin(target))
            yield [new for new, _ in made]
            for new, _ in made:
                _sync(new)
            for target, (new, _) in zip(targets, made, strict=True):
                new.replace(target)
            for folder in {target.parent for target in targets}:
                sync_folder(folder)
    finally:
        for new, lock in made:
            new.unlink(missing_ok=True)
            os.close(lock)


def _begin(target: Path) -> tuple[Path, int]:
    """Make an empty file of this process's own, and lock it."""
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return new, lock


def _sweep(target: Path) -> None:
    """Remove the unfinished files of writers that are dead: nobody holds their locks."""
    left = re.compile(rf"\.{re.escape(target.name)}\.\d+\.new")
    for path in target.parent.iterdir():
        if not left.fullmatch(path.name) or path.is_symlink() or not path.is_file():
            continue
        with contextlib.suppress(OSError):
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
            finally:
                os.close(lock)


def _sync(file: Path) -> None:
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
