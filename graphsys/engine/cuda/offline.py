"""Compiling a program's CUDA kernels to machine code without a GPU or a driver.

numba-cuda makes PTX for a compute capability, ``ptxas`` makes machine code of it and says
how many registers, how much shared memory and how many spilled bytes each kernel has.
"""

import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphsys.core.errors import MissingDependencyError
from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan
from graphsys.engine.cuda.cuda_source import module_source, user_lines
from graphsys.engine.cuda.disassembly import count_kinds, count_lines, disassembly
from graphsys.generated.modules import load_module

CAPABILITY = (9, 0)
"""Hopper."""

_ARRAYS = {
    "nodes": "id", "next_list": "id", "touched_list": "id", "senders_list": "id",
    "small": "id", "medium": "id", "large": "id",
    "sizes": "int64", "counts": "int64", "bin_sizes": "int64", "offsets": "int64",
    "segments": "int64", "active": "int32", "changed": "int32", "touched": "int32",
    "senders": "int32", "stamps": "int32", "partial": "float64", "totals": "float64",
    "operations": "int32", "totals_log": "float64", "clock_records": "int64",
    "lane_steps": "int64", "indices": "uint32",
    "other_indices": "uint32", "indptr": "uint32", "other_indptr": "uint32",
}  # fmt: skip
_FLAGS = (
    "everyone", "listed", "listing", "touching", "both", "edge_forward", "reverse_forward",
    "stop_when_same",
)  # fmt: skip

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
    """

    name: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int
    instructions: dict[str, int] | None = None
    lines: dict[str, dict[str, int]] | None = None


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


def compile_program(
    plan: ProgramPlan, *, disassemble: bool = False, clocked: bool = False
) -> list[KernelReport]:
    """Compile every kernel of a program for Hopper.

    Args:
        plan: The lowered program.
        disassemble: Count instructions, too.
        clocked: Compile the kernels that write down clocks and lanes.

    Raises:
        MissingDependencyError: numba-cuda's compiler or ``ptxas`` is missing.
    """
    lines = user_lines(plan, module_source(plan, clocked=clocked)) if disassemble else None
    return _compile_all(_typed_kernels(plan, clocked=clocked), lines)


def program_ptx(plan: ProgramPlan, *, clocked: bool = False) -> dict[str, str]:
    """Return the PTX of every kernel of a program, by name.

    Raises:
        MissingDependencyError: numba-cuda's compiler is missing.
    """
    _forget_the_driver()
    kernels = _typed_kernels(plan, clocked=clocked)
    return {name: _ptx(function, types) for name, function, types in kernels}


def count_instructions(name: str, function: Any, types: tuple[Any, ...]) -> dict[str, int]:
    """Compile a function as a kernel for Hopper; return its instructions by kind.

    Args:
        name: What to call it.
        function: The kernel's Python function.
        types: numba's types of its arguments.

    Raises:
        MissingDependencyError: numba-cuda's compiler, ``ptxas`` or ``nvdisasm`` is missing.
    """
    (report,) = _compile_all([(name, function, types)], is_counted=True)
    if report.instructions is None:
        raise MissingDependencyError(
            "nvdisasm is not on PATH and triton, which brings one, is not installed: "
            "pip install 'graphsys[gpu]'"
        )
    return report.instructions


def count_program(plan: ProgramPlan, mapping: str) -> dict[str, dict[str, int]]:
    """Return the instructions by kind of a program's kernels over rows, by their names.

    Args:
        plan: The lowered program.
        mapping: Who walks a row: ``thread``, ``warp`` or ``block``; kernels of several
            supersteps (fused ones) are left out.

    Raises:
        MissingDependencyError: as :func:`count_instructions`.
    """
    return {
        name: count_instructions(name, function, types)
        for name, function, types in _typed_kernels(plan, clocked=False)
        if f"_{mapping}_" in name and "fused" not in name
    }


def _typed_kernels(plan: ProgramPlan, *, clocked: bool) -> list[Typed]:
    module = load_module(module_source(plan, clocked=clocked))
    typed = []
    for name, (function, arguments) in module.KERNELS.items():
        digits = name.rpartition("_")[2]
        phase = plan.phases[int(digits)] if digits.isdigit() else None
        types = tuple(argument_type(a, plan, phase) for a in arguments)
        typed.append((name, function.py_func, types))
    return typed


def compile_common(id_dtype: np.dtype[Any]) -> list[KernelReport]:
    """Compile the kernels that all programs share, for numbers of nodes of a dtype.

    Raises:
        MissingDependencyError: numba-cuda's compiler or ``ptxas`` is missing.
    """
    from numba import types

    from graphsys.kernels.cuda.common import COMMON

    dtypes = {name: id_dtype if kind == "id" else np.dtype(kind)
              for name, kind in _ARRAYS.items()}  # fmt: skip
    typed = []
    for name, function in COMMON.items():
        own = dict(dtypes)
        if name in ("list_everyone", "list_stamped", "mark_neighbors"):
            own["listed"] = id_dtype
        found = tuple(
            _array(own[argument])
            if argument in own
            else types.boolean
            if argument in _FLAGS
            else types.int64
            for argument in inspect.signature(function.py_func).parameters
        )
        typed.append((name, function.py_func, found))
    return _compile_all(typed)


def _compile_all(
    typed: list[Typed],
    lines: Mapping[int, str] | None = None,
    *,
    is_counted: bool = False,
) -> list[KernelReport]:
    """Compile kernels; count instructions if asked to, by line where those are given."""
    ptxas = find_ptxas()
    _forget_the_driver()
    reports = []
    with tempfile.TemporaryDirectory() as folder:
        for name, function, types in typed:
            path = Path(folder) / f"{name}.ptx"
            path.write_text(_ptx(function, types, has_lines=lines is not None))
            report = _assemble(ptxas, name, path)
            is_read = is_counted or lines is not None
            text = disassembly(path.with_suffix(".cubin")) if is_read else None
            if text is not None:
                own = None if lines is None else count_lines(text, lines)
                report = replace(report, instructions=count_kinds(text), lines=own)
            reports.append(report)
    return reports


def _array(dtype: np.dtype[Any]) -> Any:
    from numba import types
    from numba.np.numpy_support import from_dtype

    return types.Array(from_dtype(dtype), 1, "C")


def argument_type(name: str, plan: ProgramPlan, phase: PhasePlan | None) -> Any:
    """Return numba's type of a kernel's argument, by its name."""
    from numba import types

    dtype = _dtype_of(name, plan, phase)
    if dtype is not None:
        return _array(dtype)
    if name in _FLAGS:
        return types.boolean
    if name == "delta_tolerance":
        return types.float64
    if name.startswith("param__"):
        kind = plan.spec.parameters[name.removeprefix("param__")]
        return {float: types.float64, bool: types.boolean}.get(kind, types.int64)
    return types.int64


def _dtype_of(
    name: str, plan: ProgramPlan, phase: PhasePlan | None
) -> np.dtype[Any] | None:
    """Return the dtype of an array argument, None for a scalar."""
    for sided in ("first__", "second__"):
        name = name.removeprefix(sided)
    if name in _ARRAYS:
        return plan.id_dtype if _ARRAYS[name] == "id" else np.dtype(_ARRAYS[name])
    side, _, rest = name.partition("__")
    if rest and side in ("row", "col", "new", "at"):
        return np.dtype(plan.dtypes.get(rest, plan.id_dtype))
    if side in ("edge", "stored"):
        state = plan.spec.edge_states.get(rest)
        return np.dtype(plan.edge_columns[rest] if state is None else state.dtype)
    if name == "reverse_of":
        return plan.id_dtype
    kind, _, digit = name.rpartition("_")
    if phase is not None and kind in ("in", "out", "acc", "sent", "bits"):
        dtype = phase.message_dtypes[int(digit)]
        return np.dtype(f"int{8 * dtype.itemsize}" if kind == "bits" else dtype)
    if name == "scratch" and phase is not None:
        return phase.message_dtypes[0]
    return None


def _forget_the_driver() -> None:
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


def _ptx(function: Any, types: tuple[Any, ...], *, has_lines: bool = False) -> str:
    from numba import cuda

    if has_lines:  # functions that are inlined keep theirs too
        for called in function.__globals__.values():
            if hasattr(called, "targetoptions") and not called.overloads:
                called.targetoptions["lineinfo"] = True
    try:
        text, _ = cuda.compile(
            function, types, device=False, abi="numba", cc=CAPABILITY, output="ptx",
            lineinfo=has_lines,
        )  # fmt: skip
    except RuntimeError as err:
        if type(err).__name__ != "DynamicLibNotFoundError":  # cuda.pathfinder's
            raise
        raise MissingDependencyError(
            f"{str(err).splitlines()[0].partition(':')[0].lower()}: CUDA's compiler is "
            "missing; pip install 'graphsys[gpu]'"
        ) from err
    return (text if isinstance(text, str) else text.decode()).rstrip("\0")


def _assemble(ptxas: str, name: str, path: Path) -> KernelReport:
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

    def amount(pattern: str) -> int:
        return sum(int(found) for found in re.findall(pattern, text))

    return KernelReport(
        name=name,
        registers=amount(r"Used (\d+) registers"),
        shared_bytes=amount(r"(\d+) bytes smem"),
        stack_bytes=amount(r"(\d+) bytes stack frame"),
        spill_bytes=amount(r"(\d+) bytes spill (?:stores|loads)"),
    )
