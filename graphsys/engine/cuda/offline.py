"""Compiling a program's CUDA kernels to machine code without a GPU or a driver."""

import inspect
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graphsys.core.cuda.offline import (
    KernelReport,
    Typed,
    array_type,
    assemble,
    compile_kernels,
    find_ptxas,
    forget_the_driver,
    ptx_of,
    write_ptx,
)
from graphsys.core.errors import MissingDependencyError
from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan
from graphsys.engine.cuda.cuda_source import module_source, user_lines
from graphsys.engine.cuda.disassembly import count_kinds, count_lines, disassembly
from graphsys.generated.modules import load_module

_ARRAYS = {
    "nodes": "id",
    "next_list": "id",
    "touched_list": "id",
    "senders_list": "id",
    "small": "id",
    "medium": "id",
    "large": "id",
    "sizes": "int64",
    "counts": "int64",
    "bin_sizes": "int64",
    "offsets": "int64",
    "segments": "int64",
    "active": "int32",
    "changed": "int32",
    "touched": "int32",
    "senders": "int32",
    "stamps": "int32",
    "partial": "float64",
    "totals": "float64",
    "operations": "int32",
    "totals_log": "float64",
    "clock_records": "int64",
    "lane_steps": "int64",
    "indices": "uint32",
    "other_indices": "uint32",
    "indptr": "uint32",
    "other_indptr": "uint32",
}
_FLAGS = (
    "everyone",
    "listed",
    "listing",
    "touching",
    "both",
    "edge_forward",
    "reverse_forward",
    "stop_when_same",
)


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
    forget_the_driver()
    kernels = _typed_kernels(plan, clocked=clocked)
    return {name: ptx_of(function, types) for name, function, types in kernels}


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

    dtypes = {
        name: id_dtype if kind == "id" else np.dtype(kind) for name, kind in _ARRAYS.items()
    }
    typed = []
    for name, function in COMMON.items():
        own = dict(dtypes)
        if name in ("list_everyone", "list_stamped", "mark_neighbors"):
            own["listed"] = id_dtype
        found = tuple(
            array_type(own[argument])
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
    if lines is None and not is_counted:
        return compile_kernels(typed)
    ptxas = find_ptxas()
    forget_the_driver()
    reports = []
    with tempfile.TemporaryDirectory() as folder:
        for name, function, types in typed:
            has_lines = lines is not None
            path = write_ptx(Path(folder), name, function, types, has_lines=has_lines)
            report = assemble(ptxas, name, path)
            text = disassembly(path.with_suffix(".cubin"))
            if text is not None:
                own = None if lines is None else count_lines(text, lines)
                report = replace(report, instructions=count_kinds(text), lines=own)
            reports.append(report)
    return reports


def argument_type(name: str, plan: ProgramPlan, phase: PhasePlan | None) -> Any:
    """Return numba's type of a kernel's argument, by its name."""
    from numba import types

    dtype = _dtype_of(name, plan, phase)
    if dtype is not None:
        return array_type(dtype, 2 if _is_of_vectors(name, plan, phase) else 1)
    if name in _FLAGS:
        return types.boolean
    if name == "delta_tolerance":
        return types.float64
    if name.startswith("param__"):
        kind = plan.spec.parameters[name.removeprefix("param__")]
        return {float: types.float64, bool: types.boolean}.get(kind, types.int64)
    return types.int64


def _is_of_vectors(name: str, plan: ProgramPlan, phase: PhasePlan | None) -> bool:
    """Return whether an array argument has a row of components for each node."""
    side, _, rest = name.partition("__")
    if side in ("row", "col", "new"):
        return plan.components_of(rest) > 0
    is_message = name in ("in_0", "out_0", "acc_0")
    return phase is not None and is_message and phase.num_components > 0


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
