"""Readers of a run pin its checkpoint; files of one that was replaced go when nobody reads.

A reader holds a shared ``flock`` on the ``run.json`` that it read, the very file: the next
one replaces it by another. It holds one on the run's folder too. A training keeps what it
replaces open, and removes files of a checkpoint when no lock is held on its ``run.json``.
Where a training ends before its readers do, the last of those removes what is left.
"""

import contextlib
import fcntl
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from graphsys.core import ownership
from graphsys.core.errors import GraphsysError
from graphsys.core.plain_files import parse_json, read_json
from graphsys.storage.folder_kinds import RUN_NAME, is_run_part
from graphsys.storage.locks import LOCK_NAME, WriterLock, is_locked, is_pinned

T = TypeVar("T")
_APART = ("checkpoints", "indexes", "tensorboard")  # folders that are no checkpoint's
_HEADS = (RUN_NAME, "config.toml", LOCK_NAME, ".replaces", "training.jsonl")


class RunPin:
    """Keeps the files of a run's current checkpoint while a reader uses them.

    Raises:
        FileNotFoundError: There is no run.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        self._folder = os.open(path, flags | os.O_DIRECTORY)
        try:
            fcntl.flock(self._folder, fcntl.LOCK_SH)
            while True:
                self._head = os.open(path / RUN_NAME, flags)
                fcntl.flock(self._head, fcntl.LOCK_SH)
                if self.is_current():  # else it was replaced before the lock held it
                    return
                os.close(self._head)
        except BaseException:
            os.close(self._folder)
            raise

    def is_current(self) -> bool:
        """Return whether the checkpoint is the run's last one still."""
        found = os.fstat(self._head)
        with contextlib.suppress(OSError):
            now = os.stat(self._path / RUN_NAME)
            return (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino)
        return False

    def release(self) -> None:
        """Let the checkpoint go; the last reader removes what a newer one replaced.

        Never raises; a second call does nothing.
        """
        if self._head < 0:
            return
        os.close(self._head)
        os.close(self._folder)
        self._head = self._folder = -1
        remove_left(self._path)


def pinned(path: Path, read: Callable[[], T], owner: object = None) -> tuple[T, RunPin]:
    """Read what ``run.json`` says, and pin that very checkpoint.

    Args:
        path: The run's folder.
        read: Reads it; may be called again, where a training replaced it meanwhile.
        owner: Whoever uses the files; the pin is released when it goes.

    Returns:
        What was read, and the pin.
    """
    while True:
        try:
            pin = RunPin(path)
        except OSError:  # no run, or none that can be opened
            read()  # says what is wrong
            raise
        try:
            found = read()
        except BaseException:
            was_current = pin.is_current()
            pin.release()
            if was_current:
                raise
            continue
        if pin.is_current():
            if owner is not None:
                weakref.finalize(owner, pin.release)
            return found, pin
        pin.release()


def remove_left(path: Path) -> None:
    """Remove what a training left to its readers, if nobody reads or trains the run.

    Never raises: what stays goes with the next training.
    """
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, GraphsysError):
        if not ownership.claimed_names(path) or is_locked(path) or is_pinned(path):
            return
        lock = WriterLock(path)
        try:
            names = ownership.claimed_names(path) - {*read_json(path / RUN_NAME)["files"]}
            ownership.remove_listed(path, filter(is_run_part, names))
            ownership.unclaim(path)
        finally:
            lock.release()


def remove_unlisted(path: Path, files: Iterable[str]) -> None:
    """Remove the files of a run that its checkpoint does not list, if nobody reads it.

    Args:
        path: The run's folder, whose trainer alone may call this.
        files: What the checkpoint lists.
    """
    if path.is_dir() and not is_pinned(path):
        ownership.remove_listed(path, [*_unlisted(path, set(files))])


def _unlisted(path: Path, files: set[str]) -> Iterator[str]:
    for name in ownership.files_below(path):
        folder, _, last = name.partition("/")
        is_kept = folder in _APART if last else name in _HEADS
        if name not in files and not is_kept and is_run_part(name):
            yield name


# ---- of a training


@dataclass(slots=True)
class _Replaced:
    """A checkpoint that was replaced: its run.json, held open, and its files."""

    head: int
    files: set[str]


@dataclass(slots=True)
class _Waiting:
    """What a training of this process has to remove when nobody reads it any more.

    Workers may be threads of one process: who holds the lock removes.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    checkpoints: list[_Replaced] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


_waiting: dict[str, _Waiting] = {}


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[None]:
    """Remember the checkpoint that the block replaces, for :func:`remove_replaced`."""
    before: _Replaced | None = None
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        head = os.open(path / RUN_NAME, os.O_RDONLY | os.O_CLOEXEC)
        before = _Replaced(head, set())
        with open(head, "rb", closefd=False) as stream:
            said: Any = parse_json(stream.read())
        before.files = set(map(str, said["files"]))
    try:
        yield
    except BaseException:
        if before is not None:
            os.close(before.head)
        raise
    if before is not None:
        _of(path).checkpoints.append(before)


def remove_replaced(path: Path, names: Iterable[str]) -> None:
    """Remove files that the last checkpoint does not list, unless a reader has pinned them.

    Those that stay are remembered: the next call, or :func:`forget`, removes them.

    Args:
        path: The run's folder.
        names: The files.

    Raises:
        OSError: One cannot be removed.
    """
    waiting = _of(path)
    with waiting.lock:
        waiting.names.update(names)
        for checkpoint in list(waiting.checkpoints):
            if not _is_read(checkpoint.head):
                waiting.checkpoints.remove(checkpoint)  # first: Ctrl-C may come in between
                os.close(checkpoint.head)
        held = {name for it in waiting.checkpoints for name in it.files}
        removed = waiting.names - held
        ownership.remove_listed(path, removed)
        waiting.names -= removed


def is_read(path: Path) -> bool:
    """Return whether a reader has pinned a checkpoint that this process replaced."""
    waiting = _of(path)
    with waiting.lock:
        return any(_is_read(checkpoint.head) for checkpoint in waiting.checkpoints)


def forget(path: Path) -> None:
    """End a training, in a folder that it holds; the last reader removes what it reads.

    Never raises.
    """
    with contextlib.suppress(OSError):
        remove_replaced(path, ())
    waiting = _waiting.pop(os.path.realpath(path), _Waiting())
    for checkpoint in waiting.checkpoints:
        os.close(checkpoint.head)
    if waiting.names and (path / RUN_NAME).exists():
        with contextlib.suppress(OSError):
            ownership.claim(path, waiting.names)


def _of(path: Path) -> _Waiting:
    return _waiting.setdefault(os.path.realpath(path), _Waiting())


def _is_read(head: int) -> bool:
    try:
        fcntl.flock(head, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.flock(head, fcntl.LOCK_UN)
    return False
