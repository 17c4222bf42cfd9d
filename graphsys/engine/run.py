"""``gs.run``: compile a program for a graph, run it, and return its states by user id."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphsys.core.errors import ConfigError, NotConvergedError
from graphsys.core.events import observing_seconds
from graphsys.core.progress import SILENT, Progress
from graphsys.engine.budget import (
    Choice,
    allocator_of,
    budget_of,
    choose,
    list_limit,
    placed,
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
    check_settings(device, strategy, checkpoint=checkpoint, resume=resume, check=check)
    return run_prepared(
        prepare(program, graph, memory=memory, device=device),
        num_threads=num_threads, max_supersteps=max_supersteps,
        require_convergence=require_convergence, checkpoint=checkpoint,
        checkpoint_every=checkpoint_every, resume=resume, check=check, device=device,
        strategy=strategy, device_memory=device_memory, progress=progress,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedProgram:
    """A program compiled for a graph, and how it will use memory.

    Attributes:
        program: The program.
        plan: The same, lowered.
        kernels: Its kernels, with the names of their arguments, by name.
        topology: The graph; if the program is for simple ones, before it is made so.
        choice: Where rows and states will be.
        seconds: How long compiling took.
    """

    program: VertexProgram
    plan: ProgramPlan
    kernels: Mapping[str, tuple[Any, tuple[str, ...]]]
    topology: Topology
    choice: Choice
    seconds: float


def prepare(
    program: VertexProgram | type[VertexProgram],
    graph: Graph | Topology | str | os.PathLike[str],
    *,
    memory: int | str | None = None,
    device: str = "cpu",
) -> PreparedProgram:
    """Compile a program for a graph and decide how it uses memory: once, for all.

    Args:
        program: The program with its parameters; a class where all have defaults.
        graph: An open graph, its path, or edges in memory.
        memory: Budget of anonymous memory; what there is by default.
        device: ``cpu`` or ``cuda``, where the budget is of the device.

    Raises:
        CompileError: the program cannot be compiled.
        BudgetError: the budget is too small; the message names one that works.
    """
    if isinstance(program, type):
        program = program()
    topology = Topology.of(graph)
    budget = budget_of(memory) if device == "cpu" else None
    plan, kernels, seconds = compile_program(program, topology)
    choice = choose(plan, topology, budget)
    return PreparedProgram(
        program=program, plan=plan, kernels=kernels, topology=topology, choice=choice,
        seconds=seconds,
    )  # fmt: skip


def run_prepared(
    work: PreparedProgram,
    *,
    device: str = "cpu",
    strategy: str = "auto",
    device_memory: int | str | None = None,
    num_threads: int | None = None,
    max_supersteps: int | None = None,
    require_convergence: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 10,
    resume: bool = False,
    check: bool = False,
    progress: Progress = SILENT,
) -> Result:
    """Run what :func:`prepare` returned; arguments and errors are those of :func:`run`."""
    check_settings(device, strategy, checkpoint=checkpoint, resume=resume, check=check)
    if device == "cuda":
        from graphsys.engine.cuda.run import run_on_device

        topology = work.topology.simplified() if work.program.simple else work.topology
        return run_on_device(
            work.program, topology, strategy=strategy, device_memory=device_memory,
            max_supersteps=max_supersteps, require_convergence=require_convergence,
            progress=progress,
        )  # fmt: skip
    program, plan, choice = work.program, work.plan, work.choice
    topology = placed(choice, work.topology)
    if program.simple:
        topology = topology.simplified()
    rows = rows_of(choice, plan, topology)
    executor = Executor(
        program,
        plan,
        work.kernels,
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
    return _result(work, executor, took)


def _result(work: PreparedProgram, executor: Executor, seconds: float) -> Result:
    table = executor.topology.table(state_columns(executor))
    return Result(
        table=table,
        algorithm=work.plan.spec.name,
        supersteps=executor.at.superstep,
        seconds=seconds,
        compile_seconds=work.seconds + executor.compile_seconds,
        converged=executor.at.converged,
        result=work.program.answer(table) if executor.at.converged else None,
    )


def check_settings(
    device: str = "cpu",
    strategy: str = "auto",
    *,
    checkpoint: Any = None,
    resume: bool = False,
    check: bool = False,
) -> None:
    """Refuse devices that there are not, and what a device cannot do.

    Raises:
        ConfigError: an unknown device, a strategy on the CPU, a checkpoint on CUDA, no
            checkpoint to resume from.
    """
    if resume and checkpoint is None:
        raise ConfigError("resume needs checkpoint, the folder to resume from")
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
    columns = {} if program.simple else topology.column_dtypes()
    most = topology.num_edges * (2 if program.simple and topology.is_directed else 1)
    wide = max(topology.num_nodes, most) >= 2**31
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
