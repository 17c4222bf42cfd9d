"""``gs.run``: compile a program for a graph, run it, and return its states by user id."""

import os
import time
from typing import Any

import numpy as np

from graphsys.core.errors import ConfigError, NotConvergedError
from graphsys.core.progress import SILENT, Progress
from graphsys.engine.cpu_source import module_source
from graphsys.engine.executor import Executor
from graphsys.engine.plan import ProgramPlan, plan_of
from graphsys.engine.program import NodeId, VertexProgram
from graphsys.engine.program_cache import load_module
from graphsys.engine.result import Result
from graphsys.engine.rows import MemoryRows
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
    progress: Progress = SILENT,
) -> Result:
    """Run a vertex program.

    Args:
        program: The program with its parameters; a class where all have defaults.
        graph: An open graph, its path, or edges in memory.
        num_threads: Threads; all cores by default.
        max_supersteps: Stop after so many, whatever the program says.
        require_convergence: Raise instead of returning a result that a limit cut short.
        progress: Told about every superstep.

    Returns:
        One row per node: ``id`` and ``value``, or a column per state.

    Raises:
        CompileError: the program cannot be compiled.
        ConfigError: a parameter is missing or does not fit.
        NotConvergedError: with ``require_convergence``.
    """
    if isinstance(program, type):
        program = program()
    topology = Topology.of(graph)
    if program.simple:
        topology = topology.simplified()
    plan, kernels, seconds = compile_program(program, topology)
    executor = Executor(
        program,
        plan,
        kernels,
        topology,
        MemoryRows(topology),
        num_threads=num_threads,
        max_supersteps=max_supersteps,
    )
    begin = time.perf_counter()
    progress.stage(plan.spec.name, None, "supersteps")
    try:
        for _ in executor.run():
            progress.advance(1)
    finally:
        executor.close()
        progress.close()
    took = time.perf_counter() - begin - executor.compile_seconds
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
        result=program.answer(table),
    )


def compile_program(
    program: VertexProgram, topology: Topology
) -> tuple[ProgramPlan, dict[str, tuple[Any, tuple[str, ...]]], float]:
    """Lower a program for a graph and load its kernels.

    Returns:
        The plan, the kernels with the names of their arguments, and the seconds it took.
    """
    begin = time.perf_counter()
    columns: dict[str, np.dtype[Any]] = {}
    if topology.num_nodes:
        columns = {n: c.dtype for n, c in topology.csr("out").columns().items()}
    wide = max(topology.num_nodes, topology.num_edges) >= 2**31
    plan = plan_of(spec_of(type(program)), columns, wide_ids=wide)
    module = load_module(module_source(plan))
    return plan, module.KERNELS, time.perf_counter() - begin


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
