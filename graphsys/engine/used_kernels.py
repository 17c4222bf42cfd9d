"""Which kernels a work has called, kept in the user's cache by the work's name.

A module holds kernels for every case; what a plan charges for compiling is those that the
work will call and that no cache holds.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from graphsys.core.compiling import compile_bytes, name_of
from graphsys.core.user_cache import user_cache

_noted: dict[tuple[str, str | None], frozenset[str]] = {}
"""What this process noted last, by the work and the cache."""
_cached: set[tuple[str, str | None]] = set()
"""Works none of whose kernels had to be compiled: that stays so in a process."""


class WorkKernels:
    """The kernels that a work may call, and which of them its runs have called.

    Args:
        work: The work's name, as good as a file's.
        kernels: Returns the kernels; anything else among them is passed over.
    """

    def __init__(self, work: str, kernels: Callable[[], Iterable[Any]]) -> None:
        self._work, self._kernels = work, kernels

    def compile_bytes(self) -> int:
        """Return what compiling those that are missing from the cache takes."""
        if self._place() in _cached:
            return 0
        found = compile_bytes(self._kernels(), used_kernels(self._work))
        if not found:
            _cached.add(self._place())
        return found

    def remember(self) -> None:
        """Note which of them this process has called; the same ones are noted once."""
        called = frozenset(
            name_of(it) for it in self._kernels() if getattr(it, "overloads", None)
        )
        place = self._place()
        if _noted.get(place) != called:
            remember_kernels(self._work, called)
            _noted[place] = called

    def _place(self) -> tuple[str, str | None]:
        return self._work, os.environ.get("GRAPHSYS_CACHE")


def used_kernels(work: str) -> frozenset[str]:
    """Return the names of the kernels that runs of a work left compiled.

    Args:
        work: The work's name, as good as a file's.

    Returns:
        Names as ``module.kernel``; none where no run is known.
    """
    file, text = _file_of(work), ""
    if file is not None:
        with contextlib.suppress(OSError, ValueError):
            text = file.read_text(encoding="ascii")
    return frozenset(text.split())


def remember_kernels(work: str, names: Iterable[str]) -> None:
    """Add to what is known of a work; where that cannot be written, it is not.

    Args:
        work: The work's name, as good as a file's.
        names: Names as ``module.kernel``.
    """
    file, new = _file_of(work), sorted(set(names) - used_kernels(work))
    if file is None or not new:
        return
    with contextlib.suppress(OSError):  # it is a cache: nothing depends on it
        out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(out, "".join(f"{name}\n" for name in new).encode("ascii"))
        finally:
            os.close(out)


def _file_of(work: str) -> Path | None:
    folder = user_cache("kernels")
    return None if folder is None else folder / f"{work}.txt"
