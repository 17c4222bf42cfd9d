"""Supersteps of one worker: the streamed run over its own partitions, and exchanges.

A worker's kernels, rows and loop are those of one machine (:mod:`graphsys.engine.execute`).
What it adds: before it pulls, it brings copies of its neighbors' messages or states up to
date; after it pushed, what was combined here for nodes of others leaves for them, one value
a node; and what a superstep counts is summed over all workers.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphsys.core.memory import available_bytes
from graphsys.core.threads import num_cores
from graphsys.distributed.ghosts import (
    Ghosts,
    clear_bits,
    has_bits,
    neighbors_of_others,
    set_bits,
)
from graphsys.distributed.local_edges import LocalEdges, LocalSimple
from graphsys.distributed.ownership import LocalBlocks, Ownership, span_blocks
from graphsys.distributed.transport.exchange import Exchange
from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan
from graphsys.engine.execute.arrays import Array, RunArrays, edge_rows
from graphsys.engine.execute.directions import pull_directions, push_directions
from graphsys.engine.execute.executor import Executor, Position
from graphsys.engine.execute.frontier import Frontier, StepResult
from graphsys.engine.execute.launch import Launch
from graphsys.engine.execute.launcher import Kernels, Launcher
from graphsys.engine.execute.program_memory import MemoryEstimate
from graphsys.engine.execute.rows import RowBlock, all_nodes
from graphsys.engine.execute.supersteps import Supersteps
from graphsys.engine.program import VertexProgram
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.bits import as_mask, empty_bits, from_mask

_COMBINED = ("sum", "minimum", "maximum", "any")
"""Combiners by which messages become one before they leave."""
_SHORT_CUTS = ("same_", "accepting_")
"""Kernels that ask all nodes at once, which here are not all in one place."""


_NONE: Mapping[str, Array] = {}


class SharedFrontier(Frontier):
    """The own part of a set of nodes, which knows how large the whole set is.

    Args:
        own: The own part.
        count: Nodes of the whole.
        edges: Entries of their rows.
    """

    def __init__(self, own: Frontier, count: int, edges: int) -> None:
        super().__init__(own.num_nodes, count, edges, everyone=own.everyone)
        self.own = own

    def words(self) -> Any:
        """Return the own part as bits."""
        return self.own.words()

    def listed(self) -> Any:
        """Return the own part as a list."""
        return self.own.listed()


class LocalLauncher(Launcher):
    """Calls kernels that visit all nodes on the own ones."""

    spans: tuple[tuple[int, int], ...] = ()
    _blocks: list[RowBlock] | None = None

    def call(self, launch: Launch) -> Array:
        """Run a kernel; see :meth:`Launcher.call`."""
        everything = all_nodes(self.arrays.topology)
        if launch.block is not everything or launch.nodes is not None:
            return super().call(launch)
        if self._blocks is None:
            self._blocks = span_blocks(self.arrays.topology, self.spans)
        parts = [np.zeros((0, self._width))]
        for block in self._blocks:
            parts.append(super().call(replace(launch, block=block)))
        return np.concatenate(parts)

    def has(self, kernel: str) -> bool:
        """Return whether there is a kernel that a worker may use."""
        return super().has(kernel) and not kernel.startswith(_SHORT_CUTS)

    def arguments_of(self, phase: PhasePlan, *kernels: str) -> set[str]:
        """Return the names of the arguments of some of a phase's kernels."""
        names = {f"{kernel}_{phase.number}" for kernel in kernels} & self._kernels.keys()
        return {argument for name in names for argument in self._kernels[name][1]}


class WorkerSupersteps(Supersteps):
    """Runs the own part of supersteps.

    Args:
        launcher: Calls the kernels.
        rows: The own rows.
        exchange: With the other workers.
        ownership: Who owns which nodes.

    Attributes:
        compile_seconds: For how long supersteps stood still because some worker compiled.
    """

    launcher: LocalLauncher

    def __init__(
        self,
        launcher: LocalLauncher,
        rows: LocalBlocks,
        exchange: Exchange,
        ownership: Ownership,
    ) -> None:
        super().__init__(launcher, rows)
        self.exchange = exchange
        self.ownership = ownership
        self.spans = ownership.spans[exchange.rank]
        self._own = empty_bits(self.num_nodes)
        for low, high in self.spans:
            set_bits(self._own, np.arange(low, high, dtype=np.int64))
        plan = self.arrays.plan
        self._read_at = sorted(
            {
                name.removeprefix("at__")
                for phase in plan.phases
                for name in launcher.arguments_of(
                    phase, "pull", "gather", "apply", "totals", "active", "send", "push"
                )
                if name.startswith("at__")
                if name.removeprefix("at__") in self.arrays.states
            }
        )
        self.ghosts = Ghosts.of_nodes(exchange, ownership, self._wanted(rows))
        self._ways_back: Ghosts | None = None
        if isinstance(self.topology, LocalEdges):
            shared = self.topology.shared_entries(edge_rows(plan, self.topology))
            self._ways_back = Ghosts(exchange, *shared)
        self._old_ways_back = set(plan.spec.edge_states)
        self._shown: set[str] = set()
        self._whole = (0, 0)
        self._compiled = self.compile_seconds = 0.0

    def _wanted(self, rows: LocalBlocks) -> Any:
        if self._read_at:  # node.at(id) may be anyone
            everyone = np.arange(self.num_nodes, dtype=np.int64)
            return everyone[~has_bits(self._own, everyone)]
        directions = set()
        for phase in self.arrays.plan.phases:
            if phase.kind != "local":
                directions.update(pull_directions(self.topology, phase))
                if self._states_pushed_to(phase):
                    directions.update(push_directions(self.topology, phase))
        found = [
            (part.rows.indices, part.rows.column_base)
            for direction in sorted(directions)
            for part in rows.parts(direction)
        ]
        return neighbors_of_others(found, self.spans, self.num_nodes)

    @property
    def bound_bytes(self) -> int:
        """Bytes of one value of each phase's messages for every copy held here.

        What a superstep in which all nodes send must move into this worker at least, by
        the partitioning: the largest over the phases; and one state of each way back.
        """
        widths = [
            sum(d.itemsize for d in p.message_dtypes) * max(p.num_components, 1)
            for p in self.arrays.plan.phases
        ]
        found = self.ghosts.count * max(widths, default=0)
        if self._ways_back is not None:
            states = self.arrays.plan.spec.edge_states.values()
            width = max(np.dtype(state.dtype).itemsize for state in states)
            found += self._ways_back.count * width
        return found

    # ---- what base classes ask

    def listed(self, phase: PhasePlan, nodes: Array) -> Frontier:
        """Return the own ones of some nodes as a frontier that knows them all."""
        whole = super().listed(phase, nodes)
        mine = nodes[has_bits(self._own, np.asarray(nodes, dtype=np.int64))]
        own = Frontier.from_list(self.num_nodes, mine, 0)
        return SharedFrontier(own, whole.count, whole.edges)

    def run(self, phase: PhasePlan, frontier: Frontier) -> StepResult:
        """Run the own part of one superstep."""
        if self._read_at:
            self._update_states(self._read_at)
        for name in phase.buffered:  # a worker without nodes swaps them too
            self.arrays.next_of(name)
        step = super().run(phase, frontier)
        changed, edges = self._whole
        own = step.frontier
        if not own.everyone:
            own = SharedFrontier(own, changed, edges)
        return replace(step, changed=changed, frontier=own)

    def initial_totals(self, phase: PhasePlan) -> None:
        """Compute the aggregators on the states as they are."""
        if self._read_at:
            self._update_states(self._read_at)
        super().initial_totals(phase)

    def _senders(self, phase: PhasePlan, frontier: Frontier) -> Frontier:
        found = super()._senders(phase, frontier)
        if found.everyone or isinstance(found, SharedFrontier):
            return found
        sums = self.exchange.gather(np.array([found.count, found.edges], float)).sum(axis=0)
        return SharedFrontier(found, int(sums[0]), int(sums[1]))

    def _is_dense(self, phase: PhasePlan, senders: Frontier) -> bool:
        return super()._is_dense(phase, senders) or not self._can_push(phase)

    def _can_push(self, phase: PhasePlan) -> bool:
        states = self._states_pushed_to(phase)
        known = {phase.monotone} if phase.monotone else set()
        return phase.can_push and phase.combiner in _COMBINED and states <= known

    def _states_pushed_to(self, phase: PhasePlan) -> set[str]:
        """Return the states of receivers that a push looks at."""
        names = self.launcher.arguments_of(phase, "push")
        return {n for n in _after("col__", names) if n in self.arrays.states}

    # ---- pull

    def _pull(self, phase: PhasePlan, sending: Frontier) -> StepResult:
        names = self.launcher.arguments_of(phase, "pull", "gather")
        read = {n for n in _after("col__", names) if n in self.arrays.states}
        if "reverse_of" in names:
            self._update_ways_back(_after("edge__", names) & self._old_ways_back)
        if sending.everyone:
            self._update_states(read)
        else:
            is_sending = as_mask(sending.words(), self.num_nodes)
            self._update_states(read, {"the senders": is_sending})
            mixed = Frontier.from_words(self.num_nodes, from_mask(is_sending), 0, 0)
            sending = SharedFrontier(mixed, sending.count, sending.edges)
        step = super()._pull(phase, sending)
        if phase.spec.stores is not None:
            self._old_ways_back.add(phase.spec.stores)
        return step

    def _update_ways_back(self, names: set[str]) -> None:
        """Bring copies of edges' states up to date that were stored since."""
        if names and self._ways_back is not None:
            self._ways_back.update({n: self.arrays.edge_values(n) for n in sorted(names)})
            self._old_ways_back -= names

    def _send(self, phase: PhasePlan, senders: Frontier) -> None:
        """Compute the own messages; fetch those of neighbors that changed."""
        words = self._own if senders.everyone else senders.words() & self._own
        super()._send(phase, Frontier.from_words(self.num_nodes, words, 0, 0))
        width = range(len(phase.message_dtypes))
        messages = [self.arrays.message(phase, "in", i) for i in width]
        size = phase.num_components
        self.ghosts.update({f"in_{i}_{a.dtype}_{size}": a for i, a in enumerate(messages)})

    def _update_states(self, names: Any, others: Mapping[str, Array] = _NONE) -> None:
        """Bring copies of states up to date, and in the same message those of others."""
        states = {name: self.arrays.states[name] for name in sorted(names)}
        if states or others:
            self.ghosts.update({**states, **others})
            self._shown.update(states)

    # ---- push

    def _push(self, phase: PhasePlan, senders: Frontier) -> StepResult:
        states = self._states_pushed_to(phase)
        if not states <= self._shown:
            self._update_states(states)
        else:  # older copies of what only falls (or rises) drop less, and nothing wrongly
            self.ghosts.put_back({name: self.arrays.states[name] for name in states})
        return super()._push(phase, senders)

    def _update(
        self, mode: str, phase: PhasePlan, senders: Frontier, kernel: str, visits: Any
    ) -> StepResult:
        """Send what was combined for others, take what they did; then update own nodes."""
        acc = self.arrays.message(phase, "acc", 0)
        touched = self.arrays.touched_list[: int(self._cursor[0])]
        is_own = has_bits(self._own, touched)
        theirs, mine = touched[~is_own], touched[is_own]
        owners = self.ownership.owner_of(theirs)
        outgoing = []
        for other in self.exchange.others:
            nodes = np.sort(theirs[owners == other])
            outgoing.append(
                (nodes.astype(np.uint32 if self._is_narrow else np.int64), acc[nodes])
            )
        # What leaves is taken out here, or the next push would send it again.
        if phase.combiner != "any":
            acc[theirs] = phase.identity[0]
        clear_bits(self._touched, theirs)
        fresh = [mine]
        for nodes, values in self.exchange.all_to_all(outgoing):
            nodes = nodes.astype(np.int64)
            # In the order of the workers, so that sums are rounded alike in every run.
            is_new = ~has_bits(self._touched, nodes)
            _combine(phase.combiner, acc, nodes, values, is_new)
            set_bits(self._touched, nodes[is_new])
            fresh.append(nodes[is_new])
        mine = np.concatenate(fresh)
        self.arrays.touched_list[: len(mine)] = mine
        self._cursor[0] = len(mine)
        own = self.arrays.touched_list[: len(mine)]
        return super()._update(mode, phase, senders, kernel, [(self.all_nodes, own)])

    @property
    def _is_narrow(self) -> bool:
        return self.num_nodes < 2**32

    # ---- totals

    def _take_totals(self, phase: PhasePlan, parts: Array) -> tuple[int, int]:
        """Reduce the own parts, then those of all workers in their order."""
        own = super()._take_totals(phase, parts)
        kinds = self.arrays.plan.spec.aggregators
        if phase.functions["aggregate"] is None:
            kinds = {}
        totals = [self.launcher.totals[name] for name in kinds]
        compiled = self.launcher.compile_seconds - self._compiled
        self._compiled += compiled
        # One exchange for counts, totals and compile times: each costs a round of all
        # workers.
        rows = self.exchange.gather(np.array([*own, *totals, compiled], dtype=float))
        self.compile_seconds += float(rows[:, -1].max())
        with np.errstate(over="ignore", invalid="ignore"):
            for i, (name, kind) in enumerate(kinds.items()):
                column = rows[:, i + 2]
                least = kind.operation == "minimum"
                total = column.min() if least else column.max()
                if kind.operation == "sum":
                    total = column.sum()
                self.launcher.totals[name] = float(total)
        self._whole = (int(rows[:, 0].sum()), int(rows[:, 1].sum()))
        return own


def _after(prefix: str, names: Any) -> set[str]:
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


def _combine(kind: str, acc: Array, nodes: Array, values: Array, is_new: Array) -> None:
    """Combine values into those of some nodes, each given once."""
    if kind == "any":
        acc[nodes[is_new]] = values[is_new]
        return
    ufunc = {"sum": np.add, "minimum": np.minimum, "maximum": np.maximum}[kind]
    acc[nodes] = ufunc(acc[nodes], values)


class WorkerExecutor(Executor):
    """The loop of one worker, which takes every step together with the others.

    Args:
        program: Parameters.
        plan: The lowered program.
        kernels: Its kernels.
        topology: The graph.
        exchange: With the other workers.
        num_threads: Threads; all cores by default.
        max_supersteps: End after so many.
    """

    # not the base's: launcher and supersteps are a worker's own
    def __init__(
        self,
        program: VertexProgram,
        plan: ProgramPlan,
        kernels: Kernels,
        topology: Topology,
        exchange: Exchange,
        *,
        num_threads: int | None = None,
        max_supersteps: int | None = None,
    ) -> None:
        self.program = program
        self.plan = plan
        self.max_supersteps = max_supersteps
        self.exchange = exchange
        self.ownership = Ownership.of(topology, exchange.size)
        self.spans = self.ownership.spans[exchange.rank]
        if program.simple:
            topology = LocalSimple(topology, self.spans, exchange, num_threads)
        elif plan.spec.edge_states:
            owners = self.ownership.owner_of(np.arange(topology.num_nodes))
            directions = edge_rows(plan, topology)
            topology = LocalEdges(topology, exchange, owners, self.spans, directions)
        self.topology = topology
        columns = MemoryEstimate(plan, topology).columns  # others would be read for nothing
        room = _room_for_rows(exchange.size)
        self.rows = LocalBlocks(topology, self.spans, columns, room)
        self.arrays = RunArrays(plan, topology, np.zeros)
        self.launcher = LocalLauncher(program, kernels, self.arrays, num_threads)
        self.launcher.spans = self.spans
        self.supersteps: WorkerSupersteps = WorkerSupersteps(
            self.launcher, self.rows, exchange, self.ownership
        )
        self.at = Position(totals=self.launcher.totals)
        self.frontier = None

    def close(self) -> None:
        """End the threads."""
        super().close()
        self.rows.close()


def _room_for_rows(num_workers: int) -> int:
    """Return how much of the rows stays mapped: half of a worker's share of free memory.

    The other half is for states and messages. A machine has a worker a processor at most.
    """
    return available_bytes() // min(num_workers, num_cores()) // 2
