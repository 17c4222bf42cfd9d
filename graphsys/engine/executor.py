"""Running a compiled program superstep by superstep on the CPU.

Dense supersteps pull: every row gathers the messages of its neighbours, and the node is
updated in the same pass. Sparse ones push along the out rows of the frontier into an
accumulator, then update the nodes that were touched. Which one is taken depends on the
edges of the frontier; the results do not.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.events import count as emit_count
from graphsys.core.events import span
from graphsys.core.threads import ThreadTeam
from graphsys.engine.frontier import Frontier
from graphsys.engine.lowering import NODE_COLUMNS
from graphsys.engine.plan import PhasePlan, ProgramPlan
from graphsys.engine.program import VertexProgram
from graphsys.engine.rows import RowBlock, Rows
from graphsys.engine.topology import Direction, Topology
from graphsys.kernels.cpu.bitmap import clear_listed, mark_neighbours, num_words

PULL_SHARE = 10
"""Pull when the frontier's edges are more than one of so many."""
_SMALL_WORK = 30_000
"""Edges below which a second thread costs more than it saves."""
_LIST_CHUNK = 512

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Superstep:
    """What one superstep did.

    Attributes:
        number: Counted from 0 over all phases.
        phase: Name of its phase.
        mode: ``pull``, ``push``, ``pull rows`` or ``local``.
        frontier: Nodes that sent.
        messages: Edges along which they sent.
        changed: Nodes whose state changed.
        seconds: How long it took.
    """

    number: int
    phase: str
    mode: str
    frontier: int
    messages: int
    changed: int
    seconds: float


@dataclass
class Position:
    """Where a run stands; with the states and the frontier, all that a resume needs."""

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
        kernels: The kernels by name, with the names of their arguments.
        topology: The graph.
        rows: Its rows.
        num_threads: Threads; all cores by default.
        allocate: Where arrays of all nodes come from: ``(length, dtype)`` to zeros.
    """

    def __init__(
        self,
        program: VertexProgram,
        plan: ProgramPlan,
        kernels: Mapping[str, tuple[Any, tuple[str, ...]]],
        topology: Topology,
        rows: Rows,
        *,
        num_threads: int | None = None,
        max_supersteps: int | None = None,
        allocate: Callable[[int, Any], Array] = np.zeros,
    ) -> None:
        self.program = program
        self.plan = plan
        self.topology = topology
        self.rows = rows
        self.max_supersteps = max_supersteps
        self.compile_seconds = 0.0
        self.at = Position()
        self._kernels = kernels
        self._allocate = allocate
        self._team = ThreadTeam(num_threads)
        self._one = ThreadTeam(1)
        self._counter = np.zeros(1, dtype=np.int64)
        self._cursor = np.zeros(1, dtype=np.int64)
        self._next_cursor = np.zeros(1, dtype=np.int64)
        self._compiled: set[tuple[Any, ...]] = set()
        n = self.num_nodes = topology.num_nodes
        self.states: dict[str, Array] = {
            name: allocate(n, dtype) for name, dtype in plan.dtypes.items()
        }
        self._next: dict[str, Array] = {}
        self._arrays: dict[str, Array] = {}
        self._nothing = np.empty(0, dtype=np.int64)
        self._no_words = np.zeros(1, dtype=np.uint64)
        self._scalars = self._parameters()
        self.frontier: Frontier = Frontier(n)

    # ---- the loop

    def run(self) -> Iterator[Superstep]:
        """Run to the end, yielding after every superstep."""
        program = self.program
        program.num_nodes, program.num_edges = self.num_nodes, self.topology.num_edges
        is_new = not self.at.superstep
        first = self._start() if is_new else None
        while not self.at.is_done:
            phase = self.plan.phases[self.at.phase]
            program.superstep = self.at.superstep
            if self.at.step == 0:
                self.frontier = first or self._everyone(phase)
                first = None
                if phase.functions["aggregate"] is not None and not self.at.totals:
                    self._initial_totals(phase)
            begin = time.perf_counter()
            compiling = self.compile_seconds
            with span("superstep", phase=phase.spec.name):
                done = self._superstep(phase)
            seconds = time.perf_counter() - begin - (self.compile_seconds - compiling)
            mode, sent, messages, changed = done
            emit_count("messages", messages)
            step = Superstep(
                self.at.superstep, phase.spec.name, mode, sent, messages, changed, seconds
            )
            self._advance(phase, changed)
            yield step

    def close(self) -> None:
        """End the threads."""
        self._team.close()

    def _advance(self, phase: PhasePlan, changed: int) -> None:
        """Move on to the next superstep, phase or round, or to the end."""
        at, spec, program = self.at, phase.spec, self.plan.spec
        at.superstep += 1
        at.step += 1
        at.round_changes += changed
        self.program.superstep = at.superstep
        if self.max_supersteps is not None and at.superstep >= self.max_supersteps:
            at.is_done, at.converged = True, False
            return
        if spec.repeat and not self._phase_ends(phase, changed):
            return
        at.phase, at.step = at.phase + 1, 0
        if at.phase < len(self.plan.phases):
            return
        at.phase = 0
        ends = program.until is not None and bool(program.until(self.program, at.totals))
        at.is_done = not program.loop or ends or at.round_changes == 0
        at.round_changes = 0

    def _phase_ends(self, phase: PhasePlan, changed: int) -> bool:
        spec = phase.spec
        if spec.until is not None and bool(spec.until(self.program, self.at.totals)):
            return True
        limited = spec.max_supersteps is not None and self.at.step >= spec.max_supersteps
        if spec.schedule == "changed":
            ends = self.frontier.count == 0
        else:
            ends = changed == 0 and spec.until is None and spec.max_supersteps is None
        if limited and not ends:
            self.at.converged = False
        return ends or limited

    def _start(self) -> Frontier | None:
        """Set the first states; return the first senders, or None for all."""
        for name, state in self.plan.spec.states.items():
            if repr(state.default) == "gs.own_id":
                self.states[name][:] = self._column("id")
            else:
                self.states[name].fill(state.default)
        if self.plan.init is not None:
            self._call("init", self._all_rows, parallel=True)
        first = self.program.start(self.topology)
        if first is None:
            return None
        numbers = []
        for node, values in first.items():
            number = self.topology.number(node)
            numbers.append(number)
            for name, value in values.items():
                if name not in self.states:
                    raise ConfigError(
                        f"start of {self.plan.spec.name} sets {name!r}, the states are "
                        f"{', '.join(self.states)}"
                    )
                self.states[name][number] = value
        listed = np.unique(np.asarray(numbers, dtype=np.int64))
        edges = int(self._out_going(self.plan.phases[0])[listed].sum())
        return Frontier.from_list(self.num_nodes, listed, edges)

    def _everyone(self, phase: PhasePlan) -> Frontier:
        return Frontier.all(self.num_nodes, self._num_edges(phase))

    def _initial_totals(self, phase: PhasePlan) -> None:
        result = self._over_nodes(f"totals_{phase.number}", phase, parallel=True)
        self._take_totals(result)

    # ---- one superstep

    def _superstep(self, phase: PhasePlan) -> tuple[str, int, int, int]:
        """Run one superstep; return mode, senders, messages and changes."""
        senders = self._senders(phase)
        if phase.kind == "local":
            return self._local(phase, senders)
        is_dense = phase.spec.schedule == "all" or phase.kind == "mode"
        is_dense = is_dense or senders.edges * PULL_SHARE > self._num_edges(phase)
        if not is_dense and not phase.can_push and self._num_pull_blocks(phase) > 1:
            is_dense = True
        sent, messages = senders.count, senders.edges
        if is_dense:
            return "pull", sent, messages, self._pull(phase, senders)
        if phase.can_push:
            return "push", sent, messages, self._push(phase, senders)
        return "pull rows", sent, messages, self._pull_rows(phase, senders)

    def _senders(self, phase: PhasePlan) -> Frontier:
        """Return the nodes of the frontier for which ``active`` holds."""
        frontier = self.frontier
        if phase.spec.schedule == "all":
            frontier = self._everyone(phase)
        if phase.functions["active"] is None:
            return frontier
        words = np.zeros(num_words(self.num_nodes), dtype=np.uint64)
        extra = {"senders": words, "senders_out_going": self._out_going(phase)}
        result = self._call(
            f"active_{phase.number}", self._all_rows, parallel=True, phase=phase, **extra
        )
        total = result.sum(axis=0)
        found = Frontier.from_words(self.num_nodes, words, int(total[0]), int(total[1]))
        if frontier.everyone:
            return found
        both = words & frontier.words()
        count = int(np.bitwise_count(both).sum())
        found = Frontier.from_words(self.num_nodes, both, count, 0)
        listed = found.listed()
        found.edges = int(self._out_going(phase)[listed].sum())
        return found

    def _local(self, phase: PhasePlan, senders: Frontier) -> tuple[str, int, int, int]:
        changed = self._fresh_words(phase)
        result = self._over_nodes(
            f"apply_{phase.number}", phase, parallel=True, changed=changed, senders=senders
        )
        self._swap(phase.buffered)
        return "local", senders.count, 0, self._finish(phase, result, changed)

    def _pull(self, phase: PhasePlan, senders: Frontier) -> int:
        number = phase.number
        changed = self._fresh_words(phase)
        if phase.kind in ("node", "mode"):
            self._call(
                f"send_{number}",
                self._all_rows,
                parallel=True,
                phase=phase,
                senders=senders,
            )
        results = []
        stored = self._stored(phase)
        directions = self._pull_directions(phase)
        whole = len(directions) == 1 and self.rows.are_whole(directions[0])
        if phase.kind == "mode":
            blocks = [next(self.rows.blocks(d)) for d in directions]
            results.append(self._mode(phase, blocks))
        else:
            kernel = f"pull_{number}" if whole else f"gather_{number}"
            touched = self._zero_words("touched_words")
            for direction in directions:
                for block in self.rows.blocks(direction):
                    result = self._call(
                        kernel, block, parallel=True, phase=phase, senders=senders,
                        changed=changed, touched=touched, **stored,
                    )  # fmt: skip
                    results.append(result)
            if not whole:
                results = [
                    self._over_nodes(
                        f"apply_{number}", phase, parallel=True, changed=changed,
                        touched=touched,
                    )
                ]  # fmt: skip
        self._swap(phase.buffered)
        self._keep_stored(phase, stored)
        return self._finish(phase, np.concatenate(results), changed)

    def _mode(self, phase: PhasePlan, blocks: list[RowBlock]) -> Array:
        degrees = [self._degree_along(d) for d in self._pull_directions(phase)]
        longest = int(np.sum(degrees, axis=0).max()) if self.num_nodes else 0
        other = blocks[1] if len(blocks) > 1 else None
        return self._call(
            f"pull_{phase.number}", blocks[0], parallel=True, phase=phase,
            max_degree=max(longest, 1), scratch_size=2 ** (2 * longest + 1).bit_length(),
            other_indptr=blocks[0].indptr[:1] if other is None else other.indptr,
            other_indices=blocks[0].indices[:0] if other is None else other.indices,
        )  # fmt: skip

    def _push(self, phase: PhasePlan, senders: Frontier) -> int:
        touched, touched_list = self._zero_words("touched_words"), self._touched_list
        parallel = senders.edges + senders.count > _SMALL_WORK
        self._cursor[0] = 0
        for block, nodes in self._listed_by_block(phase, senders):
            self._call(
                f"push_{phase.number}", block, parallel=parallel, phase=phase, nodes=nodes,
                touched=touched, touched_list=touched_list, cursor=self._cursor,
            )  # fmt: skip
        return self._update_listed(phase, f"apply_{phase.number}", self._all_rows)

    def _pull_rows(self, phase: PhasePlan, senders: Frontier) -> int:
        """Pull the rows of all that hear from the frontier."""
        touched, touched_list = self._zero_words("touched_words"), self._touched_list
        self._cursor[0] = 0
        if phase.kind == "node":
            self._call(
                f"send_{phase.number}", self._all_rows, parallel=True, phase=phase,
                senders=senders,
            )  # fmt: skip
        for block, nodes in self._listed_by_block(phase, senders):
            self._counter[0] = 0
            self._one.run(
                mark_neighbours, self._counter, nodes, len(nodes), block.indptr,
                block.indices, block.row_base, block.column_base, touched, touched_list,
                self._cursor,
            )  # fmt: skip
        block = next(self.rows.blocks(self._pull_directions(phase)[0]))
        return self._update_listed(phase, f"pull_{phase.number}", block, senders)

    def _update_listed(
        self,
        phase: PhasePlan,
        kernel: str,
        block: RowBlock,
        senders: Frontier | None = None,
    ) -> int:
        """Update the touched nodes and make those that changed the next frontier."""
        touched = self._touched_list[: int(self._cursor[0])]
        fresh = np.empty(len(touched), dtype=np.int64)
        self._next_cursor[0] = 0
        copied = phase.buffered if kernel.startswith("pull") else self._read_at(phase)
        for name in copied:
            np.copyto(self._next_of(name), self.states[name])
        in_place = phase.buffered - copied
        result = self._call(
            kernel, block, parallel=len(touched) > _SMALL_WORK // 8, phase=phase,
            nodes=touched, senders=senders, next_list=fresh, in_place=in_place,
        )  # fmt: skip
        self._swap(copied)
        clear_listed(touched, len(touched), self._zero["touched_words"])
        total = self._take_totals(result)
        fresh = fresh[: int(self._next_cursor[0])]
        if phase.spec.schedule == "changed":
            self.frontier = Frontier.from_list(self.num_nodes, fresh, int(total[1]))
        return int(total[0])

    def _finish(self, phase: PhasePlan, result: Array, changed: Any) -> int:
        total = self._take_totals(result)
        if phase.spec.schedule == "changed":
            self.frontier = Frontier.from_words(
                self.num_nodes, changed, int(total[0]), int(total[1])
            )
        return int(total[0])

    def _take_totals(self, result: Array) -> Array:
        """Reduce the chunks' parts in their order; keep the aggregators' totals."""
        combine = {"sum": np.sum, "minimum": np.min, "maximum": np.max}
        total = np.zeros(2)
        if len(result):
            total = result[:, :2].sum(axis=0)
            for i, (name, kind) in enumerate(self.plan.spec.aggregators.items()):
                reduce: Any = combine[kind.operation]
                self.at.totals[name] = float(reduce(result[:, i + 2]))
        return total

    # ---- calling kernels

    def _over_nodes(self, kernel: str, phase: PhasePlan, **options: Any) -> Array:
        return self._call(kernel, self._all_rows, phase=phase, **options)

    def _call(
        self,
        kernel: str,
        block: RowBlock,
        *,
        parallel: bool,
        phase: PhasePlan | None = None,
        nodes: Array | None = None,
        **extra: Any,
    ) -> Array:
        """Bind a kernel's arguments by name, run it, return the chunks' parts."""
        function, names = self._kernels[kernel]
        listed = nodes is not None
        chunks = len(block.bounds) - 1
        if listed:
            chunks = -(-len(nodes) // _LIST_CHUNK) if nodes is not None else 0
        partial = np.zeros((chunks, 2 + len(self.plan.spec.aggregators)))
        binder = _Binder(
            self, block, phase, partial, nodes, extra, kernel.startswith("push")
        )
        arguments = [binder.value(name) for name in names]
        self._counter[0] = 0
        key = (kernel, block.key, listed)
        if key not in self._compiled:
            self._compile(function, arguments)
            self._compiled.add(key)
        team = self._team if parallel and chunks > 1 else self._one
        team.run(function, *arguments)
        return partial

    def _compile(self, function: Any, arguments: list[Any]) -> None:
        import numba

        begin = time.perf_counter()
        function.compile((numba.int64, *(numba.typeof(value) for value in arguments)))
        self.compile_seconds += time.perf_counter() - begin

    def _parameters(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, kind in self.plan.spec.parameters.items():
            value = getattr(self.program, name)
            if getattr(kind, "__name__", "") == "NodeId":
                number = self.topology.number(value)
                rank = self.topology.rank
                value = number if rank is None else int(rank[number])
            values[f"param__{name}"] = value
        return values

    # ---- arrays over all nodes

    @cached_property
    def _all_rows(self) -> RowBlock:
        """A block without edges that covers all nodes."""
        indptr = np.zeros(self.num_nodes + 1, dtype=np.uint32)
        return RowBlock(("nodes",), 0, self.num_nodes, 0, indptr, np.empty(0, np.uint32))

    @cached_property
    def _touched_list(self) -> Array:
        return self._allocate(self.num_nodes, np.int64)

    @cached_property
    def _zero(self) -> dict[str, Array]:
        return {}

    def _zero_words(self, name: str) -> Array:
        """Return a bitmap that is clear, and is cleared by its users."""
        if name not in self._zero:
            self._zero[name] = np.zeros(num_words(self.num_nodes), dtype=np.uint64)
        return self._zero[name]

    def _fresh_words(self, phase: PhasePlan) -> Array:
        if phase.spec.schedule == "all":
            return self._no_words
        return np.zeros(num_words(self.num_nodes), dtype=np.uint64)

    def _message(self, phase: PhasePlan, kind: str, i: int) -> Array:
        """Return the i-th array of messages (in, out), accumulators or sent messages."""
        dtype = phase.message_dtypes[i]
        kind = "message" if kind in ("in", "out") else kind
        name = f"{kind}_{dtype.name}_{i}_{phase.number if kind != 'message' else ''}"
        if name not in self._arrays:
            self._arrays[name] = self._allocate(self.num_nodes, dtype)
            if kind == "acc":
                self._arrays[name].fill(phase.identity[i])
        return self._arrays[name]

    def _column(self, name: str) -> Array:
        """Return a read-only column of all nodes: ids as ranks, degrees."""
        if name not in self._arrays:
            dtype, topology = self.plan.id_dtype, self.topology
            if name in ("id", "by_rank"):
                ranks = topology.rank if name == "id" else topology.by_rank
                values = np.arange(self.num_nodes) if ranks is None else ranks
            elif name == "degree" and topology.is_directed:
                values = topology.out_degree + topology.in_degree
            else:
                values = topology.in_degree if name == "in_degree" else topology.out_degree
            self._arrays[name] = values.astype(dtype)
        return self._arrays[name]

    def _next_of(self, name: str) -> Array:
        if name not in self._next:
            self._next[name] = self._allocate(self.num_nodes, self.plan.dtypes[name])
        return self._next[name]

    def _swap(self, names: frozenset[str]) -> None:
        for name in names:
            self.states[name], self._next[name] = self._next[name], self.states[name]

    def _read_at(self, phase: PhasePlan) -> frozenset[str]:
        functions = [f for f in phase.functions.values() if f is not None]
        return frozenset(n for f in functions for n in f.reads("at")) & phase.buffered

    # ---- directions

    def _pull_directions(self, phase: PhasePlan) -> list[Direction]:
        if phase.spec.direction == "both" and self.topology.is_directed:
            return ["in", "out"]
        return ["out" if phase.spec.direction == "in" else "in"]

    def _push_directions(self, phase: PhasePlan) -> list[Direction]:
        opposite: dict[Direction, Direction] = {"in": "out", "out": "in"}
        return [opposite[direction] for direction in self._pull_directions(phase)]

    def _num_pull_blocks(self, phase: PhasePlan) -> int:
        return sum(self.rows.num_blocks(d) for d in self._pull_directions(phase))

    def _degree_along(self, direction: Direction) -> Array:
        return self._column("in_degree" if direction == "in" else "out_degree")

    def _out_going(self, phase: PhasePlan) -> Array:
        """Return every node's number of messages when it sends."""
        directions = self._push_directions(phase)
        return self._column("degree" if len(directions) == 2 else f"{directions[0]}_degree")

    def _num_edges(self, phase: PhasePlan) -> int:
        if phase.kind == "local":
            return 0
        return self.topology.num_edges * len(self._pull_directions(phase))

    def _listed_by_block(
        self, phase: PhasePlan, senders: Frontier
    ) -> Iterator[tuple[RowBlock, Array]]:
        """Yield the blocks that hold rows of the senders, with those senders."""
        listed = senders.listed()
        for direction in self._push_directions(phase):
            if self.rows.num_blocks(direction) == 1:
                yield next(self.rows.blocks(direction)), listed
                continue
            listed = np.sort(listed)
            for block in self.rows.blocks(direction):
                ends = (block.row_base, block.row_base + block.num_rows)
                low, high = np.searchsorted(listed, ends)
                if low < high:
                    yield block, listed[low:high]

    # ---- states of edges

    @cached_property
    def reverse_of(self) -> Array:
        """Place of the edge back for every entry of the pulled rows; -1 without one."""
        raise NotImplementedError

    def edge_values(self, name: str) -> Array:
        """Return an edge state, in the order of the rows that the first phase pulls."""
        key = f"edge__{name}"
        if key not in self._arrays:
            state = self.plan.spec.edge_states[name]
            values = self._allocate(self.topology.num_edges, np.dtype(state.dtype))
            values.fill(state.default)
            self._arrays[key] = values
        return self._arrays[key]

    def _stored(self, phase: PhasePlan) -> dict[str, Array]:
        name = phase.spec.stores
        if name is None:
            return {}
        key = f"stored__{name}"
        if key not in self._arrays:
            self._arrays[key] = np.empty_like(self.edge_values(name))
        return {key: self._arrays[key]}

    def _keep_stored(self, phase: PhasePlan, stored: dict[str, Array]) -> None:
        for key in stored:
            name = f"edge__{phase.spec.stores}"
            self._arrays[name], self._arrays[key] = self._arrays[key], self._arrays[name]


@dataclass
class _Binder:
    """Finds what a kernel's argument stands for; see :mod:`graphsys.engine.cpu_source`."""

    run: Executor
    block: RowBlock
    phase: PhasePlan | None
    partial: Array
    nodes: Array | None
    extra: dict[str, Any]
    is_push: bool

    def value(self, name: str) -> Any:
        if name in self.extra:
            return self.extra[name]
        kind, _, rest = name.partition("__")
        if rest:
            return self._named(kind, rest, name)
        kind, _, digit = name.rpartition("_")
        if digit.isdigit() and self.phase is not None:
            is_far = kind == "in" or (kind == "acc" and self.is_push)
            return self._sliced(
                self.run._message(self.phase, kind, int(digit)),
                self.block.column_base if is_far else self.block.row_base,
            )
        return self._plain(name)

    def _named(self, kind: str, rest: str, name: str) -> Any:
        run, block = self.run, self.block
        if kind in ("row", "col", "at", "new"):
            array = self._array(rest, is_new=kind == "new")
            if kind == "at":
                return array
            return self._sliced(
                array, block.column_base if kind == "col" else block.row_base
            )
        if kind == "edge":
            if rest in block.columns:
                return block.columns[rest]
            return run.edge_values(rest)
        if kind == "run":
            values = {
                "num_nodes": run.num_nodes,
                "num_edges": run.topology.num_edges,
                "superstep": run.at.superstep,
            }
            return values[rest]
        if kind == "total":
            return run.at.totals.get(rest, 0.0)
        return run._scalars[name]

    def _array(self, name: str, *, is_new: bool) -> Array:
        run = self.run
        if is_new and name not in self.extra.get("in_place", ()):
            return run._next_of(name)
        if name in run.states:
            return run.states[name]
        if name == "out_going" and self.phase is not None:
            return run._out_going(self.phase)
        if name in NODE_COLUMNS or name == "by_rank":
            return run._column(name)
        return run._column(name)

    def _sliced(self, array: Array, base: int) -> Array:
        return array[base:] if base else array

    def _plain(self, name: str) -> Any:
        run, block = self.run, self.block
        listed = self.nodes is not None
        senders: Frontier | None = self.extra.get("senders")
        if name == "everyone":
            return senders is None or senders.everyone
        if name == "active":
            ignored = senders is None or senders.everyone
            return run._no_words if ignored or senders is None else senders.words()
        if name == "delta_tolerance":
            return float(run.program.delta_tolerance)
        if name == "reverse_of":
            return run.reverse_of
        values: dict[str, Any] = {
            "counter": run._counter,
            "bounds": block.bounds,
            "num_chunks": len(self.partial),
            "listed": listed,
            "nodes": self.nodes if listed else run._nothing,
            "num_listed": 0 if self.nodes is None else len(self.nodes),
            "row_base": block.row_base,
            "column_base": block.column_base,
            "indptr": block.indptr,
            "indices": block.indices,
            "partial": self.partial,
            "next_list": run._nothing,
            "next_cursor": run._next_cursor,
            "changed": run._no_words,
            "touched": run._no_words,
        }
        return values[name]
