"""Copies of graphs and runs in the user's cache, which everything above maps.

``remote/<entry>/`` holds ``.origin.json``, which says where the copy is from, and the copy
in a folder named like the original. An entry is of one state: its name is a digest of the
location and of its graph.json or run.json, so that a copy never changes but by files that
come to it. A file is fetched into ``NAME.part`` under a lock, which a second process waits
for, and gets its name when its checksum is right; one that was left half-way is gone on
with. Who uses an entry holds a shared lock on that until the process ends;
others go, the longest unused first, where the bound of the cache asks for it.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from graphsys.core import ownership
from graphsys.core.checksums import PREFIX, file_digest, file_sha256
from graphsys.core.errors import ConfigError, CorruptStoreError, StorageFullError
from graphsys.core.memory import format_bytes, parse_bytes
from graphsys.core.remote.locations import Location, show_as
from graphsys.core.user_cache import user_cache
from graphsys.storage.objects.object_store import ObjectStore

LIMIT: Final = "GRAPHSYS_REMOTE_CACHE"
_DEFAULT_LIMIT: Final = "100GB"
_FOLDER: Final = "remote"
_ORIGIN: Final = ".origin.json"
_MOST_NAME: Final = 100
_DIGITS: Final = 32
_GONE: Final = ".gone-"
_ENTRY_NAME: Final = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")
_GONE_NAME: Final = re.compile(rf"\.gone-[0-9a-f]{{{_DIGITS}}}-\d+")

_held: dict[Path, int] = {}
"""Locks of the entries that this process uses, until it ends."""


@contextlib.contextmanager
def cache_errors() -> Iterator[None]:
    """Say which disk is full, where copies have no room.

    Raises:
        StorageFullError: that of the cache is.
    """
    try:
        yield
    except OSError as err:
        if err.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StorageFullError(
            f"the disk of the cache {cache_folder(_FOLDER)} is full; free some space, set "
            f"GRAPHSYS_CACHE to a folder with more, or {LIMIT} to less than it holds"
        ) from err


@dataclass(frozen=True, slots=True)
class Fetched:
    """One file to fetch.

    Attributes:
        name: Its name in the copy.
        key: Its name below the location.
        bytes: Its size; None where it is not known.
        checksum: ``xxh3:...``, ``sha256:...``, or "" where none is known.
    """

    name: str
    key: str
    bytes: int | None
    checksum: str = ""


class Copy:
    """The copy of a graph or a run.

    Attributes:
        folder: The folder that is mapped.
        location: What it is a copy of.
    """

    def __init__(self, folder: Path, location: Location) -> None:
        self.folder, self.location = folder, location
        self.store = ObjectStore(location)
        show_as(folder, location)

    def has(self, file: Fetched) -> bool:
        """Return whether a file is here in full."""
        try:
            found = os.stat(self.folder / file.name).st_size
        except OSError:
            return False
        return file.bytes is None or found == file.bytes

    def drop_damaged(self, file: Fetched) -> bool:
        """Remove a file that is here and is not what was written; it can be fetched anew.

        Returns:
            Whether there was one.
        """
        here = self.folder / file.name
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            is_whole = self.has(file) and (
                not file.checksum or _checksum(here, file.checksum) == file.checksum
            )
            if here.is_file() and not is_whole:
                ownership.remove_listed(self.folder, [file.name])
                return True
        return False

    @cache_errors()
    def fetch(self, file: Fetched) -> None:
        """Fetch a file, unless it is here; what was begun of it is gone on with.

        Raises:
            CorruptStoreError: it is missing, or not what was written.
            ObjectStoreError: the storage fails.
            StorageFullError: the cache's disk is full.
        """
        target = self.folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        with _locked(part):
            if self.has(file):
                ownership.remove_made(part)
                return
            for is_last in (part.stat().st_size == 0, True):
                if self._try(file, part):
                    part.replace(target)
                    return
                os.truncate(part, 0)
                if is_last:
                    break
        raise CorruptStoreError(
            f"{self.location}/{file.key} does not match its checksum; run `graphsys verify "
            f"{self.location}`, then write it again"
        )

    def _try(self, file: Fetched, part: Path) -> bool:
        """Fetch the rest of a file; false where the whole is not what was written."""
        try:
            self.store.download(file.key, part)
        except FileNotFoundError:
            raise CorruptStoreError(
                f"{self.location}/{file.key} is missing, maybe since somebody wrote "
                f"{self.location} anew meanwhile; run the command again"
            ) from None
        if file.bytes is not None and part.stat().st_size != file.bytes:
            return False
        return not file.checksum or _checksum(part, file.checksum) == file.checksum


def _checksum(file: Path, like: str) -> str:
    if like.startswith(PREFIX):
        return file_digest(file)
    return f"sha256:{file_sha256(file)}"


def copy_of(location: Location, head: bytes) -> Copy | None:
    """Return the copy of a location's state, if there is one."""
    root = user_cache(_FOLDER)
    entry, name = _entry_of(location, head)
    folder = None if root is None else root / entry / name
    return None if folder is None or not folder.is_dir() else Copy(folder, location)


def _entry_of(location: Location, head: bytes) -> tuple[str, str]:
    """Return the names of a copy's entry, and of the folder in it."""
    digest = hashlib.sha256(f"{location}\n".encode() + head).hexdigest()[:_DIGITS]
    return digest, location.key.rpartition("/")[2].lstrip(".")[:_MOST_NAME] or "copy"


@cache_errors()
def open_copy(location: Location, head: bytes) -> Copy:
    """Return the copy of a location's state, made if there is none, and hold it.

    Raises:
        ConfigError: there is no cache that this user can write.
        StorageFullError: its disk is full.
    """
    root = cache_folder(_FOLDER)
    digest, name = _entry_of(location, head)
    entry, origin = root / digest, root / digest / _ORIGIN
    while entry not in _held:
        (entry / name).mkdir(parents=True, exist_ok=True)
        try:
            lock = os.open(origin, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # dropped right now
            continue
        fcntl.flock(lock, fcntl.LOCK_SH)
        if _is_at(origin, lock) and (entry / name).is_dir():
            os.write(lock, json.dumps({"location": str(location)}).encode())
            _held[entry] = lock
            _drop_older(entry, location)
        else:
            os.close(lock)
    os.utime(origin)
    return Copy(entry / name, location)


def _drop_older(entry: Path, location: Location) -> None:
    """Remove the copies of other states of a location that nobody uses any more."""
    for other in entry.parent.iterdir():
        if other != entry and not other.name.startswith(_GONE):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                found = json.loads((other / _ORIGIN).read_text())
                if found["location"] == str(location):
                    _drop(other)


def copy_at(folder: Path) -> Copy | None:
    """Return the copy that a folder is, None for any other folder."""
    if folder.parent.parent.name != _FOLDER:
        return None
    location = _origin(folder.absolute())
    return None if location is None else Copy(folder, location)


@lru_cache(maxsize=64)
def _origin(folder: Path) -> Location | None:
    cache = user_cache(_FOLDER)
    if cache is None or folder.parent.parent.resolve() != cache.resolve():
        return None  # what lies elsewhere is nobody's copy, whatever it says
    try:
        found = json.loads((folder.parent / _ORIGIN).read_text())
        return Location.parse(found["location"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def location_of(folder: Path) -> str:
    """Return what to write down as the place of a folder: its location, or its path."""
    copy = copy_at(folder)
    return str(folder.resolve()) if copy is None else str(copy.location)


def make_room(copy: Copy, num_bytes: int) -> None:
    """Drop copies that nobody uses, the longest unused first, until there is room.

    Raises:
        ConfigError: those in use leave too little.
    """
    limit = parse_bytes(os.environ.get(LIMIT) or _DEFAULT_LIMIT)
    root = copy.folder.parent.parent
    for gone in root.glob(f"{_GONE}*"):  # by a process that was killed
        ownership.remove_cached(gone, _GONE_NAME, gone.parent)
    entries = sorted(
        (it for it in root.iterdir() if it.is_dir() and (it / _ORIGIN).exists()),
        key=lambda it: (it / _ORIGIN).stat().st_mtime_ns,
    )
    sizes = {entry: _bytes_of(entry) for entry in entries}
    used = sum(sizes.values())
    for entry in entries:
        if used + num_bytes <= limit:
            return
        if entry != copy.folder.parent and _drop(entry):
            used -= sizes[entry]
    if used + num_bytes > limit:
        raise ConfigError(
            f"{copy.location}: {format_bytes(num_bytes)} more are to be fetched, copies in "
            f"use take {format_bytes(used)}, and {LIMIT} allows {format_bytes(limit)}; set "
            f"it to at least {format_bytes(used + num_bytes)}"
        )


def _bytes_of(entry: Path) -> int:
    total = 0
    for folder, _, files in os.walk(entry):
        for name in files:
            with contextlib.suppress(OSError):
                total += (Path(folder) / name).stat().st_size
    return total


def _drop(entry: Path) -> bool:
    """Remove an entry, unless a process uses it."""
    try:
        with ownership.held_alone(entry / _ORIGIN):
            if not _ENTRY_NAME.fullmatch(entry.name):
                return False  # somebody else's
            gone = entry.with_name(f"{_GONE}{entry.name}-{os.getpid()}")
            entry.rename(gone)
    except OSError:
        return False
    ownership.remove_cached(gone, _GONE_NAME, gone.parent)
    return True


def cache_folder(name: str) -> Path:
    """Return a folder of the user's cache.

    Raises:
        ConfigError: this user can write none.
    """
    found = user_cache(name)
    if found is None:
        raise ConfigError(
            "graphs and runs on object stores are copied into the user's cache, which "
            "cannot be written; set GRAPHSYS_CACHE to a folder of your own"
        )
    return found


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold a file that is being fetched; wait for another who does."""
    while True:
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_at(file, lock):  # the one before may have given it its name
                yield
                return
        finally:
            os.close(lock)


def _is_at(file: Path, lock: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.stat(file).st_ino == os.fstat(lock).st_ino
    return False
