"""Opening a store: the current generation, held, and its files, looked at but not read."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from graphsys.core.errors import CorruptStoreError
from graphsys.storage.locks import Pin
from graphsys.storage.manifest import FileEntry, Manifest
from graphsys.storage.objects.copies import copy_at

_MAGIC = b"ARROW1"
_LOOK = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # nobody need write into a pipe
_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}


def pin_current(path: Path) -> tuple[Manifest, Pin]:
    """Return the manifest and a pin on the generation that it names.

    Raises:
        InvalidGraphError: there is no graph.
        CorruptStoreError: the manifest or the generation's folder is missing or altered.
    """
    while True:
        manifest = Manifest.read(path)
        try:
            pin = Pin(path / f"gen-{manifest.generation}")
        except (FileNotFoundError, NotADirectoryError, PermissionError) as err:
            if Manifest.read(path).generation != manifest.generation:
                continue  # a writer committed in between
            raise CorruptStoreError(
                f"{path} has no folder gen-{manifest.generation} that can be read, which "
                "graph.json names; ingest again or restore it"
            ) from err
        # a writer may have swept the generation away before the pin held it
        if Manifest.read(path).generation == manifest.generation:
            return manifest, pin
        pin.release()


def check_files(root: Path, entries: Iterable[FileEntry]) -> None:
    """Check that files are inside the folder, of their size, and begin and end as Arrow.

    Those of a copy from an object store are looked at when they are fetched.

    Raises:
        CorruptStoreError: one is not.
    """
    if copy_at(root) is not None:
        return
    inside = os.path.join(os.path.realpath(root), "")
    for entry in entries:
        _check_file(root, inside, entry)


def _check_file(root: Path, inside: str, entry: FileEntry) -> None:
    remedy = "run `graphsys verify`, then ingest again or restore the file"
    try:  # by system calls alone: of a hundred appends there are hundreds of small files
        fd = os.open(f"{inside}{entry.path}", _LOOK)
    except OSError as err:
        if err.errno in _MISSING:
            raise CorruptStoreError(
                f"{entry.path} of graph {root} is missing; {remedy}"
            ) from err
        raise CorruptStoreError(
            f"{entry.path} of graph {root} cannot be read ({err.strerror}); {remedy}"
        ) from err
    try:
        real, size = _real_path(fd, f"{inside}{entry.path}"), os.fstat(fd).st_size
        if real.startswith(inside) and size == entry.bytes:
            head = os.pread(fd, len(_MAGIC), 0)
            tail = os.pread(fd, len(_MAGIC), max(size - len(_MAGIC), 0))
    except OSError as err:
        raise CorruptStoreError(
            f"{entry.path} of graph {root} cannot be read ({err.strerror}); {remedy}"
        ) from err
    finally:
        os.close(fd)
    if not real.startswith(inside):
        raise CorruptStoreError(
            f"{entry.path} of graph {root} is a link out of the graph's folder; "
            "do not use this graph"
        )
    if size != entry.bytes:
        raise CorruptStoreError(
            f"{entry.path} of graph {root} has {size} bytes, graph.json says "
            f"{entry.bytes}; {remedy}"
        )
    if head != _MAGIC or tail != _MAGIC:
        raise CorruptStoreError(
            f"{entry.path} of graph {root} is not an Arrow file; {remedy}"
        )


def _real_path(fd: int, path: str) -> str:
    """Return where an open file is; the system knows, so that no link is followed twice."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:  # no /proc
        return os.path.realpath(path)
