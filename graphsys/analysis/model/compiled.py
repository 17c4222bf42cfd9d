"""A program's CUDA kernels, compiled without a GPU: registers, occupancy, instructions."""

import linecache
from collections.abc import Mapping
from typing import Any

from graphsys.analysis.model.devices import GPUS, occupancy
from graphsys.core.errors import ConfigError

TARGETS = {"sm_90": "h100"}
"""Targets that can be compiled for, with the GPU whose occupancy is told."""
CTA_THREADS = 256
"""Threads of a CTA, as the engine launches."""


def compile_facts(program: str, target: str) -> dict[str, Any]:
    """Compile a program's kernels and return what the compiler says of each.

    Args:
        program: A listed algorithm that has a vertex program, or ``file.py:Class``.
        target: ``sm_90``.

    Returns:
        ``program``, ``target``, ``gpu``, ``cta_threads`` and ``kernels``: of each its
        ``name``, ``registers`` (per thread), ``shared_bytes`` (per CTA), ``stack_bytes``
        and ``spill_bytes`` (per thread), ``ctas_per_sm``, ``occupancy``,
        ``occupancy_limit``, ``instructions`` (by kind; null without ``nvdisasm``) and
        ``lines``: of each line of the program its ``line`` (``file:line``; null for the
        engine's own loop around it), ``source`` and ``instructions``.

    Raises:
        ConfigError: the target is not known, or the algorithm has no vertex program.
        CompileError: the program cannot be compiled.
        MissingDependencyError: numba-cuda's compiler or ``ptxas`` is missing.
    """
    from graphsys.engine.codegen.plan import plan_of
    from graphsys.engine.codegen.spec import spec_of
    from graphsys.engine.cuda.offline import compile_program

    if target not in TARGETS:
        raise ConfigError(
            f"cannot compile for {target!r}; known targets: {', '.join(TARGETS)}"
        )
    import numpy as np

    columns = {"weight": np.dtype(np.float64)}
    plan = plan_of(spec_of(program_of(program)), columns)
    gpu = GPUS[TARGETS[target]]
    kernels = []
    for report in compile_program(plan, disassemble=True):
        full = occupancy(
            gpu,
            threads=CTA_THREADS,
            registers=report.registers,
            shared_bytes=report.shared_bytes,
        )
        kernels.append(
            {
                "name": report.name,
                "registers": report.registers,
                "shared_bytes": report.shared_bytes,
                "stack_bytes": report.stack_bytes,
                "spill_bytes": report.spill_bytes,
                "ctas_per_sm": full.ctas,
                "occupancy": full.fraction,
                "occupancy_limit": full.limit,
                "instructions": report.instructions,
                "lines": _lines(report.lines),
            }
        )
    return {
        "program": program,
        "target": target,
        "gpu": gpu.name,
        "cta_threads": CTA_THREADS,
        "kernels": kernels,
    }


def _lines(lines: Mapping[str, Mapping[str, int]] | None) -> list[dict[str, Any]] | None:
    """Return a kernel's instructions by line of the program, the engine's own last."""
    if lines is None:
        return None
    rows = []
    for at, mix in sorted(lines.items(), key=lambda item: _place(item[0])):
        file, _, number = at.rpartition(":")
        source = linecache.getline(file, int(number)).strip() if at else ""
        rows.append({"line": at or None, "source": source, "instructions": dict(mix)})
    return rows


def _place(at: str) -> tuple[bool, str, int]:
    file, _, number = at.rpartition(":")
    return not at, file, int(number or 0)


def program_of(name: str) -> Any:
    """Return a program's class, or the program with placeholders where it needs values.

    Args:
        name: A listed algorithm that has a vertex program, or ``file.py:Class``.

    Raises:
        ConfigError: the algorithm is native only.
    """
    import inspect

    from graphsys.engine import algorithms
    from graphsys.engine.load_program import load_program

    if ".py" in name:
        return load_program(name)
    listed = algorithms.get(name)
    if not listed.program:
        raise ConfigError(
            f"{name} is native only and has no CUDA kernels to compile; give an algorithm "
            "with a vertex program (graphsys run --list)"
        )
    made = listed.program_class()
    if isinstance(made, type):
        return made
    given = inspect.signature(made).parameters.values()
    return made(**{p.name: 0 for p in given if p.default is inspect.Parameter.empty})
