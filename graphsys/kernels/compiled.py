"""What numba is asked for a kernel: machine code for Python, code for other kernels."""

import contextlib
import functools
import warnings
from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.sigutils import normalize_signature

from graphsys.kernels.compile_lock import CompileLock
from graphsys.kernels.kernel_log import compiles_kernel
from graphsys.kernels.linking import ForKernels, SelfContained


def dispatcher_of(
    kernel: Callable[..., Any],
    stamp: Callable[[], str],
    options: dict[str, Any],
    *,
    has_entry: bool,
) -> Any:
    """Return numba's object for a kernel: what compiles it for the types it meets.

    Args:
        kernel: The function.
        stamp: Tells what must be the same for compiled code to be used again.
        options: For numba.njit, beside our own.
        has_entry: Whether Python may call it.
    """
    entry = {} if has_entry else {"no_cpython_wrapper": True}
    made = _compiled(kernel, stamp, SelfContained, options | entry)
    if not isinstance(made, Dispatcher):
        return made  # numba compiles nothing: NUMBA_DISABLE_JIT
    if not has_entry:
        _refuse_calls(made, kernel)
    _serve_kernels(made, kernel, stamp, options)
    return made


def callback_of(
    kernel: Callable[..., Any], stamp: Callable[[], str], signature: Any
) -> Any:
    """Return a compiled C function.

    Args:
        kernel: The function.
        stamp: Tells what must be the same for compiled code to be used again.
        signature: Its types, as ``numba.cfunc`` takes them.
    """
    made = CFunc(kernel, normalize_signature(signature), {}, {}, SelfContained)
    made = _with_cache(made, kernel, stamp, "")
    made.compile()
    return made


def _compiled(
    kernel: Callable[..., Any],
    stamp: Callable[[], str],
    compiler: type[SelfContained],
    options: Any,
) -> Any:
    settings = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    made = numba.njit(**settings, pipeline_class=compiler, **options)(kernel)
    return _with_cache(made, kernel, stamp, compiler.cache_suffix)


def _refuse_calls(made: Any, kernel: Callable[..., Any]) -> None:
    """Say so where Python calls what has no entry: numba would jump to address 0."""

    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError(f"{kernel.__name__} has no entry from Python; a kernel may call it")

    # private to numba; a test notices if they go
    made._insert, made._compile_for_args = _ignore, refuse


def _ignore(*_: Any, **__: Any) -> None:
    """Do not offer what was compiled to calls from Python."""


def _serve_kernels(
    made: Any, kernel: Callable[..., Any], stamp: Callable[[], str], options: dict[str, Any]
) -> None:
    """Have numba ask a second compiler where another kernel calls this one."""

    @functools.cache
    def inner() -> Any:
        options_of = {**options, "no_cpython_wrapper": True}
        second = _compiled(kernel, stamp, ForKernels, options_of)
        second._insert = _ignore  # Python calls the first
        return second

    def get_call_template(args: Any, kws: Any) -> Any:
        args = tuple(map(_any_integer, args))
        kws = {name: _any_integer(kind) for name, kind in kws.items()}
        return inner().get_call_template(args, kws)

    made.get_call_template = get_call_template
    made.get_overload = lambda sig: inner().get_overload(sig)


def _any_integer(kind: Any) -> Any:
    """Return the type of an argument, that of a constant as of any other integer.

    numba would compile once more for a 0 that stands in a call.
    """
    return types.int64 if isinstance(kind, types.IntegerLiteral) else kind


def _with_cache(
    made: Any, kernel: Callable[..., Any], stamp: Callable[[], str], suffix: str
) -> Any:
    if hasattr(made, "_cache"):  # private to numba; a test notices if it goes
        try:
            made._cache = _KernelCache(kernel, stamp, suffix)
        except (RuntimeError, OSError):  # no folder that can be written
            _tell_uncached()
        else:
            made.compile = _unlocking(made._cache.lock, made.compile)
    return made


def _unlocking(lock: CompileLock, compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return what compiles, and then gives back the lock that a miss of the cache took."""

    def compile_once(*signature: Any) -> Any:
        with global_compiler_lock:
            try:
                return compiled(*signature)
            finally:
                lock.release()

    return compile_once


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache, with our stamp; one that cannot be used only costs time."""

    def __init__(
        self, kernel: Callable[..., Any], stamp: Callable[[], str], suffix: str
    ) -> None:
        super().__init__(kernel)
        self._stamp = stamp
        self._cache_file = self._file(suffix)
        self.lock = CompileLock(self._cache_path, self._impl.filename_base + suffix)

    def _file(self, suffix: str) -> IndexDataCacheFile:
        return IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base + suffix,
            source_stamp=self._stamp(),
        )

    def has_code(self) -> bool:
        """Whether there is code of the kernel, for Python or for other kernels."""
        for compiler in (SelfContained, ForKernels):
            with contextlib.suppress(Exception):  # unpickling what is damaged
                if self._file(compiler.cache_suffix)._load_index():
                    return True
        return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel compiled before, or None, and then with the lock."""
        found = self._load(sig, target_context)
        if found is None:
            compiles_kernel()
            self.lock.acquire()
            found = self._load(sig, target_context)  # what another process made meanwhile
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            pass
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
