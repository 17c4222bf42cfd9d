"""A vertex program made ready: how it will use memory, how it is run, what explains it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from graphsys.core.memory import format_bytes
from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan
from graphsys.engine.execute.prepared import PreparedProgram, prepare
from graphsys.engine.execute.program_memory import MemoryEstimate
from graphsys.engine.execute.supersteps import PULL_SHARE
from graphsys.engine.memory_plan import MemoryPlan
from graphsys.engine.program import VertexProgram
from graphsys.engine.result import Result
from graphsys.engine.run import check_settings, run_prepared
from graphsys.engine.topology import Topology
from graphsys.storage.reader import GraphReader

_CHECKED = ("device", "strategy", "device_memory", "checkpoint", "resume", "check")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """A vertex program compiled for a graph, with all that a run is told.

    Attributes:
        name: Of the algorithm.
        work: The program.
        settings: Arguments of ``gs.run``.
    """

    name: str
    work: PreparedProgram
    settings: Mapping[str, Any]
    implementation: ClassVar[str] = "program"

    @property
    def choice(self) -> MemoryPlan:
        """How it will use memory."""
        return self.work.choice

    def run(self, progress: Progress = IN_NOTEBOOKS) -> Result:
        """Run the program as it was prepared."""
        done = run_prepared(self.work, progress=progress, **self.settings)
        return replace(done, algorithm=self.name)

    def explanation(self) -> str:
        """Tell what :meth:`run` will do."""
        return explanation(self.work, device=self.settings.get("device", "cpu"))


def prepare_program(
    program: VertexProgram | type[VertexProgram],
    graph: GraphReader | Topology | str | os.PathLike[str],
    *,
    name: str = "",
    memory: int | str | None = None,
    **settings: Any,
) -> ProgramRun:
    """Compile a program for a graph and decide how it uses memory.

    Args:
        program: The program with its parameters; a class where all have defaults.
        graph: An open graph, its path, or edges in memory.
        name: What the result calls it; the name of its class by default.
        memory: Budget of anonymous memory, as for ``gs.run``.
        settings: Other arguments of ``gs.run``.

    Raises:
        CompileError: the program cannot be compiled.
        ConfigError: settings that do not go together.
        BudgetError: the budget is too small; the message names one that works.
    """
    check_settings(**{n: settings[n] for n in _CHECKED if n in settings})
    work = prepare(
        program,
        graph,
        memory=memory,
        device=settings.get("device", "cpu"),
        max_supersteps=settings.get("max_supersteps"),
    )
    return ProgramRun(name=name or work.plan.spec.name, work=work, settings=settings)


def explain(
    program: VertexProgram | type[VertexProgram],
    graph: GraphReader | Topology | str | os.PathLike[str],
    *,
    memory: int | str | None = None,
    device: str = "cpu",
) -> str:
    """Tell what ``gs.run`` would do: messages, push or pull, storage, memory, kernels.

    Args:
        program: The program with its parameters; a class where all have defaults.
        graph: An open graph, its path, or edges in memory.
        memory: Budget of anonymous memory, as for ``gs.run``.
        device: ``cpu`` or ``cuda``.

    Returns:
        Some lines of text.

    Raises:
        CompileError: the program cannot be compiled.
        BudgetError: it does not fit the budget.
    """
    work = prepare(program, graph, memory=memory, device=device)
    return explanation(work, device=device)


def explanation(work: PreparedProgram, *, device: str = "cpu") -> str:
    """Tell what ``execute`` will do with prepared work."""
    plan, topology = work.plan, work.topology
    estimate = MemoryEstimate(plan, topology)
    kind = "directed" if topology.is_directed else "undirected"
    head = [
        f"{plan.spec.name} on {topology.num_nodes} nodes, {topology.num_edges} {kind} edges"
    ]
    if plan.spec.program.simple:
        head.append("runs on the simple undirected graph, made first")
    head += [f"states: {_states(plan)}", *_columns(estimate)]
    for phase in plan.phases:
        own = [name for name in work.kernels if name.endswith(f"_{phase.number}")]
        head += _phase(plan, phase, own)
    if device == "cuda":
        return "\n".join([*head, *_DEVICE])
    return "\n".join([*head, *_storage(estimate, work.choice)])


_DEVICE = (
    "storage: arrays of nodes on the device; rows too, or streamed beyond device_memory",
    "strategy: auto takes the least work predicted from the degrees of the rows",
    "launches: small supersteps share one where the program allows; until is asked later",
)


def _storage(estimate: MemoryEstimate, choice: MemoryPlan) -> list[str]:
    arrays = [f"{name} {size} B" for name, size in estimate.node_arrays.items()]
    per_node = sum(estimate.node_arrays.values())
    total = format_bytes(estimate.node_bytes)
    return [
        *choice.reasons,
        f"arrays of nodes: {per_node} B each, {total} ({', '.join(arrays)})",
    ]


def _states(plan: ProgramPlan) -> str:
    texts = []
    for name, dtype in plan.dtypes.items():
        size = plan.components_of(name)
        texts.append(f"{name} {dtype.name}{f' ({size},)' if size else ''}")
    return ", ".join(texts)


def _columns(estimate: MemoryEstimate) -> list[str]:
    read = [f"{name} {dtype.name}" for name, dtype in estimate.columns.items()]
    return [f"edges: reads {', '.join(read)}"] if read else []


def _phase(plan: ProgramPlan, phase: PhasePlan, kernels: list[str]) -> list[str]:
    spec = phase.spec
    lines = [f"phase {spec.name}: schedule {spec.schedule}, direction {spec.direction}"]
    if phase.kind != "local":
        lines[0] += f", combine {phase.combiner}"
    lines += [f"  {reason}" for reason in phase.reasons]
    if phase.can_push and spec.schedule == "changed":
        lines.append(f"  pull when the frontier has more than 1/{PULL_SHARE} of the edges")
    if phase.monotone:
        lines.append(f"  messages that do not improve {phase.monotone} are dropped at once")
    if plan.spec.delta:
        lines.append("  differences of messages are sent")
    if phase.buffered:
        names = ", ".join(sorted(phase.buffered))
        lines.append(f"  held twice, read while written: {names}")
    return [*lines, f"  kernels: {', '.join(kernels)}"]
