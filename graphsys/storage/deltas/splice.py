"""Arrays with some entries taken out and others put in, in memory or in a mapped file.

What is merged from a store and its deltas may be as large as the store. From a megabyte on
it lies in a file without a name, which goes with the last array: pages of it are the page
cache's, as those of the store's own files are, and can be given back in the same way.
"""

import mmap
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import StorageFullError
from graphsys.core.threads import num_cores, run_parallel
from graphsys.kernels.cpu.rows import splice as kernels

_IN_MEMORY = 1 << 20
_WORTH_A_THREAD = 1 << 18  # entries
Fill = Callable[[npt.NDArray[Any]], None]


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
        size = length * dtype.itemsize
        if size < _IN_MEMORY:
            array = np.empty(length, dtype=dtype)
            fill(array)
            array.flags.writeable = False
            return array
        fd = self._open()
        try:
            os.posix_fallocate(fd, 0, size)
            with mmap.mmap(fd, size) as writable:
                fresh = np.frombuffer(writable, dtype=dtype)
                fill(fresh)
                del fresh
            # mapped again for reading: what is given back stays in the file
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

    def fill(out: npt.NDArray[Any]) -> None:
        threads = num_cores() if len(out) > _WORTH_A_THREAD else 1
        bounds = [len(base) * k // threads for k in range(threads + 1)]

        def work(k: int) -> None:
            begin, end = bounds[k], bounds[k + 1]
            first = int(np.searchsorted(places, begin))
            last = k == threads - 1
            kernels.splice(
                base, dropped, places, values, begin, end,
                int(np.searchsorted(dropped, begin)), first,
                len(places) if last else int(np.searchsorted(places, end)), out,
            )  # fmt: skip

        run_parallel(work, range(threads), threads)

    length = len(base) - len(dropped) + len(places)
    return space.filled(length, base.dtype if dtype is None else dtype, fill)
