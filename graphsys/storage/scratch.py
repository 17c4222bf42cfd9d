"""Temporary space of an ingest: arrays that spill, files that are appended to.

Everything lives in one folder that the transaction removes. A full disk shows as an
``OSError``: space is reserved before it is mapped, since a write to a hole of a full file
system would kill the process.
"""

import mmap
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_IN_MEMORY_SHARE = 0.5


class Scratch:
    """Hands out arrays in memory while they fit the budget, and in mapped files beyond.

    Args:
        folder: An existing folder on the file system of the output.
        budget_bytes: The user's memory budget; arrays take at most half of it.

    Attributes:
        spilled_bytes: Bytes of arrays that went to files so far.
    """

    def __init__(self, folder: Path, budget_bytes: int) -> None:
        self.folder = folder
        self.budget_bytes = budget_bytes
        self.spilled_bytes = 0
        self._used = 0
        self._count = 0
        self._lock = threading.Lock()

    def array(self, length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an uninitialised array ``[length]``, in memory or in a mapped file."""
        dtype = np.dtype(dtype)
        size = length * dtype.itemsize
        with self._lock:
            fits = self._used + size <= self.budget_bytes * _IN_MEMORY_SHARE
            if fits:
                self._used += size
        if not fits and size:
            self.spilled_bytes += size
            return self._mapped(size).view(dtype)
        array = np.empty(length, dtype=dtype)
        weakref.finalize(array, self._give_back, size)
        return array

    def zeros(self, length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a zeroed array ``[length]``, in memory or in a mapped file."""
        array = self.array(length, dtype)
        array[:] = 0
        return array

    def file(self, name: str) -> "AppendFile":
        """Make a new file to append to; ``name`` is only for people who look."""
        with self._lock:
            self._count += 1
            return AppendFile(self.folder / f"{self._count:04d}-{name}")

    def _mapped(self, size: int) -> npt.NDArray[np.uint8]:
        file = self.file("array")
        os.posix_fallocate(file.fd, 0, size)
        mapped = np.frombuffer(mmap.mmap(file.fd, size), dtype=np.uint8)
        file.remove()  # the mapping keeps the space until the array goes
        return mapped

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._used -= size


class AppendFile:
    """A file of raw arrays, appended to and read back by position."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.size = 0
        self._lock = threading.Lock()

    def append(self, array: npt.NDArray[Any]) -> int:
        """Write an array behind the last one and return where it begins, in bytes."""
        with self._lock:
            begin = self.size
            self.size += array.nbytes
        self.write_at(begin, array)
        return begin

    def write_at(self, begin: int, array: npt.NDArray[Any]) -> None:
        """Write an array at a place in bytes."""
        data = memoryview(np.ascontiguousarray(array)).cast("B") if array.size else b""
        while len(data):
            written = os.pwrite(self.fd, data, begin)
            data, begin = data[written:], begin + written

    def read(self, begin: int, length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a fresh copy of ``length`` items that begin at a place in bytes."""
        array = np.empty(length, dtype=dtype)
        self.read_into(begin, array)
        return array

    def read_into(self, begin: int, array: npt.NDArray[Any]) -> None:
        """Fill an array from a place in bytes."""
        view = memoryview(array).cast("B") if array.size else b""
        done = 0
        while done < len(view):
            got = os.preadv(self.fd, [view[done:]], begin + done)
            if not got:
                raise OSError(f"{self.path.name} ended early")
            done += got

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
        self.path.unlink(missing_ok=True)
        os.close(self.fd)


class Segments:
    """Records of several columns, appended group by group, read back a group at a time.

    Args:
        scratch: Where the files go.
        name: For the files' names.
        dtypes: dtype of every column by name.
        num_groups: How many groups there are.
    """

    def __init__(
        self, scratch: Scratch, name: str, dtypes: dict[str, np.dtype[Any]], num_groups: int
    ) -> None:
        self.dtypes = dtypes
        self._files = {key: scratch.file(f"{name}-{key}") for key in dtypes}
        self._places: list[list[tuple[dict[str, int], int]]] = [
            [] for _ in range(num_groups)
        ]

    def append(
        self, columns: dict[str, npt.NDArray[Any]], starts: npt.NDArray[np.int64]
    ) -> None:
        """Append records that are already grouped.

        Args:
            columns: Arrays ``[n]`` by name.
            starts: Where each group begins in them, and n, ``[num_groups + 1]``.
        """
        begins = {key: self._files[key].append(array) for key, array in columns.items()}
        for group in np.flatnonzero(np.diff(starts)):
            at, end = int(starts[group]), int(starts[group + 1])
            where = {key: begins[key] + at * self.dtypes[key].itemsize for key in columns}
            self._places[group].append((where, end - at))

    def length(self, group: int) -> int:
        """Return the number of records of a group."""
        return sum(count for _, count in self._places[group])

    def read(self, group: int) -> dict[str, npt.NDArray[Any]]:
        """Return all records of a group, in the order they were appended."""
        total = self.length(group)
        out = {key: np.empty(total, dtype=dtype) for key, dtype in self.dtypes.items()}
        at = 0
        for where, count in self._places[group]:
            for key, begin in where.items():
                self._files[key].read_into(begin, out[key][at : at + count])
            at += count
        return out

    def pieces(self, group: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Yield the records of a group piece by piece, as they were appended."""
        for where, count in self._places[group]:
            yield {
                key: self._files[key].read(begin, count, self.dtypes[key])
                for key, begin in where.items()
            }

    def remove(self) -> None:
        """Delete the files."""
        for file in self._files.values():
            file.remove()
