"""The first look at a file, and which files were found whole: one look is enough.

A file is the one that was looked at while its size, inode and times of change are the same.
What was found is kept in the process and in the user's cache, never beside the files, where
nothing may lie that is not listed. A line of the cache is a JSON list: the file's name,
what the system says of it, and what was checked; a later line wins, and a line that cannot
be read is none.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa

from graphsys.core import ownership
from graphsys.core.checksums import PREFIX, digest
from graphsys.core.threads import run_parallel
from graphsys.core.user_cache import user_cache
from graphsys.storage.manifest import FileEntry, Manifest

_SETTLED_NS: Final = 50_000_000
"""A file changed so recently may change again without a later time of change."""
_WORTH_BYTES: Final = 1 << 16
"""Looking at a smaller file again costs less than writing down that it was looked at."""
_MOST_LINES: Final = 3  # per file, before a cache is written anew
_MOST_FOLDERS: Final = 2048  # whose caches are kept

_CACHE_NAME: Final = re.compile(r"[0-9a-f]{32}\.jsonl")

_WORTH_A_THREAD: Final = 16 << 20  # bytes

Identity = tuple[int, int, int, int]
Check = Callable[[pa.RecordBatch], None]


class CheckedFiles:
    """Files of a folder that were checked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cache = _cache_of(str(folder.resolve()))

    def is_known(self, name: str, what: str) -> bool:
        """Return whether a file, given by its name in the folder, was found to be so.

        Args:
            name: The file, relative to the folder.
            what: What was checked: a checksum, and what its content must fit.
        """
        found = self._identity(name)
        return found is not None and self._cache.known.get(name) == (found, what)

    def remember(self, name: str, what: str) -> None:
        """Say that a file was found to be so; one that has just been written is not."""
        found = self._identity(name)
        # Clocks of file systems are coarse: a later change might leave all of these as they
        # are.
        if found is None or time.time_ns() - max(found[1:3]) < _SETTLED_NS:
            return
        if self._cache.known.get(name) != (found, what):
            self._cache.add(name, found, what)

    def _identity(self, name: str) -> Identity | None:
        try:
            found = os.stat(self._folder / name)
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


@functools.lru_cache(maxsize=256)
def _cache_of(folder: str) -> "_Cache":
    return _Cache(folder)


class _Cache:
    """What is known of a folder: in memory, and as lines of a file where there is room."""

    def __init__(self, folder: str) -> None:
        self.known: dict[str, tuple[Identity, str]] = {}
        root = user_cache("checked")
        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]
        self._file = None if root is None else root / f"{name}.jsonl"
        self._num_lines = 0
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._read(self._file.read_bytes())

    def add(self, name: str, identity: Identity, what: str) -> None:
        """Remember a file, and write it down."""
        self.known[name] = identity, what
        if self._file is None or identity[0] < _WORTH_BYTES:
            return
        with contextlib.suppress(OSError):  # it is a cache: nothing depends on it
            if self._num_lines > _MOST_LINES * len(self.known) + 64:
                self._rewrite(self._file)
            else:
                if not self._num_lines:
                    _prune(self._file.parent)
                _append(self._file, _line(name, identity, what))
                self._num_lines += 1

    def _read(self, content: bytes) -> None:
        for line in content.splitlines():
            self._num_lines += 1
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                name, size, modified, changed, inode, what = json.loads(line)
                self.known[name] = (size, modified, changed, inode), what

    def _rewrite(self, file: Path) -> None:
        new = ownership.draft_of(file)
        new.write_bytes(b"".join(_line(k, *v) for k, v in self.known.items()))
        new.replace(file)
        self._num_lines = len(self.known)


def _line(name: str, identity: Identity, what: str) -> bytes:
    return json.dumps([name, *identity, what]).encode() + b"\n"


def _prune(root: Path) -> None:
    """Keep the caches of the folders used last: others' may be gone."""
    files = sorted(root.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    for file in files[: max(len(files) - _MOST_FOLDERS, 0)]:
        ownership.remove_cached(file, _CACHE_NAME, root)


def _append(file: Path, line: bytes) -> None:
    """Add a line by one write, which other processes' lines do not mix with."""
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(out, line)
    finally:
        os.close(out)


class FirstLook:
    """Looks at the files of a graph, each once."""

    def __init__(self, root: Path, manifest: Manifest) -> None:
        self._known = CheckedFiles(root)
        parts = (manifest.node_types, manifest.edge_types)
        plain = [{k: dataclasses.asdict(v) for k, v in part.items()} for part in parts]
        text = json.dumps(plain, sort_keys=True)
        self._bounds = hashlib.sha256(text.encode()).hexdigest()[:16]

    def require(
        self, entry: FileEntry, mapped: pa.Buffer, batch: pa.RecordBatch, check: Check
    ) -> None:
        """Check a mapped file, unless that was done before.

        Args:
            entry: What the manifest says of the file.
            mapped: All its bytes.
            batch: What it holds.
            check: Checks what the batch says; raises ValueError.

        Raises:
            ValueError: It is not what was written, or says what cannot be.
            pa.ArrowException: Its arrays are not well-formed.
        """
        what = self._what(entry)
        if self._known.is_known(entry.path, what):
            return

        def look(number: int) -> None:
            if number == 0:
                require_checksum(entry, mapped)
            else:
                batch.validate(full=True)
                check(batch)

        run_parallel(look, range(2), 2 if len(mapped) > _WORTH_A_THREAD else 1)
        self._known.remember(entry.path, what)

    def remember_written(self, files: list[FileEntry]) -> None:
        """Say that files have just been written, so that nobody need look."""
        for entry in files:
            self._known.remember(entry.path, self._what(entry))

    def _what(self, entry: FileEntry) -> str:
        return f"{entry.xxh3 or entry.checksum} {entry.rows} {self._bounds}"


def require_checksum(entry: FileEntry, data: pa.Buffer) -> None:
    """Compare the bytes of a file with the checksum that was written down.

    Stores from before there were fast checksums have SHA-256 only, which takes ten times
    as long.

    Raises:
        ValueError: They differ.
    """
    if entry.xxh3.startswith(PREFIX):
        is_right = digest(data) == entry.xxh3
    else:
        is_right = f"sha256:{hashlib.sha256(data).hexdigest()}" == entry.checksum
    if not is_right:
        raise ValueError("it does not match its checksum")
