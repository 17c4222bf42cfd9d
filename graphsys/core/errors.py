"""The error tree: every error a user can cause, each also a builtin.

A message says what was found, what was expected, where, and what to do; it starts in
lower case, has no full stop and fits three lines. The command line prints it behind
``error:`` and exits with ``exit_code``.
"""

import difflib
import errno
import os
import sys
import traceback
from collections.abc import Iterable
from typing import Final


class GraphsysError(Exception):
    """Base of all errors that graphsys raises on purpose."""

    exit_code = 2


class InputError(GraphsysError, ValueError):
    """Source data cannot be read; the message starts with the file and the line."""

    def __init__(self, message: str) -> None:
        # names out of a file may hold what ends a line
        super().__init__(" ".join(message.splitlines()))


class InvalidGraphError(GraphsysError, ValueError):
    """Arrays or tables that do not describe a graph."""


class ConfigError(GraphsysError, ValueError):
    """A setting that is missing, of the wrong type or out of range."""


class UnknownNameError(GraphsysError, LookupError):
    """A name that is not registered, or a node or relation that the graph lacks."""


class CorruptStoreError(GraphsysError, OSError):
    """A store whose files are missing, cut short, altered or of a newer format."""


class OutputExistsError(GraphsysError, FileExistsError):
    """An output that exists and was not to be overwritten."""


class StoreBusyError(GraphsysError, OSError):
    """A second writer met the first one's lock."""


class StorageFullError(GraphsysError, OSError):
    """The target cannot be written: no space left, read-only, or no permission."""


_MORE_SPACE: Final = "free some space or choose another output"
_ELSEWHERE: Final = "choose an output where you may write"
_WRITE_REMEDIES: Final = {
    errno.ENOSPC: _MORE_SPACE,
    errno.EDQUOT: _MORE_SPACE,
    errno.EFBIG: "allow larger files, `ulimit -f unlimited`, or choose another output",
    errno.EROFS: _ELSEWHERE,
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
    errno.EIO: "the disk or its connection is failing",
}


def is_write_refused(err: OSError) -> bool:
    """Whether the system refused to write, for a reason that has nothing to do with us."""
    return err.errno in _WRITE_REMEDIES


def why_not_written(err: OSError) -> str:
    """Return the system's reason for a refusal to write, and what to do."""
    assert err.errno is not None  # is_write_refused() was asked
    return f"{os.strerror(err.errno).lower()}; {_WRITE_REMEDIES[err.errno]}"


class BudgetError(GraphsysError, MemoryError):
    """A memory budget too small for the work; the message names one that works.

    Attributes:
        smallest: The same in bytes, where it is known.
    """

    smallest: int = 0


class CompileError(GraphsysError, TypeError):
    """A program that uses what cannot be compiled."""


class MissingDependencyError(GraphsysError, ImportError):
    """An optional package that is not installed."""


class ClusterError(GraphsysError, OSError):
    """A cluster that does not answer, or whose workers are lost again and again."""

    exit_code = 1


class WorkerLostError(ClusterError):
    """A worker that another can no longer reach: it died, or the network between them."""


class ObjectStoreError(GraphsysError, OSError):
    """An object store that does not answer, or fails however often it is asked."""

    exit_code = 1


class NotConvergedError(GraphsysError, ArithmeticError):
    """An iteration that was asked to converge and did not."""

    exit_code = 1


class NotConvergedWarning(UserWarning):
    """A result that a limit cut short, of an iteration that need not converge."""


class TrainingFailedError(GraphsysError, ArithmeticError):
    """A training run that cannot go on, for example after a NaN loss."""

    exit_code = 1


def cut_list(items: Iterable[object], limit: int = 5) -> str:
    """Join items with commas, at most ``limit`` of them, and count the rest."""
    names = [str(item) for item in items]
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def unknown_name(
    kind: str, name: str, known: Iterable[str], group: str | None = None
) -> UnknownNameError:
    """Build the error for a name that is not among the known ones, with the nearest.

    Args:
        kind: Of what it is a name.
        name: The name.
        known: Those that there are.
        group: Entry points of packages that bring more; None where there are no others.
    """
    names = sorted(" ".join(it.split()) for it in known)  # a message is one line
    message = f"unknown {kind} {name!r}; known: {cut_list(names, 30) or 'none'}"
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        message += f"; did you mean {close[0]!r}?"
    elif group:
        message += f"; install the package that brings it (entry point of {group})"
    return UnknownNameError(message)


MODULE_PREFIX: Final = "graphsys_user_"
"""What names of modules begin with that were loaded from a user's file."""


def user_place(err: BaseException) -> str | None:
    """Return ``file:line`` of the innermost frame in a user's program, or None."""
    files = {
        getattr(module, "__file__", None)
        for name, module in sys.modules.items()
        if name.startswith(MODULE_PREFIX)
    }
    if not files:
        return None
    frames = traceback.extract_tb(err.__traceback__)
    places = [f"{it.filename}:{it.lineno}" for it in frames if it.filename in files]
    return places[-1] if places else None


def told_with_place(err: BaseException, place: str) -> str:
    """Return an error of a user's code as one line, behind its place."""
    text = " ".join(str(err).split())
    if type(err).__module__.startswith("graphsys."):
        return text if text.startswith(place) else f"{place}: {text}"
    return f"{place}: {type(err).__name__}{': ' * bool(text)}{text}"
