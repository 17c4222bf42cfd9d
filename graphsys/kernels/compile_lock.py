"""One process at a time compiles a kernel; others wait for it and load what it made.

Workers on one machine meet the same kernels at the same moment: each would compile them for
seconds. And numba's index of a kernel's files has no lock of its own: two processes that
add a signature each may give both the same file, which then holds code for other types.
"""

import contextlib
import fcntl
import functools
import os
import time
import zlib
from pathlib import Path
from typing import Final

FILE: Final = "kernels.lock"
PATIENCE_S = 180.0
"""Who holds a lock for longer may have been stopped: the kernel is compiled here too."""
_PAUSE_S: Final = 0.02


class CompileLock:
    """A byte of a file beside the compiled kernels, locked while one kernel is compiled.

    The lock is the process's: a fork does not inherit it, and it ends with its process.

    Args:
        folder: Of the compiled kernel.
        name: Of the kernel's index. Names that share a byte only wait for each other.
    """

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._byte = zlib.crc32(name.encode())
        self._is_held = False

    def acquire(self) -> None:
        """Wait for the lock; go on without it where there can be none."""
        if self._is_held:
            return
        end = time.monotonic() + PATIENCE_S
        with contextlib.suppress(OSError):  # a folder or a file system without locks
            while not self._try() and time.monotonic() < end:
                time.sleep(_PAUSE_S)

    def _try(self) -> bool:
        file = _opened(self._folder)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._byte)
        except (BlockingIOError, PermissionError):
            return False
        self._is_held = True
        return True

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self._is_held:
            self._is_held = False
            fcntl.lockf(_opened(self._folder), fcntl.LOCK_UN, 1, self._byte)


@functools.cache
def _opened(folder: str) -> int:
    """Return the file, open for good: closing one of a process's ends all its locks."""
    return os.open(Path(folder, FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
