"""numba's CUDA kernels compiled to machine code without a GPU or a driver.

numba-cuda makes PTX for a compute capability, ``ptxas`` makes machine code of it and says
how many registers, how much shared memory and how many spilled bytes each kernel has.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphsys.core.errors import MissingDependencyError

CAPABILITY = (9, 0)
"""Hopper."""

Typed = tuple[str, Any, tuple[Any, ...]]
"""A kernel's name, its function and the types of its arguments."""


@dataclass(frozen=True, slots=True)
class KernelReport:
    """What ``ptxas`` says of one kernel.

    Attributes:
        name: The kernel.
        registers: Registers per thread.
        shared_bytes: Static shared memory per block.
        stack_bytes: Stack per thread.
        spill_bytes: Bytes of registers spilled to memory, stores and loads.
        instructions: How many it has by kind, where that was asked for and could be said.
        lines: The same by the user's ``file:line``; what is the engine's own under ``""``.
        warps: Warps per block, where the kernel is compiled for so many.
    """

    name: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int
    instructions: dict[str, int] | None = None
    lines: dict[str, dict[str, int]] | None = None
    warps: int | None = None

    @classmethod
    def of(cls, name: str, text: str, **facts: Any) -> "KernelReport":
        """Return what ``ptxas -v`` printed, and what is known besides."""

        def amount(pattern: str) -> int:
            return sum(int(found) for found in re.findall(pattern, text))

        facts.setdefault("shared_bytes", amount(r"(\d+) bytes smem"))
        return cls(
            name=name,
            registers=amount(r"Used (\d+) registers"),
            stack_bytes=amount(r"(\d+) bytes stack frame"),
            spill_bytes=amount(r"(\d+) bytes spill (?:stores|loads)"),
            **facts,
        )


def find_ptxas() -> str:
    """Return the path of ``ptxas``: ``$PTXAS``, or the one on ``$PATH``.

    Raises:
        MissingDependencyError: there is none.
    """
    found = os.environ.get("PTXAS") or shutil.which("ptxas")
    if not found:
        raise MissingDependencyError(
            "ptxas is not on PATH; install the CUDA toolkit, or name it in $PTXAS"
        )
    return found


def compile_kernels(typed: list[Typed]) -> list[KernelReport]:
    """Compile kernels for Hopper.

    Raises:
        MissingDependencyError: numba-cuda's compiler or ``ptxas`` is missing.
    """
    ptxas = find_ptxas()
    forget_the_driver()
    with tempfile.TemporaryDirectory() as folder:
        return [
            assemble(ptxas, name, write_ptx(Path(folder), name, function, types))
            for name, function, types in typed
        ]


def write_ptx(
    folder: Path,
    name: str,
    function: Any,
    types: tuple[Any, ...],
    *,
    has_lines: bool = False,
) -> Path:
    """Write the PTX of a kernel to a file ``NAME.ptx`` of a folder; return its path."""
    path = folder / f"{name}.ptx"
    path.write_text(ptx_of(function, types, has_lines=has_lines))
    return path


def array_type(dtype: np.dtype[Any], num_dimensions: int = 1) -> Any:
    """Return numba's type of a contiguous array."""
    from numba import types
    from numba.np.numpy_support import from_dtype

    return types.Array(from_dtype(dtype), num_dimensions, "C")


def forget_the_driver() -> None:
    """Answer numba-cuda's question for the current device with a constant.

    Its compiler asks only for the compute capability, but would load the driver for it.
    """
    if importlib.util.find_spec("numba_cuda") is None:  # numba's own is an old one
        raise MissingDependencyError(
            "compiling for CUDA needs numba-cuda: pip install 'graphsys[gpu]'"
        )
    import numba.cuda.api
    import numba.cuda.dispatcher

    class Stub:
        compute_capability = CAPABILITY

    for module in (numba.cuda, numba.cuda.api, numba.cuda.dispatcher):
        if hasattr(module, "get_current_device"):
            module.get_current_device = Stub


def ptx_of(function: Any, types: tuple[Any, ...], *, has_lines: bool = False) -> str:
    """Return the PTX of a kernel, with line numbers where asked for."""
    from numba import cuda

    if has_lines:  # functions that are inlined keep theirs too
        for called in function.__globals__.values():
            if hasattr(called, "targetoptions") and not called.overloads:
                called.targetoptions["lineinfo"] = True
    try:
        text, _ = cuda.compile(
            function,
            types,
            device=False,
            abi="numba",
            cc=CAPABILITY,
            output="ptx",
            lineinfo=has_lines,
        )
    except RuntimeError as err:
        if type(err).__name__ != "DynamicLibNotFoundError":  # cuda.pathfinder's
            raise
        raise MissingDependencyError(
            f"{str(err).splitlines()[0].partition(':')[0].lower()}: CUDA's compiler is "
            "missing; pip install 'graphsys[gpu]'"
        ) from err
    return (text if isinstance(text, str) else text.decode()).rstrip("\0")


def assemble(ptxas: str, name: str, path: Path) -> KernelReport:
    """Make machine code of a PTX file, beside it; return what ``ptxas`` says."""
    arch = f"sm_{CAPABILITY[0]}{CAPABILITY[1]}"
    made = path.with_suffix(".cubin")
    # a barrier across the grid is a function of cudadevrt, linked when it is loaded
    linked_later = ["-c"] if "cudaCGSynchronize" in path.read_text() else []
    command = [
        ptxas,
        f"-arch={arch}",
        "-v",
        "-lineinfo",
        *linked_later,
        str(path),
        "-o",
        str(made),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    if done.returncode:
        raise RuntimeError(f"ptxas refuses {name}: {text.strip()[:500]}")
    return KernelReport.of(name, text)
