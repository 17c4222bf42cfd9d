"""NVIDIA's compiler library, which numba-cuda loads: where it lies on this machine.

numba-cuda looks in Python packages, in ``$CUDA_HOME``, and beside nvrtc. That it is not
there comes out when the first kernel is compiled, with a traceback.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from graphsys.core.errors import MissingDependencyError

VERSION: Final = "13.0"
"""Of CUDA, as the extra ``gpu`` pins it: older drivers refuse what newer ones compile."""
_LOCAL: Final = Path("/usr/local")
_VARIABLES: Final = ("CUDA_PATH", "CUDA_HOME")


def require_compiler() -> Path:
    """Have numba-cuda find libnvvm and libdevice; ``$CUDA_HOME`` may be set for it.

    Returns:
        The path of libnvvm.

    Raises:
        MissingDependencyError: it is nowhere; the message says where was looked.
    """
    found = _loaded()
    if found is not None:
        return found
    given = {name: os.environ.get(name) for name in _VARIABLES}
    looked = []
    for root in toolkits():
        os.environ.update(dict.fromkeys(_VARIABLES, str(root)))
        found = _loaded()
        if found is not None:
            return found
        looked.append(str(root))
    for name, value in given.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    where = f"; looked into {', '.join(looked)}" if looked else ""
    raise MissingDependencyError(
        "device='cuda' needs libnvvm and libdevice of the CUDA toolkit, which are neither "
        "in Python's packages nor in $CUDA_HOME, beside nvcc, below /usr/local or known to "
        f"ldconfig{where}: pip install 'graphsys[gpu]', or set CUDA_HOME to the folder of "
        f"a CUDA {VERSION} toolkit"
    )


def toolkits() -> Iterator[Path]:
    """Yield folders of this machine's CUDA toolkits with a compiler, likely ones first."""
    seen = set()
    for root in _places():
        has_compiler = any((root / "nvvm").glob("lib*/libnvvm.so*"))
        if has_compiler and (real := root.resolve()) not in seen:
            seen.add(real)
            yield root


def _places() -> Iterator[Path]:
    for name in reversed(_VARIABLES):
        if os.environ.get(name):
            yield Path(os.environ[name])
    nvcc = shutil.which("nvcc")
    if nvcc:
        yield Path(nvcc).resolve().parents[1]
    yield _LOCAL / f"cuda-{VERSION}"
    yield _LOCAL / "cuda"
    yield from sorted(_LOCAL.glob("cuda-*"), reverse=True)
    for library in _known_to_ldconfig():
        yield from library.resolve().parents


def _known_to_ldconfig() -> list[Path]:
    """Return where the linker knows CUDA's libraries."""
    command = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        done = subprocess.run(
            [command, "-p"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    found = re.findall(r"lib(?:nvvm|nvrtc|cudart)\.so\S* .*=> (\S+)", done.stdout)
    return [Path(it) for it in found]


def describe_compiler() -> dict[str, str | None]:
    """Return the ``path`` of libnvvm, or the ``reason`` why there is none."""
    try:
        return {"path": str(require_compiler()), "reason": None}
    except MissingDependencyError:
        return {"path": None, "reason": "libnvvm and libdevice are not found"}
    except ImportError:
        return {"path": None, "reason": "numba-cuda is not installed"}


def _loaded() -> Path | None:
    """Return the compiler's library as numba-cuda finds it, with libdevice; None if not."""
    from cuda import pathfinder

    try:
        library = Path(pathfinder.load_nvidia_dynamic_lib("nvvm").abs_path).resolve()
    except (pathfinder.DynamicLibNotFoundError, OSError):
        return None
    # nvvm/lib64/libnvvm.so of a toolkit, nvidia/cu13/lib/libnvvm.so of Python's package
    homes = (library.parents[1], library.parents[1] / "nvvm")
    has_device_code = any((it / "libdevice" / "libdevice.10.bc").exists() for it in homes)
    return library if has_device_code else None
