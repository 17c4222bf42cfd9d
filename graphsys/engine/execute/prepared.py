"""A program made ready for a graph, and run on the CPU."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from graphsys.core.errors import ConfigError, NotConvergedError
from graphsys.core.events import observing_seconds
from graphsys.core.progress import SILENT, Progress
from graphsys.engine.codegen.cpu import module_source
from graphsys.engine.codegen.plan import ProgramPlan, plan_of, with_edge_columns
from graphsys.engine.codegen.spec import spec_of
from graphsys.engine.execute.checkpoint import Checkpoints, fingerprint_of
from graphsys.engine.execute.combine_check import CombineCheck
from graphsys.engine.execute.executor import Executor, Superstep
from graphsys.engine.execute.program_memory import (
    allocator_of,
    choose,
    kernels_of,
    list_limit,
    rows_of,
)
from graphsys.engine.memory_plan import MemoryPlan, budget_of, placed
from graphsys.engine.program import NodeId, VertexProgram
from graphsys.engine.result import Result, cut_short
from graphsys.engine.topology import Topology
from graphsys.generated.modules import load_module
from graphsys.storage.reader import GraphReader


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
    choice: MemoryPlan
    seconds: float


def prepare(
    program: VertexProgram | type[VertexProgram],
    graph: GraphReader | Topology | str | os.PathLike[str],
    *,
    memory: int | str | None = None,
    device: str = "cpu",
    max_supersteps: int | None = None,
) -> PreparedProgram:
    """Compile a program for a graph and decide how it uses memory: once, for all.

    Args:
        program: The program with its parameters; a class where all have defaults.
        graph: An open graph, its path, or edges in memory.
        memory: Budget of anonymous memory; what there is by default.
        device: ``cpu`` or ``cuda``, where the budget is of the device.
        max_supersteps: What the run will be limited to, if it will.

    Raises:
        CompileError: the program cannot be compiled.
        BudgetError: the budget is too small; the message names one that works.
    """
    if isinstance(program, type):
        program = program()
    topology = Topology.of(graph)
    budget = budget_of(memory) if device == "cpu" else None
    plan, kernels, seconds = compile_program(program, topology, max_supersteps)
    choice = choose(plan, topology, budget)
    return PreparedProgram(
        program=program,
        plan=plan,
        kernels=kernels,
        topology=topology,
        choice=choice,
        seconds=seconds,
    )


def run_on_host(
    work: PreparedProgram,
    *,
    num_threads: int | None = None,
    max_supersteps: int | None = None,
    require_convergence: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 10,
    resume: bool = False,
    check: bool = False,
    progress: Progress = SILENT,
) -> Result:
    """Run a prepared program on the CPU; see :func:`graphsys.engine.run.run`."""
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
    # Lists as long as the graph would not fit: larger frontiers become bitmaps.
    if choice.mode == "paged":
        executor.supersteps.list_limit = list_limit(topology.num_nodes)
    saved = None
    checked = CombineCheck(executor) if check else None
    begin = time.perf_counter() - observing_seconds()
    progress.stage(plan.spec.name, None, "supersteps")
    try:
        if checkpoint is not None:
            # A checkpoint of another program or graph must not be resumed, however alike
            # its arrays.
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
    kernels_of(plan, choice.mode).remember()
    if require_convergence and not executor.at.converged:
        short = cut_short(plan.spec.name, executor.at.superstep, program.when_cut_short)
        raise NotConvergedError(short)
    return _result(work, executor, took)


def _result(work: PreparedProgram, executor: Executor, seconds: float) -> Result:
    table = table_of(executor.plan, executor.topology, executor.arrays.states)
    return Result(
        source=table,
        algorithm=work.plan.spec.name,
        supersteps=executor.at.superstep,
        seconds=seconds,
        compile_seconds=work.seconds + executor.compile_seconds,
        converged=executor.at.converged,
        result=work.program.answer(table) if executor.at.converged else None,
        remedy=work.program.when_cut_short,
    )


def compile_program(
    program: VertexProgram, topology: Topology, max_supersteps: int | None = None
) -> tuple[ProgramPlan, dict[str, tuple[Any, tuple[str, ...]]], float]:
    """Lower a program for a graph and load its kernels.

    Returns:
        The plan, the kernels with the names of their arguments, and the seconds it took.
    """
    begin = time.perf_counter()
    plan = plan_for(program, topology, max_supersteps)
    module = load_module(module_source(plan))
    return plan, module.KERNELS, time.perf_counter() - begin


def plan_for(
    program: VertexProgram, topology: Topology, max_supersteps: int | None = None
) -> ProgramPlan:
    """Lower a program for a graph, with the columns of nodes and edges that it reads."""
    columns = {} if program.simple else topology.column_dtypes()
    most = topology.num_edges * (2 if program.simple and topology.is_directed else 1)
    wide = max(topology.num_nodes, most) >= 2**31
    spec = spec_of(program, max_supersteps=max_supersteps)
    spec = replace(spec, node_columns=topology.node_column_dtypes())
    if not program.simple:
        spec = with_edge_columns(spec, topology.edge_column_dtypes())
    return plan_of(spec, columns, wide_ids=wide)


def _figures(step: Superstep) -> dict[str, float]:
    """Return what a progress line shows of a superstep."""
    rate = step.messages / step.seconds if step.seconds > 0 else 0.0
    return {"frontier": step.senders, "messages": step.messages, "edges/s": rate}


def table_of(plan: ProgramPlan, topology: Topology, states: Mapping[str, Any]) -> pa.Table:
    """Return a run's result: states ``[N]`` by name as columns beside the ids."""
    return topology.table(state_columns(plan, topology, states))


def state_columns(
    plan: ProgramPlan, topology: Topology, states: Mapping[str, Any]
) -> dict[str, Any]:
    """Return states as result columns, masked where they are null; vectors as lists."""
    spec = plan.spec
    shown = spec.program.results or tuple(spec.states)
    columns: dict[str, Any] = {}
    for name in shown:
        if name not in spec.states:
            raise ConfigError(
                f"{spec.name}.results names {name!r}, the states are "
                f"{', '.join(spec.states)}"
            )
        state, values = spec.states[name], states[name]
        column = "value" if len(shown) == 1 else name
        if state.num_components:
            flat = pa.array(values.reshape(-1))
            columns[column] = pa.FixedSizeListArray.from_arrays(flat, state.num_components)
        elif state.dtype is NodeId:
            columns[column] = _ids_at(topology, values)
        elif state.null is None:
            columns[column] = values
        else:
            columns[column] = np.ma.masked_array(values, mask=values == state.null)
    return columns


def _ids_at(topology: Topology, ranks: Any) -> Any:
    import pyarrow.compute as pc

    missing = ranks < 0
    if not missing.any():
        return topology.numbers.ids_at_ranks(ranks)
    ids = topology.numbers.ids_at_ranks(np.where(missing, 0, ranks))
    return pc.if_else(pa.array(missing), None, ids.combine_chunks())
