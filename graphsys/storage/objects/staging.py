"""Folders for what is made here and goes to an object store, or is looked at from there."""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from graphsys.core import ownership
from graphsys.core.remote.locations import Location, show_as
from graphsys.storage.objects.copies import cache_folder

_STAGING: Final = "staging"
_OWN: Final = "graphsys-staged-"
_LEFT: Final = re.compile(rf"{_OWN}\w{{8}}")  # as tempfile names them
_MOST_NAME: Final = 100


@contextmanager
def staging(location: Location) -> Iterator[Path]:
    """Give a folder, not yet made, that messages show as a location and that goes again.

    Those of processes that were killed go first: who lives holds a lock on its own.

    Raises:
        ConfigError: this user can write no cache.
    """
    root = cache_folder(_STAGING)
    for left in root.iterdir():
        if _LEFT.fullmatch(left.name):
            _drop_left(left)
    own, lock = _own_folder(root)
    folder = own / (location.key.rpartition("/")[2].lstrip(".")[:_MOST_NAME] or "new")
    show_as(folder, location)
    try:
        yield folder
    finally:
        ownership.remove_folder(own)
        os.close(lock)


def _own_folder(root: Path) -> tuple[Path, int]:
    while True:
        with contextlib.suppress(FileNotFoundError):  # taken for left before it was locked
            own = ownership.temporary(_OWN, root)
            lock = os.open(own, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if own.exists():
                return own, lock
            os.close(lock)


def _drop_left(folder: Path) -> None:
    """Remove a folder whose process is dead: nobody holds its lock."""
    with contextlib.suppress(OSError), ownership.held_alone(folder):
        ownership.remove_cached(folder, _LEFT, folder.parent)
