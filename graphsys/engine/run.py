"""``gs.run``: compile a program for a graph, run it, and return its states by user id."""

import os
import time
from typing import Any

import numpy as np

from graphsys.core.errors import ConfigError, NotConvergedError
from graphsys.core.events import observing_seconds
from graphsys.core.memory import parse_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.engine.budget import (
    allocator_of,
    check_simple,
    choose,
    default_budget,
    list_limit,
    rows_of,
)
from graphsys.engine.checkpoint import Checkpoints, fingerprint_of
from graphsys.engine.combine_check import CombineCheck
from graphsys.engine.cpu_source import module_source
from graphsys.engine.executor import Executor, Superstep
from graphsys.engine.plan import ProgramPlan, plan_of
from graphsys.engine.program import NodeId, VertexProgram
from graphsys.engine.program_cache import load_module
from graphsys.engine.result import Result
from graphsys.engine.spec import spec_of
from graphsys.engine.topology import Topology
from graphsys.storage.reader import Graph


def run(
    program: VertexProgram | type[VertexProgram],
    graph: Graph | Topology | str | os.PathLike[str],
    *,
    num_threads: int | None = None,
    max_supersteps: int | None = None,
    require_convergence: bool = False,
    memory: int | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 10,
    resume: bool = False,
    check: bool = False,
    device: str = "cpu",
    strategy: str = "auto",
    device_memory: int | str | None = None,
    progress: Progress = SILENT,
) -> Result:
    """Run a vertex program.

    Args:
        program: The program with its parameters; a class where all have defaults.
        graph: An open graph, its path, or edges in memory.
        num_threads: Threads; all cores by default.
        max_supersteps: Stop after so many, whatever the program says.
        require_convergence: Raise instead of returning a result that a limit cut short.
        memory: Budget of anonymous memory (``"4GB"``, or bytes); what there is by default.
            Rows are streamed from the store, and states paged, where they do not fit.
        checkpoint: Folder that keeps the run's state, so that it can be resumed.
        checkpoint_every: Supersteps between two checkpoints.
        resume: Go on from the folder's checkpoint, if there is one.
        check: Test a combiner of your own on sampled messages after every superstep.
        device: ``cpu`` or ``cuda``.
        strategy: On CUDA, who visits a node's edges: ``thread``, ``warp``, ``block``,
            ``twc`` (by degree), ``edge`` (a thread per edge) or ``auto``; or ``fused``:
            many supersteps in one launch, wherever a program allows it.
        device_memory: On CUDA, the budget of the device (``"40GB"``, or bytes); rows that
            do not fit are streamed. Nine tenths of what is free by default.
        progress: Told about every superstep.

    Returns:
        One row per node: ``id`` and ``value``, or a column per state.

    Raises:
        CompileError: the program cannot be compiled.
        ConfigError: a parameter is missing or does not fit; the checkpoint is of another
            run; with ``check``, a combiner that depends on the order of messages.
        BudgetError: the budget is too small; the message names one that works.
        CorruptStoreError: the checkpoint is incomplete.
        OutputExistsError: there is a checkpoint, and ``resume`` is off.
        NotConvergedError: with ``require_convergence``.
    """
    if isinstance(program, type):
        program = program()
    if resume and checkpoint is None:
        raise ConfigError("resume needs checkpoint, the folder to resume from")
    check_device(device, strategy, checkpoint=checkpoint, check=check)
    topology = Topology.of(graph)
    budget = default_budget() if memory is None else parse_bytes(memory)
    if program.simple:
        check_simple(topology, budget)
        topology = topology.simplified()
    if device == "cuda":
        from graphsys.engine.cuda.run import run_on_device

        return run_on_device(
            program, topology, strategy=strategy, device_memory=device_memory,
            max_supersteps=max_supersteps, require_convergence=require_convergence,
            progress=progress,
        )  # fmt: skip
    plan, kernels, seconds = compile_program(program, topology)
    choice = choose(plan, topology, budget)
    rows = rows_of(choice, plan, topology)
    executor = Executor(
        program,
        plan,
        kernels,
        topology,
        rows,
        num_threads=num_threads,
        max_supersteps=max_supersteps,
        allocate=allocator_of(choice),
    )
    if choice.mode == "paged":
        executor.supersteps.list_limit = list_limit(topology.num_nodes)
    saved = None
    checked = CombineCheck(executor) if check else None
    begin = time.perf_counter() - observing_seconds()
    progress.stage(plan.spec.name, None, "supersteps")
    try:
        if checkpoint is not None:
            run_hash = fingerprint_of(program, plan, topology)
            saved = Checkpoints(
                checkpoint, every=checkpoint_every, fingerprint=run_hash, resume=resume
            )
            saved.restore(executor)
        for step in executor.run():
            progress.advance(1, **_figures(step))
            if saved is not None:
                saved.after(executor)
            if checked is not None:
                checked.check()
    finally:
        executor.close()
        rows.close()
        progress.close()
        if saved is not None:
            saved.close()
    took = time.perf_counter() - begin - observing_seconds() - executor.compile_seconds
    if require_convergence and not executor.at.converged:
        raise NotConvergedError(
            f"{plan.spec.name} did not converge within {executor.at.superstep} supersteps"
        )
    table = topology.table(state_columns(executor))
    return Result(
        table=table,
        algorithm=plan.spec.name,
        supersteps=executor.at.superstep,
        seconds=took,
        compile_seconds=seconds + executor.compile_seconds,
        converged=executor.at.converged,
        result=program.answer(table) if executor.at.converged else None,
    )


def check_device(device: str, strategy: str, *, checkpoint: Any, check: bool) -> None:
    """Refuse devices that there are not, and what a device cannot do.

    Raises:
        ConfigError: an unknown device, a strategy on the CPU, a checkpoint on CUDA.
    """
    if device not in ("cpu", "cuda"):
        raise ConfigError(f"device must be 'cpu' or 'cuda', got {device!r}")
    if device == "cpu" and strategy != "auto":
        raise ConfigError(f"strategy={strategy!r} needs device='cuda'; the CPU has one way")
    if device == "cuda" and (checkpoint is not None or check):
        what = "check" if checkpoint is None else "checkpoint"
        raise ConfigError(f"{what} works with device='cpu' only; leave it out for CUDA")


def compile_program(
    program: VertexProgram, topology: Topology
) -> tuple[ProgramPlan, dict[str, tuple[Any, tuple[str, ...]]], float]:
    """Lower a program for a graph and load its kernels.

    Returns:
        The plan, the kernels with the names of their arguments, and the seconds it took.
    """
    begin = time.perf_counter()
    columns = topology.column_dtypes()
    wide = max(topology.num_nodes, topology.num_edges) >= 2**31
    plan = plan_of(spec_of(program), columns, wide_ids=wide)
    module = load_module(module_source(plan))
    return plan, module.KERNELS, time.perf_counter() - begin


def _figures(step: Superstep) -> dict[str, float]:
    """Return what a progress line shows of a superstep."""
    rate = step.messages / step.seconds if step.seconds > 0 else 0.0
    return {"frontier": step.senders, "messages": step.messages, "edges/s": rate}


def state_columns(executor: Executor) -> dict[str, Any]:
    """Return the states as result columns, masked where they are null."""
    spec, topology = executor.plan.spec, executor.topology
    shown = spec.program.results or tuple(spec.states)
    columns: dict[str, Any] = {}
    for name in shown:
        if name not in spec.states:
            raise ConfigError(
                f"{spec.name}.results names {name!r}, the states are "
                f"{', '.join(spec.states)}"
            )
        state, values = spec.states[name], executor.arrays.states[name]
        column = "value" if len(shown) == 1 else name
        if state.dtype is NodeId:
            columns[column] = _ids_at(topology, values)
        elif state.null is None:
            columns[column] = values
        else:
            columns[column] = np.ma.masked_array(values, mask=values == state.null)
    return columns


def _ids_at(topology: Topology, ranks: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = ranks < 0
    if not missing.any():
        return topology.numbers.ids_at_ranks(ranks)
    ids = topology.numbers.ids_at_ranks(np.where(missing, 0, ranks))
    return pc.if_else(pa.array(missing), None, ids.combine_chunks())
