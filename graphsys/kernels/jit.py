"""The one way to compile a kernel: numba's decorator with our settings and a type.

A kernel is a plain function on arrays and scalars; allocation, checks and dispatch stay
outside. Kernels release the GIL, are cached on disk, and never use ``fastmath`` (the
auto-vectorized gather made such loops 2 to 2.6 times slower: shared baselines). numba, half
a second to import, is loaded by the first kernel that is called.

numba's cache looks only at the time and size of the file of the kernel itself, but kernels
contain what they call from other files. So the stamp of a cached kernel here is a digest of
what its file says, and all our kernels' files that it imports, and those they import: a
change compiles anew what it reaches and nothing else, and stale machine code never runs.
"""

import functools
import hashlib
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

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


_LOADING: Final = threading.RLock()


def _stamp_of(kernel: Callable[..., Any]) -> Callable[[], str]:
    return functools.partial(_stamp_of_file, kernel.__code__.co_filename)


class LazyKernel:
    """A kernel that is handed to numba when it is first wanted.

    It is called as numba's dispatcher would be, and has its attributes (``_numba_type_``
    too, so that it may stand in other kernels).

    Args:
        function: The kernel's text.
        has_entry: Whether Python may call it.
        options: For numba.njit, beside our own.
    """

    def __init__(
        self, function: Callable[..., Any], has_entry: bool, options: dict[str, Any]
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._has_entry = has_entry
        self._options = options

    @property
    def dispatcher(self) -> Any:
        """Numba's own object for the kernel."""
        with _LOADING:
            if "_made" not in self.__dict__:
                from graphsys.kernels.compiled import dispatcher_of

                self._made = dispatcher_of(
                    self.py_func,
                    _stamp_of(self.py_func),
                    self._options,
                    has_entry=self._has_entry,
                )
        return self._made

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the compiled kernel."""
        try:
            made = self._made
        except AttributeError:
            made = self.dispatcher
        return made(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the dispatcher."""
        if name == "_made" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    def __reduce__(self) -> Any:
        """Pickle the dispatcher, which knows how."""
        return self.dispatcher.__reduce__()


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

    Python calls machine code; other kernels take in the code as it was before it was
    optimized (see ``linking.py``). Each is made when it is wanted.

    Args:
        kernel: The function.
        options: For numba.njit, beside our own.
    """
    return cast("Kernel", LazyKernel(kernel, True, options))


def compile_pointed_kernel(kernel: Kernel, **options: Any) -> Kernel:
    """Compile like :func:`compile_kernel` what Python never calls: see ``pointers.py``.

    The code that takes tuples of arrays apart for a call from Python is as large as many a
    kernel.

    Args:
        kernel: The function.
        options: For numba.njit, beside our own.
    """
    return cast("Kernel", LazyKernel(kernel, False, options))


def compile_callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a C function, which code reaches by its address.

    Args:
        signature: Its types, as ``numba.cfunc`` takes them.
    """

    def compiled(kernel: Callable[..., Any]) -> Any:
        from graphsys.kernels.compiled import callback_of

        return callback_of(kernel, _stamp_of(kernel), signature)

    return compiled
