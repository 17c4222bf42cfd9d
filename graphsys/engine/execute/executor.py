"""The loop of a run: phases, rounds, and when it ends."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError
from graphsys.core.events import observing_seconds, span
from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan
from graphsys.engine.execute.arrays import Allocate, RunArrays
from graphsys.engine.execute.frontier import Frontier
from graphsys.engine.execute.launch import Launch
from graphsys.engine.execute.launcher import Kernels, Launcher
from graphsys.engine.execute.rows import RowProvider
from graphsys.engine.execute.supersteps import Supersteps
from graphsys.engine.program import (
    NO_NODE,
    NodeId,
    NumberedStates,
    VertexProgram,
    own_id,
)
from graphsys.engine.topology import Topology


@dataclass(frozen=True, slots=True)
class Superstep:
    """What one superstep did.

    Attributes:
        number: Counted from 0 over all phases.
        phase: Name of its phase.
        mode: ``pull``, ``push``, ``pull rows`` or ``local``.
        senders: Nodes that sent.
        messages: Edges along which they sent.
        changed: Nodes whose state changed.
        seconds: How long it took, without compiling.
    """

    number: int
    phase: str
    mode: str
    senders: int
    messages: int
    changed: int
    seconds: float


@dataclass
class Position:
    """Where a run stands; with the states and the frontier, all that a resume needs.

    Attributes:
        superstep: Supersteps done.
        phase: Number of the phase.
        step: Supersteps done in this phase.
        round_changes: Nodes changed since the first phase began.
        is_done: Whether the run has ended.
        converged: Whether no limit cut it short.
        totals: The aggregators' last totals.
    """

    superstep: int = 0
    phase: int = 0
    step: int = 0
    round_changes: int = 0
    is_done: bool = False
    converged: bool = True
    totals: dict[str, float] = field(default_factory=dict)


class Executor:
    """One run of a program.

    Args:
        program: Parameters.
        plan: The lowered program.
        kernels: Its kernels.
        topology: The graph.
        rows: Its rows.
        num_threads: Threads; all cores by default.
        max_supersteps: End after so many.
        allocate: Where arrays of all nodes come from.
    """

    def __init__(
        self,
        program: VertexProgram,
        plan: ProgramPlan,
        kernels: Kernels,
        topology: Topology,
        rows: RowProvider,
        *,
        num_threads: int | None = None,
        max_supersteps: int | None = None,
        allocate: Allocate = np.zeros,
    ) -> None:
        self.program = program
        self.plan = plan
        self.topology = topology
        self.max_supersteps = max_supersteps
        self.arrays = RunArrays(plan, topology, allocate)
        self.launcher = Launcher(program, kernels, self.arrays, num_threads)
        self.supersteps = Supersteps(self.launcher, rows)
        self.at = Position(totals=self.launcher.totals)
        self.frontier: Frontier | None = None

    @property
    def compile_seconds(self) -> float:
        """Time spent compiling or loading compiled kernels so far."""
        return self.launcher.compile_seconds

    def close(self) -> None:
        """End the threads."""
        self.launcher.close()

    def run(self) -> Iterator[Superstep]:
        """Run to the end, yielding after every superstep."""
        program = self.program
        program.num_nodes = self.topology.num_nodes
        program.num_edges = self.topology.num_edges
        program.superstep_limit = self.max_supersteps
        program.totals = self.at.totals
        # A resumed run has its states and frontier from the checkpoint.
        if self.at.superstep == 0:
            self.frontier = self._start()
        while not self.at.is_done:
            phase = self.plan.phases[self.at.phase]
            program.superstep = self.launcher.superstep = self.at.superstep
            if self.frontier is None:
                self.frontier = self.supersteps.everyone(phase)
            # Programs may read totals in their first superstep, before any has been summed.
            if self.at.step == 0 and phase.functions["aggregate"] and not self.at.totals:
                self.supersteps.initial_totals(phase)
            number = self.at.superstep
            begin, compiling = time.perf_counter(), self.compile_seconds
            # The profile's own work and compiling are no part of a superstep's time.
            begin -= observing_seconds()
            with span("superstep", number=number, phase=phase.spec.name) as seen:
                step = self.supersteps.run(phase, self.frontier)
                compiling = self.compile_seconds - compiling
                seen.add(
                    mode=step.mode,
                    senders=step.senders,
                    messages=step.messages,
                    changed=step.changed,
                    compile_s=compiling,
                )
            seconds = time.perf_counter() - begin - observing_seconds() - compiling
            # Moved on before the yield: who stops or saves between two supersteps sees a
            # whole state.
            self.frontier = step.frontier
            self._advance(phase, step.changed)
            yield Superstep(
                number,
                phase.spec.name,
                step.mode,
                step.senders,
                step.messages,
                step.changed,
                seconds,
            )

    # ---- the end of phases, rounds and runs

    def _advance(self, phase: PhasePlan, changed: int) -> None:
        """Move on to the next superstep, phase or round, or to the end."""
        at, program = self.at, self.plan.spec
        at.superstep += 1
        at.step += 1
        at.round_changes += changed
        self.program.superstep = at.superstep
        self._go_on(phase, changed)
        limit = self.max_supersteps
        if limit is None:
            limit = program.max_supersteps
        if limit is not None and at.superstep >= limit and not at.is_done:
            at.is_done, at.converged = True, False

    def _go_on(self, phase: PhasePlan, changed: int) -> None:
        at, program = self.at, self.plan.spec
        if phase.spec.repeat and not self._phase_ends(phase, changed):
            return
        self.frontier = None
        at.phase, at.step = at.phase + 1, 0
        if at.phase < len(self.plan.phases):
            return
        at.phase = 0
        ends = program.until is not None and bool(program.until(self.program, at.totals))
        at.is_done = not program.loop or ends or at.round_changes == 0
        at.round_changes = 0

    def _phase_ends(self, phase: PhasePlan, changed: int) -> bool:
        spec, limit = phase.spec, self.phase_limit(phase)
        if spec.until is not None and bool(spec.until(self.program, self.at.totals)):
            return True
        limited = limit is not None and self.at.step >= limit
        if spec.schedule == "changed":
            ends = self.frontier is not None and self.frontier.count == 0
        else:
            ends = changed == 0 and spec.until is None and spec.max_supersteps is None
        if limited and not ends and not self._is_counted(phase):
            self.at.converged = False
        return ends or limited

    def phase_limit(self, phase: PhasePlan) -> int | None:
        """Return after how many supersteps a phase ends.

        That of a program of one phase is the program's: what the run is told replaces it.
        Where there are several, it replaces that of a phase that ends by ``until``, less
        what the phases after it take: so their results are whole.
        """
        own, told = phase.spec.max_supersteps, self.max_supersteps
        if told is None or self._is_counted(phase):
            return own
        if self.plan.spec.program.phases is None:
            return None
        following = self.plan.phases[self.at.phase + 1 :]
        if self.plan.spec.loop or any(later.spec.repeat for later in following):
            return None
        begun = self.at.superstep - self.at.step
        return max(told - len(following) - begun, 1)

    def _is_counted(self, phase: PhasePlan) -> bool:
        """Whether a phase asks for a number of supersteps: no failure to converge."""
        spec = phase.spec
        is_only = self.plan.spec.program.phases is None and self.max_supersteps is not None
        return spec.until is None and spec.max_supersteps is not None and not is_only

    # ---- the beginning

    def _start(self) -> Frontier | None:
        """Set the first states; return the first senders, or None for all."""
        states = self.arrays.states
        for name, state in self.plan.spec.states.items():
            if state.default is own_id:
                states[name][:] = self.arrays.column("id")
            else:
                states[name].fill(state.default)
        if self.plan.init is not None:
            block = self.supersteps.all_nodes
            self.launcher.call(Launch(kernel="init", block=block, phase=None))
        first = self.program.start(self.topology)
        if first is None:
            return None
        if not isinstance(first, NumberedStates):
            first = self._numbered(first)
        for name, values in first.values.items():
            self._require_state(name)
            self._require_whole(name, values)
            self._require_shape(name, values, len(first.numbers))
            states[name][first.numbers] = values
        return self.supersteps.listed(self.plan.phases[0], first.numbers)

    def _numbered(self, first: Mapping[Any, Mapping[str, Any]]) -> NumberedStates:
        """Set states given by user id; return which nodes they were."""
        if not isinstance(first, Mapping) or not all(
            isinstance(values, Mapping) for values in first.values()
        ):
            code = type(self.program).start.__code__
            raise ConfigError(
                f"{code.co_filename}:{code.co_firstlineno}: start of {self.plan.spec.name} "
                f"returns {first!r:.60}, expected {{node: {{state: value}}}}, None for all "
                "nodes, or gs.NumberedStates"
            )
        numbers = [self.topology.number(node) for node in first]
        for number, values in zip(numbers, first.values(), strict=True):
            for name, value in values.items():
                self._require_state(name)
                self._require_shape(name, value)
                self.arrays.states[name][number] = self._first_value(name, value)
        return NumberedStates(distinct(np.asarray(numbers, dtype=np.int64)), {})

    def _require_state(self, name: str) -> None:
        if name not in self.arrays.states:
            raise ConfigError(
                f"start of {self.plan.spec.name} sets {name!r}, the states are "
                f"{', '.join(self.arrays.states)}"
            )

    def _require_whole(self, name: str, values: Any) -> None:
        """Refuse fractions where a state holds integers, instead of cutting them off."""
        dtype, given = self.arrays.states[name].dtype, np.asarray(values)
        if dtype.kind in "iub" and given.dtype.kind == "f" and np.any(given % 1 != 0):
            raise ConfigError(
                f"start of {self.plan.spec.name} gives {name!r} of {dtype} a value that is "
                f'no integer; round it, or declare {name} = gs.state("float64")'
            )

    def _require_shape(self, name: str, values: Any, *lengths: int) -> None:
        """Refuse arrays that are not one value, or vector, for each node."""
        size = self.plan.components_of(name)
        found, whole = np.shape(values), (*lengths, size) if size else lengths
        if found in ((), whole) or values is None:
            return
        raise ConfigError(
            f"start of {self.plan.spec.name} gives {name!r} values of shape {found}, "
            f"expected {whole or 'a number'}{' or one number' if whole else ''}"
        )

    def _first_value(self, name: str, value: Any) -> Any:
        """Return a value of ``start`` as the state holds it: a user id by its place."""
        if self.plan.spec.states[name].dtype is not NodeId:
            self._require_whole(name, value)
            return value
        if value is None:
            return NO_NODE
        number, rank = self.topology.number(value), self.topology.rank
        return number if rank is None else rank[number]
