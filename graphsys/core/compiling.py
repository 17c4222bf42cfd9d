"""How long numba compiles, or loads what it compiled before; and Python's parser.

A module holds kernels for every case; what a plan charges for compiling is those that the
work will call and that no cache holds. Which ones a work has called is kept in the user's
cache by the work's name.
"""

import ast
import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from graphsys.core.events import ended, is_observing, is_recording
from graphsys.core.user_cache import user_cache

PARSER: Final = threading.Lock()
"""Held by whoever parses Python, or has NumPy do so: in CPython 3.11 two threads that parse
can end in a SystemError ("AST constructor recursion depth mismatch", cpython#106905)."""


def parse(text: str) -> ast.Module:
    """Parse statements, by one thread at a time; see :func:`ast.parse`.

    Raises:
        SyntaxError: it is none.
    """
    with PARSER:
        return ast.parse(text)


class CompileWatch:
    """Sums the time in which some thread compiles, or loads what was compiled before.

    Threads that wait for each other's compiling count once; what observers compile is not
    the work's.

    Args:
        emits: Whether to emit a span ``compile`` for each, with how many kernels were made
            in it (``compiled``); the others came from the cache.

    Attributes:
        seconds: So far.
    """

    def __init__(self, *, emits: bool = False) -> None:
        self.seconds = 0.0
        self._emits = emits
        self._lock = threading.Lock()
        self._depth = 0
        self._began = 0
        self._compiled = 0
        self._installed = ExitStack()

    def __enter__(self) -> "CompileWatch":
        from numba.core import event
        from numba.core.registry import cpu_target

        _ = cpu_target.target_context  # made once, in .2 s that are no kernel's
        own = {"on_start": self._start, "on_end": self._end}
        listener = type("Listener", (event.Listener,), own)()
        # held while code is made and while it comes from the cache
        self._installed.enter_context(
            event.install_listener("numba:compiler_lock", listener)
        )
        own = {"on_start": self._count, "on_end": lambda *_: None}
        counter = type("Counter", (event.Listener,), own)()
        # only what no cache had
        self._installed.enter_context(event.install_listener("numba:compile", counter))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._installed.close()

    def _start(self, event: Any) -> None:
        if is_observing():
            return
        with self._lock:
            if self._depth == 0:
                self._began = time.perf_counter_ns()
            self._depth += 1

    def _count(self, event: Any) -> None:
        if not is_observing():
            with self._lock:
                self._compiled += 1

    def _end(self, event: Any) -> None:
        if is_observing():
            return
        with self._lock:
            self._depth -= 1
            if self._depth:  # inside another
                return
            began, took = self._began, time.perf_counter_ns() - self._began
            self.seconds += took / 1e9
            compiled, self._compiled = self._compiled, 0
        if self._emits:
            ended("compile", began, took, compiled=compiled)


FIRST_KERNEL_BYTES = 8 << 20
"""What compiling takes once: the compiler's own tables."""
KERNEL_BYTES = 1 << 20
"""What compiling one kernel more takes, and the process keeps."""
_noted: dict[tuple[str, str | None], frozenset[str]] = {}
"""What this process noted last, by the work and the cache."""
_cached: set[tuple[str, str | None]] = set()
"""Works none of whose kernels are to be compiled: that stays so in a process."""


def compile_bytes(kernels: Iterable[Any], used: Collection[str] = ()) -> int:
    """Return the memory that compiling takes, 0 where machine code lies in the cache.

    Args:
        kernels: Kernels of numba's; anything else among them is passed over, and so are
            those that are part of what calls them.
        used: Names of those that will be called, as ``module.kernel``; with none of them
            known, all may be.
    """
    named = {name_of(kernel): kernel for kernel in kernels if _is_whole(kernel)}
    wanted = [name for name in named if not used or name in used]
    num_missing = sum(not is_compiled(named[name]) for name in wanted)
    return FIRST_KERNEL_BYTES + num_missing * KERNEL_BYTES if num_missing else 0


def _is_whole(kernel: Any) -> bool:
    if not hasattr(kernel, "overloads"):
        return False
    return not getattr(kernel, "targetoptions", {}).get("forceinline")


def name_of(kernel: Any) -> str:
    """Return a kernel's name as ``module.kernel``."""
    return f"{kernel.__module__}.{kernel.__name__}"


def is_compiled(kernel: Any) -> bool:
    """Whether a kernel's code, for Python or for other kernels, is in memory or cached."""
    if kernel.overloads:
        return True
    cache = getattr(kernel, "_cache", None)
    has_code = getattr(cache, "has_code", None)
    return has_code is not None and bool(has_code())


def compile_first(kernel: Any, *arguments: Any) -> None:
    """Compile a kernel, or load it, and do not call it.

    So before several threads call one in which they wait for each other: one of them that
    was interrupted while it compiles would never come.

    Args:
        kernel: A kernel of numba's.
        arguments: What it will be called with.
    """
    import numba

    kernel.compile(tuple(numba.typeof(argument) for argument in arguments))


def compile_ahead(kernel: Any, *arguments: Any) -> None:
    """Compile a kernel, or load it, before its first call is timed; emit the span.

    Args:
        kernel: A kernel of numba's; anything else is left alone.
        arguments: What it will be called with.
    """
    # finding the types of arguments takes as long as a small kernel: only for the first
    if not is_recording() or getattr(kernel, "overloads", True):
        return
    began = time.perf_counter_ns()
    compile_first(kernel, *arguments)
    if not is_observing():  # how many were made, the watch tells
        ended("compile", began, time.perf_counter_ns() - began)


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
            known = remember_kernels(self._work, called)
            _noted[place] = called
            if not compile_bytes(self._kernels(), known):
                _cached.add(place)

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


def remember_kernels(work: str, names: Collection[str]) -> frozenset[str]:
    """Add to what is known of a work; where that cannot be written, it is not.

    Args:
        work: The work's name, as good as a file's.
        names: Names as ``module.kernel``.

    Returns:
        All that is known of it now; nothing where there is no folder for it.
    """
    file, known = _file_of(work), used_kernels(work)
    if file is None:
        return frozenset()
    new = sorted(frozenset(names) - known)
    if not new:
        return known
    with contextlib.suppress(OSError):  # it is a cache: nothing depends on it
        out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(out, "".join(f"{name}\n" for name in new).encode("ascii"))
        finally:
            os.close(out)
    return known.union(names)


def _file_of(work: str) -> Path | None:
    folder = user_cache("kernels")
    return None if folder is None else folder / f"{work}.txt"
