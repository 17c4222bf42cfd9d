"""Writing large arrays so that the page cache holds them in large pages.

The kernel copies into a page of up to 2 MiB at once what it can read at once. From memory
that is all of it; from a mapping whose pages nobody has touched it is a few, and then the
file lies in the page cache in small pages for as long as it stays there: every process that
maps it takes an interruption for each 64 KiB instead of each 2 MiB, and random reads miss
the processor's table of pages. So what is written goes through a buffer in memory.
"""

import os
from typing import Any, Final

PIECE: Final = 2 << 20
"""Bytes of the buffer, and of the kernel's large pages: pieces end where those do."""


class FileWriter:
    """A stream into a file that was just made, for Arrow's writers to write to.

    Args:
        fd: The empty file, open for writing; closing the stream leaves it open.
    """

    closed = False

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = memoryview(bytearray(PIECE))
        self._end = 0

    def write(self, data: Any) -> int:
        """Write bytes behind those of before; return how many.

        Raises:
            OSError: The disk is full, or it cannot be written.
        """
        left = memoryview(data).cast("B")
        size = len(left)
        while left:
            piece = self._buffer[: min(len(left), PIECE - self._end % PIECE)]
            piece[:] = left[: len(piece)]
            written = os.write(self._fd, piece)
            self._end += written
            left = left[written:]
        return size

    def tell(self) -> int:
        """Return the bytes written so far."""
        return self._end

    def flush(self) -> None:
        """Do nothing: all is with the kernel."""

    def close(self) -> None:
        """Take no more."""
        self.closed = True
