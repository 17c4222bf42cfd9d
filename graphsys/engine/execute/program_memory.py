"""How many bytes a program takes on a graph, told without reading edges; where they lie."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from graphsys.core.compiling import WorkKernels
from graphsys.core.memory import scratch_is_memory
from graphsys.engine.codegen.cpu import module_source
from graphsys.engine.codegen.lowered import EDGE_COLUMNS, Lowered
from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan
from graphsys.engine.execute.arrays import Allocate
from graphsys.engine.execute.directions import pull_directions, push_directions
from graphsys.engine.execute.rows import MemoryBlocks, RowProvider
from graphsys.engine.execute.stream import PIECE_BYTES, PagedBlocks, StreamedBlocks
from graphsys.engine.execute.supersteps import PULL_SHARE
from graphsys.engine.memory_plan import (
    MemoryPlan,
    Mode,
    RowBytes,
    base_bytes,
    fitting,
    none_fits,
    num_simple_entries,
    reasons_of,
    row_texts,
    simple_bytes,
    united_bytes,
)
from graphsys.engine.program import NodeId
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction, IndexBlock
from graphsys.generated.modules import load_module
from graphsys.storage.scratch import ScratchArrays

_COPIED_SHARE = 5
"""With paged states at most one of so many bytes of them is copied at a time."""
_LIST_SHARE = 64
"""With paged states a list holds at most one of so many nodes."""


class MemoryEstimate:
    """Bytes that a program takes on a graph; reads sizes, not edges."""

    def __init__(self, plan: ProgramPlan, topology: Topology) -> None:
        self.plan = plan
        self.topology = topology
        self.num_nodes = topology.num_nodes
        self.is_simple = plan.spec.program.simple
        self._shape = topology
        if self.is_simple:
            self._shape = Topology(topology.numbers, is_directed=False)

    @cached_property
    def num_edges(self) -> int:
        """Entries of the out rows; of a simple graph at most."""
        if self.is_simple:
            return num_simple_entries(self.topology)
        return self.topology.num_edges

    # ---- what lies in arrays of all nodes

    @cached_property
    def node_arrays(self) -> dict[str, int]:
        """Bytes per node by array, as :class:`RunArrays` makes them."""
        plan = self.plan
        sizes = {
            name: dtype.itemsize * max(plan.components_of(name), 1)
            for name, dtype in plan.dtypes.items()
        }
        found = {f"state {name}": size for name, size in sizes.items()}
        for phase in plan.phases:
            for name in phase.buffered:
                found[f"next {name}"] = sizes[name]
            length, kind_of = max(phase.num_components, 1), ""
            if phase.num_components:
                kind_of = f" ({length},)"
            for i, dtype in enumerate(phase.message_dtypes):
                kinds = ["message"] if phase.kind in ("node", "mode") else []
                if phase.kind != "mode" and self._accumulates(phase):
                    kinds.append(f"accumulator of phase {phase.number}")
                if plan.spec.delta:
                    kinds.append(f"sent by phase {phase.number}")
                size, what = dtype.itemsize * length, f"{dtype.name}{kind_of} {i}"
                found.update({f"{kind} {what}": size for kind in kinds})
            if phase.spec.schedule == "changed":
                found["list of touched nodes"] = 8
        found.update(dict.fromkeys(self._columns(), plan.id_dtype.itemsize))
        stored = {given.name for f in self._functions() for given in f.all_inputs}
        stored -= {*plan.dtypes, *found}
        columns = plan.spec.node_columns
        found.update({n: columns[n].itemsize for n in sorted(stored) if n in columns})
        return found

    def _accumulates(self, phase: PhasePlan) -> bool:
        """Whether sums are kept beside the states: not where each row is pulled at once."""
        if phase.spec.schedule == "changed" or self.plan.spec.delta:
            return True
        directions = pull_directions(self._shape, phase)
        if len(directions) > 1 or self.is_simple or self.topology.graph is None:
            return len(directions) > 1
        return len({block.edge_type for block in self._blocks(directions[0])}) > 1

    def _columns(self) -> set[str]:
        names = {
            given.name
            for function in self._functions()
            for given in function.all_inputs
            if given.name in ("id", "by_rank", "degree", "out_degree", "in_degree")
        }
        if self._uses_ids:
            names.add("id")
        for phase in self.plan.phases:
            if phase.is_mean:
                names.add(phase.in_coming)
            rows = push_directions(self._shape, phase) if phase.message_dtypes else []
            if rows:
                names.add("degree" if len(rows) == 2 else f"{rows[0]}_degree")
        return names

    def _functions(self) -> Iterator[Lowered]:
        if self.plan.init is not None:
            yield self.plan.init
        for phase in self.plan.phases:
            yield from (f for f in phase.functions.values() if f is not None)

    @property
    def _uses_ids(self) -> bool:
        kinds = [state.dtype for state in self.plan.spec.states.values()]
        return NodeId in (*kinds, *self.plan.spec.parameters.values())

    @cached_property
    def node_bytes(self) -> int:
        """Bytes of all arrays of nodes."""
        return sum(self.node_arrays.values()) * self.num_nodes

    @cached_property
    def ranking(self) -> int:
        """Bytes that sorting the ids takes for a while, 0 where they are in order."""
        names = self._columns()
        if not names & {"id", "by_rank"}:
            return 0
        return 0 if self.topology.numbers.are_ordered else 32 * self.num_nodes

    @cached_property
    def result_bytes(self) -> int:
        """Bytes of the result beyond the states: masks, and ids instead of places."""
        shown = self.plan.spec.program.results or tuple(self.plan.spec.states)
        states = [self.plan.spec.states[n] for n in shown if n in self.plan.spec.states]
        per_node = 0
        for state in states:
            if state.dtype is NodeId:
                per_node += 26
            elif state.null is not None:
                per_node += 10
        return per_node * self.num_nodes

    # ---- lists, bits, rows

    def list_bytes(self, limit: int | None) -> int:
        """Bytes of frontiers as lists and as bits; lists are seldom half as long."""
        if all(phase.spec.schedule == "all" for phase in self.plan.phases):
            return 0
        most = self.num_edges // PULL_SHARE if limit is None else limit
        return 12 * min(most, self.num_nodes) + 5 * (self.num_nodes // 8 + 8)

    @cached_property
    def directions(self) -> set[Direction]:
        """Return the directions whose rows are read."""
        found: set[Direction] = set()
        for phase in self.plan.phases:
            if phase.message_dtypes:
                found.update(pull_directions(self._shape, phase))
            if phase.message_dtypes and phase.spec.schedule == "changed":
                found.update(push_directions(self._shape, phase))
        return found if self._shape.is_directed else {"out"}

    @cached_property
    def columns(self) -> dict[str, np.dtype[Any]]:
        """Dtypes of the edges' columns that the program reads."""
        names = {n for f in self._functions() for n in f.reads("edge", "reverse")}
        return {
            n: self.plan.edge_columns[n]
            for n in EDGE_COLUMNS
            if n in names and n in self.plan.edge_columns
        }

    @cached_property
    def index_bytes(self) -> int:
        """Bytes of the rows as they lie on disk, columns that are read included."""
        if self.topology.graph is None:
            return 0
        return sum(self._block_bytes(b) for d in self.directions for b in self._blocks(d))

    def _block_bytes(self, block: IndexBlock) -> int:
        width = block.index.indices.itemsize
        width += sum(dtype.itemsize for dtype in self.columns.values())
        return int(block.index.indptr.nbytes + width * len(block.index.indices))

    def _blocks(self, direction: Direction) -> list[IndexBlock]:
        return self.topology.blocks(direction)

    @cached_property
    def rows(self) -> RowBytes:
        """Bytes of rows united, and made simple, beside the store's files."""
        if not self.is_simple:
            return united_bytes(
                self.topology,
                sorted(self.directions),
                in_place=not self.must_unite,
                columns=tuple(self.columns),
            )
        return simple_bytes(self.topology)

    @cached_property
    def edge_state_bytes(self) -> int:
        """Bytes of states of edges, twice where they are stored anew, and the way back.

        Of columns once, besides the largest in the order of the buckets and among rows
        that are united anew to bring it into theirs.
        """
        states = self.plan.spec.edge_states.values()
        sizes = [np.dtype(s.dtype).itemsize for s in states if not s.is_column]
        columns = [np.dtype(s.dtype).itemsize for s in states if s.is_column]
        entries = self.num_edges * len(self.directions)
        asks_back = any(f.reads("reverse") for f in self._functions())
        back = 8 if sizes or asks_back else 0
        held = (2 * sum(sizes) + sum(columns) + back) * entries
        if not columns:
            return held if sizes else 0
        ids = self.plan.id_dtype.itemsize
        return held + (3 * max(columns) + ids) * self.num_edges

    @cached_property
    def cut_bytes(self) -> int:
        """Bytes of one bucket's rows, cut for paged states."""
        if self.topology.graph is None:
            return 0
        width = 4 + (
            8 + sum(d.itemsize for d in self.columns.values()) * 2 if self.columns else 0
        )
        most = 0
        for direction in self.directions:
            for block in self._blocks(direction):
                sources = self.topology.graph.num_partitions(
                    block.edge_type.dst_type
                    if block.side == "out"
                    else block.edge_type.src_type
                )
                share = 2 if sources > 1 else 0  # buckets are uneven: twice the mean
                entries = share * len(block.index.indices) // sources
                most = max(most, entries * width + 16 * len(block.index.indptr))
        return most

    @cached_property
    def mode_bytes(self) -> int:
        """Bytes of rows that are united piece by piece for ``gs.mode``."""
        graph = self.topology.graph
        if graph is None or all(phase.kind != "mode" for phase in self.plan.phases):
            return 0
        if len(graph.edge_types) < 2:
            return 0  # a pair of blocks at most, visited as they are
        sides = 2 * len(graph.edge_types)
        return (sides + 4) * PIECE_BYTES

    @property
    def why_copied(self) -> str:
        """Why the rows of a store are copied, for people; empty where they are not."""
        if self.is_simple:
            return "the program wants the simple undirected graph"
        if self.must_unite and self.topology.graph is not None:
            return "states of edges need rows one behind the other"
        found = (self.topology.why_copied(d, tuple(self.columns)) for d in self.directions)
        return next((reason for reason in found if reason), "")

    @property
    def must_unite(self) -> bool:
        """Whether only united rows will do."""
        if self.topology.graph is None or self.is_simple:
            return True
        return any(phase.uses_edge_states for phase in self.plan.phases)


def choose(plan: ProgramPlan, topology: Topology, budget: int | None) -> MemoryPlan:
    """Choose how a program runs on a graph within a budget.

    Args:
        plan: The program.
        topology: The graph.
        budget: Bytes of anonymous memory that the process may take; None for no limit.

    Raises:
        BudgetError: no way fits; the message names the smallest amount that works.
    """
    estimate = MemoryEstimate(plan, topology)
    needs = {
        mode: needed + kernels_of(plan, mode).compile_bytes()
        for mode, needed in _needs(estimate, base_bytes()).items()
    }
    mode = fitting(needs, budget)
    if mode is None:
        raise none_fits(
            f"{plan.spec.name} on {estimate.num_nodes} nodes and {estimate.num_edges} "
            "edges",
            needs,
            budget or 0,
            _why(estimate),
        )
    unites, mapped = (
        estimate.must_unite,
        0 if estimate.rows.entries else estimate.index_bytes,
    )
    overflows = budget is not None and needs["memory"] + mapped > budget
    if mode == "memory" and overflows and not unites:
        mode = "streamed"  # the rows are mapped as they are: read them in order, once
    texts = row_texts(
        estimate.index_bytes,
        is_mapped=mapped > 0,
        unites=unites,
        why=estimate.why_copied if estimate.rows.entries else "",
    )
    return MemoryPlan(
        mode=mode,
        needs=needs,
        budget=budget,
        index_bytes=estimate.index_bytes,
        reasons=reasons_of(mode, needs, budget, texts),
        unites=unites,
    )


def kernels_of(plan: ProgramPlan, mode: Mode) -> WorkKernels:
    """Return the kernels of a program that runs of a mode call."""
    module = load_module(module_source(plan))
    kernels = [kernel for kernel, _ in module.KERNELS.values()]
    return WorkKernels(f"{module.__name__}-{mode}", lambda: kernels)


def _needs(estimate: MemoryEstimate, base: int) -> dict[Mode, int]:
    topology, nodes = estimate.topology, estimate.node_bytes
    base += estimate.edge_state_bytes + (8 * estimate.num_nodes if estimate.ranking else 0)
    base += estimate.plan.spec.program.start_bytes * estimate.num_nodes
    states = nodes + estimate.list_bytes(None) + estimate.result_bytes
    rows = estimate.rows
    beside: dict[Mode, int] = {"memory": states + rows.in_memory}
    if estimate.is_simple:
        beside["memory"] = rows.made_before(states, in_memory=True)
    if topology.graph is not None and estimate.must_unite:
        if not scratch_is_memory():
            beside["streamed"] = states + rows.in_scratch
            if estimate.is_simple:
                beside["streamed"] = rows.made_before(states, in_memory=False)
    elif topology.graph is not None:
        beside["streamed"] = states + estimate.mode_bytes
        lists = estimate.list_bytes(list_limit(topology.num_nodes))
        paged = lists + estimate.cut_bytes + estimate.mode_bytes + estimate.result_bytes
        paged += nodes // _COPIED_SHARE + (nodes if scratch_is_memory() else 0)
        beside["paged"] = paged
    # ids are sorted before anything else is written
    return {mode: base + max(size, estimate.ranking) for mode, size in beside.items()}


def _why(estimate: MemoryEstimate) -> str:
    if estimate.topology.graph is None:
        return " (the rows must be in memory: the graph is)"
    return " (edges have states, which are in memory)" if estimate.edge_state_bytes else ""


def list_limit(num_nodes: int) -> int:
    """Return how long lists of nodes may be where states are paged."""
    return max(num_nodes // _LIST_SHARE, 1 << 12)


def rows_of(choice: MemoryPlan, plan: ProgramPlan, topology: Topology) -> RowProvider:
    """Return the rows of a graph as chosen."""
    estimate = MemoryEstimate(plan, topology)
    columns = estimate.columns
    if choice.mode == "memory" or choice.unites:
        return MemoryBlocks(topology, None if estimate.must_unite else tuple(columns))
    spare = float("inf") if choice.budget is None else choice.budget - choice.needed
    kind = StreamedBlocks if choice.mode == "streamed" else PagedBlocks
    return kind(topology, columns, keeps_bytes=max(spare, 0))


def allocator_of(choice: MemoryPlan) -> Allocate:
    """Return where the arrays of all nodes come from."""
    if choice.mode != "paged":
        return np.zeros
    return ScratchArrays().zeros
