"""Columns of several files at one range of addresses, so that they are one array.

A partition's rows are a file; a kernel that goes from node to node wants the rows of all.
The pages of each file that hold the column are mapped one file behind the other
(``mmap(2)`` with ``MAP_FIXED`` into a range that was reserved before): nothing is copied
and the memory stays the page cache's. Columns begin anywhere in a page, so between two
files lies a gap of less than two pages that means nothing.
"""

import ctypes
import mmap
import os
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_PROT_NONE: Final = 0
_MAP_NORESERVE: Final = 0x4000
_MAP_FIXED: Final = 0x10
_FAILED: Final = ctypes.c_void_p(-1).value

CAN_MAP: Final = sys.platform == "linux"
"""Whether this system's ``mmap`` is the one whose numbers are used here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumn:
    """Where an array lies in a file.

    Attributes:
        path: The file.
        begin: First byte of the array, a multiple of its dtype's size.
        length: Number of values; 0 needs no file.
    """

    path: Path
    begin: int
    length: int


class _AddressRange:
    """Reserved addresses; given back when the last array in them is gone."""

    def __init__(self, num_bytes: int) -> None:
        kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        self.address = _mmap(0, num_bytes, _PROT_NONE, kind, -1, 0)
        weakref.finalize(self, _libc().munmap, self.address, num_bytes)
        self._num_bytes = num_bytes

    def map(self, at: int, num_bytes: int, path: Path, offset: int) -> None:
        """Map pages of a file ``at`` bytes behind the begin of the range."""
        file = os.open(path, os.O_RDONLY)
        try:
            if os.fstat(file).st_size < offset + num_bytes - mmap.PAGESIZE:
                raise OSError(f"{path} is shorter than the array in it")
            kind = mmap.MAP_SHARED | _MAP_FIXED
            _mmap(self.address + at, num_bytes, mmap.PROT_READ, kind, file, offset)
        finally:
            os.close(file)

    def array(self, at: int, length: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return values ``at`` bytes behind the begin, read-only; they keep the range."""
        self.__array_interface__ = {
            "version": 3,
            "typestr": dtype.str,
            "shape": (length,),
            "data": (self.address + at, True),
        }
        return np.asarray(self)


def map_side_by_side(
    columns: Sequence[FileColumn], dtype: np.dtype[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Map columns of files as one array.

    Args:
        columns: The columns, in the order that they shall have.
        dtype: Of all of them.

    Returns:
        The array ``[L]``, with what lies between the columns, and where each column begins
        in it, int64 ``[len(columns)]``, ascending.

    Raises:
        OSError: a file cannot be opened or mapped, or has become shorter.
    """
    places = np.zeros(len(columns), dtype=np.int64)
    pages, used, end = [], 0, 0
    for k, column in enumerate(columns):
        num_bytes = column.length * dtype.itemsize
        if not num_bytes:
            places[k] = end
            continue
        within = column.begin % mmap.PAGESIZE
        pages.append((used, within + num_bytes, column.path, column.begin - within))
        places[k] = (used + within) // dtype.itemsize
        end = places[k] + column.length
        used += -(-(within + num_bytes) // mmap.PAGESIZE) * mmap.PAGESIZE
    if not pages:
        return np.empty(0, dtype=dtype), places
    region = _AddressRange(used)
    for at, num_bytes, path, offset in pages:
        region.map(at, num_bytes, path, offset)
    return region.array(0, int(end), dtype), places


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def _mmap(
    address: int, num_bytes: int, protection: int, kind: int, file: int, offset: int
) -> int:
    """Call ``mmap(2)`` and return the address.

    Raises:
        OSError: it failed.
    """
    found = _libc().mmap(address, num_bytes, protection, kind, file, offset)
    if found is None or found == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(found)
