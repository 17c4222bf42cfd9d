"""The one way to compile a kernel: numba's decorator with our settings and a type.

A kernel is a plain function on arrays and scalars; allocation, checks and dispatch stay
outside. Kernels release the GIL, are cached on disk, and never use ``fastmath`` (the
auto-vectorised gather made such loops 2 to 2.6 times slower: shared baselines).

numba's cache looks only at the file of the kernel itself, but kernels contain what they
call from other files. So the stamp of each cached kernel also covers all our kernels'
files: a change in any of them compiles all anew, and never runs stale machine code.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def _stamp_of_all_kernels() -> tuple[tuple[str, int, int], ...]:
    files = sorted(Path(__file__).parent.rglob("*.py"))
    stats = [(path.name, path.stat()) for path in files]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


STAMP = _stamp_of_all_kernels()
"""Names, times and sizes of all our kernels' files."""


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
    compiler = numba.njit(cache=True, nogil=True, error_model="numpy", **options)
    dispatcher = compiler(kernel)
    file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    # private to numba; a test notices if it goes
    if file is not None and hasattr(file, "_source_stamp"):
        file._source_stamp = (file._source_stamp, STAMP)
    return cast("Kernel", dispatcher)
