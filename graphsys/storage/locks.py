"""One writer at a time, and readers whose generation stays while they hold it.

The writer's lock is an exclusive ``flock`` on the file ``.lock``; a reader's pin is a
shared ``flock`` on the generation's folder. The kernel drops both when a process dies, so
a kill leaves no stale lock.
"""

import contextlib
import fcntl
import os
from pathlib import Path

from graphsys.core.errors import OutputExistsError, StoreBusyError
from graphsys.core.ownership import remove_made

LOCK_NAME = ".lock"


class WriterLock:
    """Exclusive right to write to a folder.

    Raises:
        StoreBusyError: another process holds it.
        OutputExistsError: a file of that name has content, which ours never have.
    """

    _fd, _holder = -1, 0  # of one whose making Ctrl-C interrupted: no process has it

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK_NAME
        self._fd, self._holder = -1, os.getpid()
        try:
            self._take()
        except KeyboardInterrupt:
            if self._fd < 0:  # it may have made the file, and not learned of it
                with contextlib.suppress(OutputExistsError, StoreBusyError):
                    self._take()
            self.release()
            raise

    def _take(self) -> None:
        while True:
            # Not inherited: a child process would hold the lock on after this one's end.
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if os.fstat(self._fd).st_size:
                self._close()
                raise OutputExistsError(
                    f"{self.path} is no lock of ours: it has content; move it away, or "
                    "choose another output"
                )
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as err:
                self._close()
                raise StoreBusyError(
                    f"{self.path.parent} is being written by another process; wait for it "
                    "to end"
                ) from err
            # the holder before may have removed the file between our open and our lock
            with contextlib.suppress(FileNotFoundError):
                if os.stat(self.path).st_ino == os.fstat(self._fd).st_ino:
                    return
            self._close()

    def __del__(self) -> None:
        """Give back what was interrupted before anybody had it."""
        if self.is_own:
            self.release()

    @property
    def is_own(self) -> bool:
        """Whether this process took it, and is no fork of the one that did."""
        return os.getpid() == self._holder

    def release(self) -> None:
        """Give the lock back and remove its file; a second call does nothing."""
        if self._fd < 0:
            return
        with contextlib.suppress(FileNotFoundError):
            # its folder may have been exchanged for another one with a lock of ours
            if not os.stat(self.path, follow_symlinks=False).st_size:
                remove_made(self.path)
        self._close()

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)


class Pin:
    """Keeps a generation's files while a reader uses them."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def release(self) -> None:
        """Let the generation go; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_pinned(folder: Path) -> bool:
    """Return whether any reader holds the generation in ``folder``."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Readers share the lock, so that it can be had alone only where there is none.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def is_locked(folder: Path) -> bool:
    """Return whether a writer holds the lock of a folder."""
    try:
        fd = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
