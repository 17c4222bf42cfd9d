"""``gs.run(..., device="cuda")``."""

import time
from typing import Any

from graphsys.core.clocks import CLOCKS, DEVICE_ROWS
from graphsys.core.cuda.device import LaunchShape, require_device
from graphsys.core.errors import NotConvergedError
from graphsys.core.events import is_asked
from graphsys.core.memory import parse_bytes
from graphsys.core.progress import Progress
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.cuda.cuda_source import module_source
from graphsys.engine.cuda.executor import DeviceExecutor
from graphsys.engine.cuda.strategy import check_strategy
from graphsys.engine.execute.prepared import plan_for, prepare, run_on_host, table_of
from graphsys.engine.program import VertexProgram
from graphsys.engine.result import Result, cut_short
from graphsys.engine.topology import Topology
from graphsys.generated.modules import load_module


def run_on_device(
    program: VertexProgram,
    topology: Topology,
    *,
    strategy: str,
    device_memory: int | str | None,
    max_supersteps: int | None,
    require_convergence: bool,
    progress: Progress,
    shape: LaunchShape | None = None,
    max_fused: int = 16,
) -> Result:
    """Run a vertex program on a CUDA device.

    Args:
        program: The program.
        topology: The graph; its rows lie in the host's memory.
        strategy: Who visits a row: see :data:`graphsys.engine.cuda.strategy.STRATEGIES`.
        device_memory: Bytes to use on the device; rows that do not fit are streamed.
        max_supersteps: Stop after so many.
        require_convergence: Raise instead of returning a result that a limit cut short.
        progress: Told about every superstep.
        shape: How large launches are.
        max_fused: At most so many supersteps are enqueued before the host looks.

    Raises:
        MissingDependencyError: numba-cuda is not installed.
        ConfigError: no GPU, or no such strategy.
        CompileError: the program cannot be compiled for CUDA.
        BudgetError: the device's memory does not hold the nodes, or one row.
        NotConvergedError: with ``require_convergence``.
    """
    check_strategy(strategy)
    require_device()
    # CUDA refuses launches of no blocks.
    if topology.num_nodes == 0:
        work = prepare(program, topology, max_supersteps=max_supersteps)
        return run_on_host(work, max_supersteps=max_supersteps)
    begin = time.perf_counter()
    plan, module = compile_for_device(program, topology, max_supersteps)
    if is_asked(DEVICE_ROWS):  # a profile wants to see every superstep
        max_fused = 1
    loaded = time.perf_counter()
    executor = DeviceExecutor(
        program,
        plan,
        module,
        topology,
        strategy=strategy,
        shape=shape,
        device_memory=None if device_memory is None else parse_bytes(device_memory),
        max_supersteps=max_supersteps,
        max_fused=max_fused,
    )
    progress.stage(plan.spec.name, None, "supersteps")
    try:
        executor.prepare()
        for step in executor.run():
            progress.advance(1, frontier=step.senders, messages=step.messages)
        executor.finish()
    finally:
        executor.close()
        progress.close()
    seconds = time.perf_counter() - loaded - executor.compile_seconds
    if require_convergence and not executor.at.converged:
        short = cut_short(plan.spec.name, executor.at.superstep, program.when_cut_short)
        raise NotConvergedError(short)
    table = table_of(executor.plan, topology, executor.arrays.states)
    return Result(
        source=table,
        algorithm=plan.spec.name,
        supersteps=executor.at.superstep,
        seconds=seconds,
        compile_seconds=loaded - begin + executor.compile_seconds,
        converged=executor.at.converged,
        result=program.answer(table) if executor.at.converged else None,
        remedy=program.when_cut_short,
    )


def compile_for_device(
    program: VertexProgram, topology: Topology, max_supersteps: int | None = None
) -> tuple[ProgramPlan, Any]:
    """Lower a program for a graph; return its plan and the module of its CUDA kernels."""
    plan = plan_for(program, topology, max_supersteps)
    return plan, load_module(module_source(plan, clocked=is_asked(CLOCKS)))
