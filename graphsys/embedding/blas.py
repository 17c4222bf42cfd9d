"""One BLAS thread per worker: the workers themselves are the parallelism."""

import ctypes
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SUFFIXES = ("", "64_")
_PREFIXES = ("scipy_openblas", "openblas")


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep every OpenBLAS of this process to one thread inside the block.

    numba's kernels call SciPy's, which is loaded here if it was not yet. Other libraries
    are left alone; set their environment variables instead.
    """
    importlib.import_module("scipy.linalg.cython_blas")
    before = []
    for path in _loaded_libraries():
        library = ctypes.CDLL(path)
        for prefix in _PREFIXES:
            for suffix in _SUFFIXES:
                get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                put = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                if get is not None and put is not None:
                    before.append((put, get()))
                    put(1)
    try:
        yield
    finally:
        for put, threads in before:
            put(threads)


def _loaded_libraries() -> list[str]:
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[5] for line in lines if "openblas" in line.lower()}
    return sorted(path for path in paths if Path(path).is_file())
