"""Temporary space: arrays and streams that spill beyond the budget.

That of an ingest lives in one folder that the transaction removes. A full disk shows as an
``OSError``: space is reserved before it is mapped, since a write to a hole of a full file
system would kill the process.
"""

import mmap
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core import ownership
from graphsys.core.memory import scratch_folder
from graphsys.storage.transaction import disk_errors

_IN_MEMORY_SHARE = 0.6
_MAX_NAME = 40


class Scratch:
    """Keeps arrays in memory while they fit the budget, and in files beyond.

    Args:
        folder: An existing folder on the file system of the output.
        budget_bytes: The user's memory budget; what is kept takes at most three fifths.
    """

    def __init__(self, folder: Path, budget_bytes: int) -> None:
        self.folder = folder
        self.budget_bytes = budget_bytes
        self._used = 0
        self._count = 0
        self._lock = threading.Lock()

    def array(self, length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an uninitialized array ``[length]``, in memory or in a mapped file."""
        dtype = np.dtype(dtype)
        size = length * dtype.itemsize
        if size and not self.take(size):
            return self._mapped(size).view(dtype)
        array = np.empty(length, dtype=dtype)
        # Views keep the array, so that its memory is given back with the last of them.
        weakref.finalize(array, self.give_back, size)
        return array

    def zeros(self, length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a zeroed array ``[length]``, in memory or in a mapped file."""
        array = self.array(length, dtype)
        array[:] = 0
        return array

    def file(self, name: str) -> "AppendFile":
        """Make a new file to append to; ``name`` is only for people who look."""
        safe = re.sub(r"[^A-Za-z0-9]+", "-", name)[:_MAX_NAME]
        with self._lock:
            self._count += 1
            return AppendFile(self.folder / f"{self._count:04d}-{safe}")

    def take(self, size: int) -> bool:
        """Reserve memory; false where it would pass the share of the budget."""
        with self._lock:
            fits = self._used + size <= self.budget_bytes * _IN_MEMORY_SHARE
            self._used += size if fits else 0
            return fits

    def give_back(self, size: int) -> None:
        """Release memory that :meth:`take` reserved."""
        with self._lock:
            self._used -= size

    def _mapped(self, size: int) -> npt.NDArray[np.uint8]:
        file = self.file("array")
        file.reserve(size)
        mapped = np.frombuffer(mmap.mmap(file.fd, size), dtype=np.uint8)
        file.remove()  # the mapping keeps the space until the array goes
        return mapped


class AppendFile:
    """A file of raw arrays, appended to and read back by position."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.size = 0
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, os.close, self.fd)

    def append(self, array: npt.NDArray[Any]) -> int:
        """Write an array behind the last one and return where it begins, in bytes."""
        with self._lock:
            begin = self.size
            self.size += array.nbytes
        self.write_at(begin, array)
        return begin

    def write_at(self, begin: int, array: npt.NDArray[Any]) -> None:
        """Write an array at a place in bytes."""
        data = np.ascontiguousarray(array).data.cast("B") if array.size else b""
        while len(data):
            written = os.pwrite(self.fd, data, begin)
            data, begin = data[written:], begin + written

    def read(self, begin: int, length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a fresh copy of ``length`` items that begin at a place in bytes."""
        array = np.empty(length, dtype=dtype)
        view = array.data.cast("B") if array.size else b""
        done = 0
        while done < len(view):
            got = os.preadv(self.fd, [view[done:]], begin + done)
            if not got:
                raise OSError(f"{self.path.name} ended early")
            done += got
        return array

    def mapped(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return the whole file as a read-only mapped array."""
        if not self.size:
            return np.empty(0, dtype=dtype)
        data = mmap.mmap(self.fd, self.size, prot=mmap.PROT_READ)
        return np.frombuffer(data, dtype=dtype)

    def reserve(self, size: int) -> None:
        """Take up space on the disk, to be filled with :meth:`write_at`."""
        if size:
            os.posix_fallocate(self.fd, 0, size)
        self.size = size

    def remove(self) -> None:
        """Delete the file; mappings stay valid."""
        ownership.remove_made(self.path)
        self._close()


class Spool:
    """A stream of arrays, each in memory or, beyond the budget, in a file."""

    def __init__(self, scratch: Scratch, name: str) -> None:
        self._scratch = scratch
        self._name = name
        self._file: AppendFile | None = None
        self._items: list[npt.NDArray[Any] | tuple[int, int, np.dtype[Any]] | None] = []

    def append(self, array: npt.NDArray[Any]) -> int:
        """Keep an array, which must not change afterwards, and return its place."""
        if self._scratch.take(array.nbytes):
            # A view would keep all of the array that it is of, which nobody counts.
            self._items.append(array if array.base is None else array.copy())
        else:
            if self._file is None:
                self._file = self._scratch.file(self._name)
            self._items.append((self._file.append(array), len(array), array.dtype))
        return len(self._items) - 1

    def read(self, place: int, begin: int = 0, end: int | None = None) -> npt.NDArray[Any]:
        """Return an array, or a slice of it; a view if it is in memory."""
        item = self._items[place]
        if isinstance(item, np.ndarray):
            return item[begin:end]
        if item is None or self._file is None:
            raise ValueError(f"array {place} of {self._name} has been dropped")
        first, length, dtype = item
        end = length if end is None else end
        return self._file.read(first + begin * dtype.itemsize, end - begin, dtype)

    def drop(self, place: int) -> None:
        """Forget an array and release its memory."""
        item = self._items[place]
        if isinstance(item, np.ndarray):
            self._scratch.give_back(item.nbytes)
        self._items[place] = None

    def remove(self) -> None:
        """Forget everything."""
        for place in range(len(self._items)):
            self.drop(place)
        if self._file is not None:
            self._file.remove()
            self._file = None


class Segments:
    """Records of several columns, appended group by group, read back a group at a time.

    Args:
        scratch: Where they wait.
        name: For the files' names.
        dtypes: dtype of every column by name.
        num_groups: How many groups there are.
    """

    def __init__(
        self, scratch: Scratch, name: str, dtypes: dict[str, np.dtype[Any]], num_groups: int
    ) -> None:
        self.dtypes = dtypes
        self._spools = {key: Spool(scratch, f"{name}-{key}") for key in dtypes}
        self._pieces: list[list[tuple[int, int, int]]] = [[] for _ in range(num_groups)]
        self._unread: list[int] = []
        self._lock = threading.Lock()

    def append(
        self, columns: dict[str, npt.NDArray[Any]], starts: npt.NDArray[np.int64]
    ) -> None:
        """Append records that are already grouped.

        Args:
            columns: Arrays ``[n]`` by name.
            starts: Where each group begins in them, and n, ``[num_groups + 1]``.
        """
        for key, dtype in self.dtypes.items():
            place = self._spools[key].append(columns[key].astype(dtype, copy=False))
        groups = np.flatnonzero(np.diff(starts))
        for group in groups:
            self._pieces[group].append((place, int(starts[group]), int(starts[group + 1])))
        self._unread.append(len(groups))

    def length(self, group: int) -> int:
        """Return the number of records of a group."""
        return sum(end - begin for _, begin, end in self._pieces[group])

    def read(
        self, group: int, allocate: Callable[[int, Any], npt.NDArray[Any]] = np.empty
    ) -> dict[str, npt.NDArray[Any]]:
        """Return all records of a group, in the order they were appended, once.

        Args:
            group: Its number.
            allocate: Makes the arrays, of a length and a dtype.
        """
        return self._join(self._pieces[group], allocate)

    def pieces(self, group: int, length: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Yield the records of a group in order, at least ``length`` at a time, once."""
        waiting: list[tuple[int, int, int]] = []
        total = 0
        for piece in self._pieces[group]:
            waiting.append(piece)
            total += piece[2] - piece[1]
            if total >= length:
                yield self._join(waiting)
                waiting, total = [], 0
        if waiting:
            yield self._join(waiting)

    def _join(
        self,
        pieces: list[tuple[int, int, int]],
        allocate: Callable[[int, Any], npt.NDArray[Any]] = np.empty,
    ) -> dict[str, npt.NDArray[Any]]:
        total = sum(end - begin for _, begin, end in pieces)
        out = {key: allocate(total, dtype) for key, dtype in self.dtypes.items()}
        at = 0
        for place, begin, end in pieces:
            for key, spool in self._spools.items():
                out[key][at : at + end - begin] = spool.read(place, begin, end)
            at += end - begin
            with self._lock:
                self._unread[place] -= 1
                # Groups are read by several threads: the last one to need a block drops it.
                is_done = not self._unread[place]
            if is_done:
                for spool in self._spools.values():
                    spool.drop(place)
        return out

    def remove(self) -> None:
        """Forget everything."""
        for spool in self._spools.values():
            spool.remove()


class ScratchArrays:
    """Arrays in files without a name, whose space is free again when nobody uses them."""

    def __init__(self) -> None:
        self._folder = ownership.temporary("graphsys-", Path(scratch_folder()))
        weakref.finalize(
            self, ownership.remove_empty, self._folder
        )  # its files have no names
        self._scratch = Scratch(self._folder, 0)

    def zeros(self, length: int, dtype: Any) -> Any:
        """Return zeros ``[length]``; space is reserved, so that writing cannot fail.

        Raises:
            StorageFullError: the file system has no room.
        """
        with disk_errors(self._folder):
            return self._scratch.array(length, dtype)  # a new file reads as zeros
