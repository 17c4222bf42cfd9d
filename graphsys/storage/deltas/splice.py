"""Arrays with some entries taken out and others put in, in memory or in a mapped file.

What is merged from a store and its deltas may be as large as the store. From a megabyte on
it lies in a file without a name, which goes with the last array: pages of it are the page
cache's, as those of the store's own files are, and can be given back in the same way.
"""

import mmap
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import StorageFullError
from graphsys.core.threads import run_parallel
from graphsys.graph.csr import read_only
from graphsys.kernels.cpu.rows import splice as kernels

_IN_MEMORY = 1 << 20
_PIECE = 1 << 18  # entries
Fill = Callable[[npt.NDArray[Any]], None]
FillPiece = Callable[[int, npt.NDArray[Any]], None]


class MergedSpace:
    """Gives room for merged arrays.

    Args:
        folder: A folder on the graph's file system; where nothing can be written there,
            the folder for temporary files is used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def filled(self, length: int, dtype: npt.DTypeLike, fill: Fill) -> npt.NDArray[Any]:
        """Return an array ``[length]`` that ``fill`` has written, for reading only.

        Raises:
            StorageFullError: the disk is full.
        """
        dtype = np.dtype(dtype)
        if length * dtype.itemsize < _IN_MEMORY:
            return self.put_together([0, length], dtype, lambda _, out: fill(out))

        def work(fd: int) -> None:
            with mmap.mmap(fd, length * dtype.itemsize) as writable:
                fresh = np.frombuffer(writable, dtype=dtype)
                fill(fresh)
                del fresh

        return self._mapped(length, dtype, work)

    def put_together(
        self, bounds: Sequence[int], dtype: npt.DTypeLike, fill: FillPiece
    ) -> npt.NDArray[Any]:
        """Return an array whose pieces are made one by one, for reading only.

        Pieces are made in memory, in threads, and written as wholes: a file written through
        a mapping lies in the page cache in small pages, each of which interrupts its writer
        and later its readers (see ``merge_cache.FileWriter``).

        Args:
            bounds: Where pieces begin, and where the last one ends ``[K + 1]``.
            dtype: Of the array.
            fill: Writes piece k into the array that it gets.

        Raises:
            StorageFullError: the disk is full.
        """
        dtype, count = np.dtype(dtype), len(bounds) - 1
        if bounds[-1] * dtype.itemsize < _IN_MEMORY:
            array = np.empty(bounds[-1], dtype=dtype)
            for k in range(count):
                fill(k, array[bounds[k] : bounds[k + 1]])
            array.flags.writeable = False
            return array

        def write(fd: int, k: int) -> None:
            piece = np.empty(bounds[k + 1] - bounds[k], dtype=dtype)
            fill(k, piece)
            # `pwrite` may take less than it is given, and has a place of its own for each
            # thread.
            left, at = piece.view(np.uint8).data, bounds[k] * dtype.itemsize
            while left:
                written = os.pwrite(fd, left, at)
                left, at = left[written:], at + written

        return self._mapped(
            bounds[-1], dtype, lambda fd: run_parallel(partial(write, fd), range(count))
        )

    def _mapped(
        self, length: int, dtype: np.dtype[Any], work: Callable[[int], Any]
    ) -> npt.NDArray[Any]:
        """Return the array in a file without a name that ``work`` has written."""
        fd, size = self._open(), length * dtype.itemsize
        try:
            # Reserved first: a write to a hole of a full disk would kill the process, not
            # raise.
            os.posix_fallocate(fd, 0, size)
            work(fd)
            # mapped for reading alone: what is given back stays in the file
            mapped = mmap.mmap(fd, size, prot=mmap.PROT_READ)
        except OSError as err:
            raise StorageFullError(
                f"merging the deltas of {self._folder.parent} takes {size} bytes of disk, "
                f"which are not there ({(err.strerror or str(err)).lower()}); free some "
                "space, or compact the graph elsewhere"
            ) from err
        finally:
            os.close(fd)
        return np.frombuffer(mapped, dtype=dtype)

    def _open(self) -> int:
        try:
            return os.open(self._folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:  # read-only, or a file system without files that have no name
            with tempfile.TemporaryFile() as file:
                return os.dup(file.fileno())


def spliced(
    base: npt.NDArray[Any],
    dropped: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    values: npt.NDArray[Any],
    space: MergedSpace,
    dtype: npt.DTypeLike | None = None,
) -> npt.NDArray[Any]:
    """Return an array without some entries and with others put in.

    Args:
        base: The array ``[E]``.
        dropped: Places of the entries to leave out, ascending, int64 ``[R]``.
        places: Place before which each value goes, ascending, int64 ``[D]``.
        values: What is put in ``[D]``.
        space: Where the result goes.
        dtype: Of the result; that of ``base`` by default.

    Returns:
        ``[E - R + D]``.
    """
    base, values = read_only(base), read_only(values)
    begins = range(0, max(len(base), 1), _PIECE)
    # What lies in front of each piece says where it goes: pieces need not wait for each
    # other.
    drops = np.searchsorted(dropped, begins)
    firsts = [*np.searchsorted(places, begins).tolist(), len(places)]
    length = len(base) - len(dropped) + len(places)
    bounds = [*(begins - drops + firsts[:-1]).tolist(), length]

    def fill(k: int, out: npt.NDArray[Any]) -> None:
        kernels.splice(
            base,
            dropped,
            places,
            values,
            begins[k],
            min(begins[k] + _PIECE, len(base)),
            int(drops[k]),
            firsts[k],
            firsts[k + 1],
            out,
        )

    return space.put_together(bounds, base.dtype if dtype is None else dtype, fill)
