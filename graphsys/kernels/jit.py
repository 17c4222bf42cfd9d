"""The one way to compile a kernel: numba's decorator with our settings and a type.

A kernel is a plain function on arrays and scalars; allocation, checks and dispatch stay
outside. Kernels release the GIL, are cached on disk, and never use ``fastmath`` (the
auto-vectorized gather made such loops 2 to 2.6 times slower: shared baselines).

numba's cache looks only at the time and size of the file of the kernel itself, but kernels
contain what they call from other files. So the stamp of a cached kernel here is a digest of
what its file says, and all our kernels' files that it imports, and those they import: a
change compiles anew what it reaches and nothing else, and stale machine code never runs.
"""

import contextlib
import functools
import hashlib
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature

from graphsys.kernels.linking import SelfContained

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_FOLDER: Final = Path(__file__).resolve().parent
_PACKAGE: Final = __name__.rpartition(".")[0]
_IMPORT: Final = re.compile(
    rf"^\s*(?:from|import)\s+({re.escape(_PACKAGE)}[\w.]*)"
    r"(?:\s+import\s+([\w ,]+|\([^)]*\)))?",
    re.MULTILINE,
)


def stamp_of(source: str) -> str:
    """Return a digest of a module's text and of all our kernels' files that it reaches.

    Args:
        source: The text.
    """
    texts, found, waiting = [source], set[Path](), {Path(__file__).resolve()}
    waiting |= _imported(source)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting |= _imports_of(path)
    texts += [f"{path.name}\n{_text_of(path)}" for path in sorted(found)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@functools.cache
def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _imports_of(path: Path) -> frozenset[Path]:
    return frozenset(_imported(_text_of(path)))


def _imported(source: str) -> set[Path]:
    """Return the files of our kernels that a text imports."""
    paths = set()
    for module, names in _IMPORT.findall(source):
        inner = re.findall(r"\w+", names)
        for name in (module, *(f"{module}.{it}" for it in inner)):
            path = _FOLDER.joinpath(*name[len(_PACKAGE) + 1 :].split(".")).with_suffix(
                ".py"
            )
            if path.is_file():
                paths.add(path)
    return paths


@functools.cache
def _stamp_of_file(file: str) -> str:
    return stamp_of(Path(file).read_text(encoding="utf-8"))


def jit(kernel: Kernel) -> Kernel:
    """Compile a kernel for the CPU: cached, without the GIL, C's rules for division."""
    return compile_kernel(kernel)


def inline_jit(kernel: Kernel) -> Kernel:
    """Compile a small device-style function that kernels call inside their loops."""
    return compile_kernel(kernel, forceinline=True)


def lean_jit(kernel: Kernel) -> Kernel:
    """Compile a kernel that neither allocates nor returns arrays, without counting.

    numba counts references of arrays that are sliced, unpacked or taken from a tuple, in
    the innermost loop too: two atomics each time, which made such loops up to 5 times
    slower. Here it cannot; what would need it does not compile.
    """
    return compile_kernel(kernel, _nrt=False)


def lean_inline_jit(kernel: Kernel) -> Kernel:
    """Compile like :func:`lean_jit` what kernels call inside their loops."""
    return compile_kernel(kernel, forceinline=True, _nrt=False)


def compile_kernel(kernel: Kernel, **options: Any) -> Kernel:
    """Compile a kernel with further options of numba's; for decorators like those above.

    Args:
        kernel: The function.
        options: For numba.njit, beside our own.
    """
    settings = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    compiler = numba.njit(**settings, pipeline_class=SelfContained, **options)
    return cast("Kernel", _with_cache(compiler(kernel), kernel))


def compile_callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a C function, which code reaches by its address.

    Args:
        signature: Its types, as ``numba.cfunc`` takes them.
    """

    def compiled(kernel: Callable[..., Any]) -> Any:
        types = normalize_signature(signature)
        made = _with_cache(CFunc(kernel, types, {}, {}, SelfContained), kernel)
        made.compile()
        return made

    return compiled


def _with_cache(made: Any, kernel: Callable[..., Any]) -> Any:
    if hasattr(made, "_cache"):  # private to numba; a test notices if it goes
        try:
            made._cache = _KernelCache(kernel)
        except (RuntimeError, OSError):  # no folder that can be written
            _tell_uncached()
    return made


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache, with our stamp; one that cannot be used only costs time."""

    def __init__(self, kernel: Callable[..., Any]) -> None:
        super().__init__(kernel)
        self._cache_file._source_stamp = _stamp_of_file(kernel.__code__.co_filename)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel compiled before, or None."""
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None
        except Exception:  # unpickling what is damaged may raise anything
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel for other processes."""
        try:
            super().save_overload(sig, data)
        except OSError:
            _tell_uncached()


@functools.cache
def _tell_uncached() -> None:
    """Say once that kernels stay with this process."""
    warnings.warn(
        "no folder for compiled kernels can be written, they are compiled anew by every "
        "process; set NUMBA_CACHE_DIR to a folder that can be written",
        stacklevel=2,
    )


def compile_inner_kernel(kernel: Kernel, **options: Any) -> Kernel:
    """Compile like :func:`compile_kernel`, for other kernels only: Python cannot call it.

    The code that takes tuples of arrays apart for a call from Python is as large as many a
    kernel, and compiled for every kernel that numba calls from another.

    Args:
        kernel: The function.
        options: For numba.njit, beside our own.
    """
    made: Any = compile_kernel(kernel, no_cpython_wrapper=True, **options)

    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError(f"{kernel.__name__} has no entry from Python; a kernel may call it")

    # private to numba, where a call would jump to address 0; a test notices if they go
    made._insert, made._compile_for_args = _ignore, refuse
    return cast("Kernel", made)


def _ignore(*_: Any, **__: Any) -> None:
    """Do not offer what was compiled to calls from Python."""
