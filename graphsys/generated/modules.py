"""Generated modules in the user's cache directory, so that a second process starts fast.

numba keeps the machine code beside a module's file, and finds it again only for a real,
importable module. The file's name is a hash of its text, of the versions involved and of
our kernels' stamps; a directory that others may write to is not used.
"""

import contextlib
import functools
import hashlib
import importlib.util
import os
import stat
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from graphsys.core import ownership
from graphsys.core.user_cache import user_cache

_PREFIX = "graphsys_program_"


def cache_folder() -> Path:
    """Return the folder of generated modules, mode 0700, made when missing.

    It lies in the user's cache; it is a private temporary folder where that cannot be
    written, or somebody else may write there.
    """
    return user_cache("programs") or _private_folder()


def load_module(source: str) -> ModuleType:
    """Import generated source as a module; equal source gives the same module.

    Where no folder can be written, the module is in memory only: its kernels are compiled
    without a cache, which :mod:`graphsys.kernels.jit` says.
    """
    name = _PREFIX + _digest(source)
    if name in sys.modules:
        return sys.modules[name]
    path = _file_of(name, source)
    if path is None:
        module = ModuleType(name)
        sys.modules[name] = module
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)
        return module
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has a spec
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba's cache imports it by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _file_of(name: str, source: str) -> Path | None:
    """Return the file that holds the text, or None where none can be written."""
    try:
        path = cache_folder() / f"{name}.py"
        if not _holds(path, source):
            _write(path, source)
    except OSError:
        return None
    return path


def _digest(source: str) -> str:
    import llvmlite
    import numba

    from graphsys.kernels.jit import stamp_of

    versions = (numba.__version__, llvmlite.__version__, sys.version_info[:2])
    text = f"{versions}\n{stamp_of(source)}\n{source}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _holds(path: Path, source: str) -> bool:
    """Whether the file is ours and holds just that text."""
    try:
        info = path.lstat()
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid():
            return False
        return path.read_text() == source
    except OSError:
        return False


def _write(path: Path, source: str) -> None:
    draft = ownership.draft_of(path)
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(source)
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            ownership.remove_draft(draft)
        raise


@functools.cache
def _private() -> "tempfile.TemporaryDirectory[str]":
    """Return a folder that goes with the process."""
    return tempfile.TemporaryDirectory(
        prefix="graphsys-programs-", ignore_cleanup_errors=True
    )


def _private_folder() -> Path:
    return Path(_private().name)
