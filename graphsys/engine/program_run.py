"""A vertex program made ready: how it will use memory, and how it is run."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from graphsys.core.progress import IN_NOTEBOOKS, Progress
from graphsys.engine.execute.budget import MemoryPlan
from graphsys.engine.execute.prepared import PreparedProgram, prepare
from graphsys.engine.explain import explanation
from graphsys.engine.program import VertexProgram
from graphsys.engine.result import Result
from graphsys.engine.run import check_settings, run_prepared
from graphsys.engine.topology import Topology
from graphsys.storage.reader import GraphReader

_CHECKED = ("device", "strategy", "checkpoint", "resume", "check")


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
