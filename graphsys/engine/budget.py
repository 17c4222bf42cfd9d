"""What a run will take in memory, and where its rows and states therefore live.

Three ways, from the fastest to the smallest: rows united in memory; rows streamed from the
store's index files, states in memory; states in scratch files too, visited partition by
partition. All give the same results. What is counted is anonymous memory; pages of mapped
files belong to the page cache.
"""

import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from graphsys.core.errors import BudgetError
from graphsys.core.memory import available_bytes, format_bytes, resident_bytes
from graphsys.core.types import number_dtype
from graphsys.engine.arrays import Allocate
from graphsys.engine.directions import pull_directions, push_directions
from graphsys.engine.lowering import EDGE_COLUMNS, Lowered
from graphsys.engine.plan import ProgramPlan
from graphsys.engine.program import NodeId
from graphsys.engine.rows import MemoryRows, Rows
from graphsys.engine.stream import PagedRows, StreamRows
from graphsys.engine.supersteps import PULL_SHARE
from graphsys.engine.topology import Block, Direction, Topology
from graphsys.storage.scratch import Scratch
from graphsys.storage.transaction import disk_errors

Mode = Literal["memory", "streamed", "paged"]

COMPILE_BYTES = 96 << 20
"""What compiling the kernels takes on top of a process that has loaded the compiler."""
_LIST_SHARE = 64
"""With paged states a list holds at most one of so many nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How a run uses memory.

    Attributes:
        mode: ``memory``, ``streamed`` or ``paged``.
        needs: Bytes that each mode takes at its peak, the process itself included.
        budget: Bytes allowed, or None.
        index_bytes: Bytes of the rows on disk that will be read.
        reasons: What was decided and why, for people.
    """

    mode: Mode
    needs: Mapping[Mode, int]
    budget: int | None
    index_bytes: int
    reasons: tuple[str, ...]

    @property
    def needed(self) -> int:
        """Bytes at the peak of the chosen mode."""
        return self.needs[self.mode]


class Estimate:
    """Bytes that a program takes on a graph; reads sizes, not edges.

    Args:
        plan: The program.
        topology: The graph.
    """

    def __init__(self, plan: ProgramPlan, topology: Topology) -> None:
        self.plan = plan
        self.topology = topology
        self.num_nodes = topology.num_nodes

    # ---- what lies in arrays of all nodes

    @cached_property
    def node_arrays(self) -> dict[str, int]:
        """Bytes per node by array, as :class:`RunArrays` makes them."""
        plan = self.plan
        found = {f"state {name}": dtype.itemsize for name, dtype in plan.dtypes.items()}
        for phase in plan.phases:
            for name in phase.buffered:
                found[f"next {name}"] = plan.dtypes[name].itemsize
            for i, dtype in enumerate(phase.message_dtypes):
                kinds = ["message"] if phase.kind in ("node", "mode") else []
                if phase.kind != "mode":
                    kinds.append(f"accumulator of phase {phase.number}")
                if plan.spec.delta:
                    kinds.append(f"sent by phase {phase.number}")
                found.update({f"{kind} {dtype.name} {i}": dtype.itemsize for kind in kinds})
            if phase.spec.schedule == "changed":
                found["list of touched nodes"] = 8
        found.update(dict.fromkeys(self._columns(), plan.id_dtype.itemsize))
        return found

    def _columns(self) -> set[str]:
        names = {
            given.name
            for function in self._functions()
            for given in function.inputs
            if given.name in ("id", "by_rank", "degree", "out_degree", "in_degree")
        }
        if self._uses_ids:
            names.add("id")
        for phase in self.plan.phases:
            rows = push_directions(self.topology, phase) if phase.message_dtypes else []
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
    def rank_bytes(self) -> int:
        """Bytes that sorting the ids takes, 0 where they are in order already."""
        names = self._columns()
        if not names & {"id", "by_rank"}:
            return 0
        ordered = all(map(_ascends, self.topology.numbers.ids_by_type.values()))
        return 0 if ordered else 40 * self.num_nodes

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
        """Bytes of frontiers as lists and as bits."""
        most = self.topology.num_edges // PULL_SHARE if limit is None else limit
        return 24 * min(most, self.num_nodes) + 5 * (self.num_nodes // 8 + 8)

    @cached_property
    def directions(self) -> set[Direction]:
        """Return the directions whose rows are read."""
        found: set[Direction] = set()
        for phase in self.plan.phases:
            if phase.message_dtypes:
                found.update(pull_directions(self.topology, phase))
            if phase.message_dtypes and phase.spec.schedule == "changed":
                found.update(push_directions(self.topology, phase))
        return found if self.topology.is_directed else {"out"}

    @cached_property
    def columns(self) -> dict[str, np.dtype[Any]]:
        """Dtypes of the edges' columns that the program reads."""
        names = {n for f in self._functions() for n in f.reads("edge", "reverse")}
        return {n: self.plan.edge_columns[n] for n in EDGE_COLUMNS
                if n in names and n in self.plan.edge_columns}  # fmt: skip

    @cached_property
    def index_bytes(self) -> int:
        """Bytes of the rows as they lie on disk, columns that are read included."""
        if self.topology.graph is None:
            return 0
        return sum(self._block_bytes(b) for d in self.directions for b in self._blocks(d))

    def _block_bytes(self, block: Block) -> int:
        width = block.index.indices.itemsize
        width += sum(dtype.itemsize for dtype in self.columns.values())
        return int(block.index.indptr.nbytes + width * len(block.index.indices))

    def _blocks(self, direction: Direction) -> list[Block]:
        return self.topology.blocks(direction)

    @cached_property
    def united_bytes(self) -> int:
        """Bytes of rows united in memory, at the peak of uniting them."""
        if self.topology.graph is None:
            return 0
        kept, most = 0, 0
        width = number_dtype(max(self.num_nodes, 1)).itemsize
        width += sum(dtype.itemsize for dtype in self.plan.edge_columns.values())
        for direction in self.directions:
            blocks = self._blocks(direction)
            if len(blocks) == 1 and len(blocks[0].index.indptr) == self.num_nodes + 1:
                continue
            entries = sum(len(block.index.indices) for block in blocks)
            several = len({block.edge_type for block in blocks}) > 1
            copies = 2 * entries * (width + 8) if several else 0
            largest = max((len(block.index.indices) for block in blocks), default=0)
            kept += entries * width + 8 * self.num_nodes
            most = max(most, 16 * self.num_nodes + copies + largest * (8 + width))
        return kept + most

    @cached_property
    def edge_state_bytes(self) -> int:
        """Bytes of states of edges, twice where they are stored anew, and the way back."""
        sizes = [np.dtype(s.dtype).itemsize for s in self.plan.spec.edge_states.values()]
        if not sizes:
            return 0
        return (2 * sum(sizes) + 8) * self.topology.num_edges * len(self.directions)

    @cached_property
    def cut_bytes(self) -> int:
        """Bytes of one bucket's rows, cut for paged states."""
        if self.topology.graph is None:
            return 0
        width = 4 + (8 + sum(d.itemsize for d in self.columns.values()) * 2
                     if self.columns else 0)  # fmt: skip
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
        if all(phase.kind != "mode" for phase in self.plan.phases):
            return 0
        return 0 if self.topology.graph is None else 96 << 20

    @property
    def must_unite(self) -> bool:
        """Whether only rows in memory will do."""
        in_memory = self.topology.graph is None
        return in_memory or any(phase.uses_edge_states for phase in self.plan.phases)


def choose(plan: ProgramPlan, topology: Topology, budget: int | None) -> Choice:
    """Choose how a program runs on a graph within a budget.

    Args:
        plan: The program.
        topology: The graph.
        budget: Bytes of anonymous memory that the process may take; None for no limit.

    Raises:
        BudgetError: no way fits; the message names the smallest amount that works.
    """
    estimate = Estimate(plan, topology)
    base = resident_bytes() + COMPILE_BYTES
    common = base + estimate.rank_bytes + estimate.edge_state_bytes
    states = estimate.node_bytes + estimate.list_bytes(None) + estimate.result_bytes
    needs: dict[Mode, int] = {"memory": common + states + estimate.united_bytes}
    if not estimate.must_unite:
        needs["streamed"] = common + states + estimate.mode_bytes
        lists = estimate.list_bytes(list_limit(topology.num_nodes))
        paged = estimate.cut_bytes + estimate.mode_bytes + estimate.result_bytes
        needs["paged"] = common + lists + paged
    fits = [mode for mode, needed in needs.items() if budget is None or needed <= budget]
    if not fits:
        raise _too_small(plan, needs, budget or 0, estimate)
    mode = fits[0]
    mapped = estimate.index_bytes if estimate.united_bytes == 0 else 0
    overflows = budget is not None and needs["memory"] + mapped > budget
    if mode == "memory" and overflows and "streamed" in fits:
        mode = "streamed"  # the rows are mapped as they are: read them in order, once
    return Choice(
        mode=mode,
        needs=needs,
        budget=budget,
        index_bytes=estimate.index_bytes,
        reasons=_reasons(mode, needs, budget, estimate),
    )


def default_budget() -> int:
    """Return what the process may take when nobody says: what there is."""
    return available_bytes() + resident_bytes()


def check_simple(topology: Topology, budget: int) -> None:
    """Refuse to build the simple undirected graph where it does not fit.

    Raises:
        BudgetError: it needs more than the budget; the message says how much.
    """
    ends = topology.num_edges * (2 if topology.is_directed else 1)
    is_copied = topology.graph is not None and len(topology.blocks("out")) > 1
    needed = resident_bytes() + COMPILE_BYTES + 16 * topology.num_nodes + 4 * ends
    needed += 20 * ends if is_copied else 0
    if needed > budget:
        raise BudgetError(
            f"memory: the simple undirected graph of {topology.num_nodes} nodes and "
            f"{topology.num_edges} edges takes {format_bytes(needed)}, got "
            f"{format_bytes(budget)}; give memory={rounded(needed)!r} or more"
        )


def list_limit(num_nodes: int) -> int:
    """Return how long lists of nodes may be where states are paged."""
    return max(num_nodes // _LIST_SHARE, 1 << 12)


def rows_of(choice: Choice, plan: ProgramPlan, topology: Topology) -> Rows:
    """Return the rows of a graph as chosen."""
    if choice.mode == "memory":
        return MemoryRows(topology)
    columns = Estimate(plan, topology).columns
    spare = float("inf") if choice.budget is None else choice.budget - choice.needed
    kind = StreamRows if choice.mode == "streamed" else PagedRows
    return kind(topology, columns, gives_back=choice.index_bytes > spare)


def allocator_of(choice: Choice) -> Allocate:
    """Return where the arrays of all nodes come from."""
    if choice.mode != "paged":
        return np.zeros
    return ScratchArrays().zeros


class ScratchArrays:
    """Arrays in files without a name, whose space is free again when nobody uses them."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=scratch_folder(), prefix="graphsys-"))
        weakref.finalize(self, os.rmdir, self._folder)  # its files have no names
        self._scratch = Scratch(self._folder, 0)

    def zeros(self, length: int, dtype: Any) -> Any:
        """Return zeros ``[length]``; space is reserved, so that writing cannot fail.

        Raises:
            StorageFullError: the file system has no room.
        """
        with disk_errors(self._folder):
            return self._scratch.array(length, dtype)  # a new file reads as zeros


def scratch_folder() -> str:
    """Return ``$TMPDIR``, or ``/var/tmp``: ``/tmp`` is often memory itself."""
    if os.environ.get("TMPDIR") or not os.access("/var/tmp", os.W_OK):
        return tempfile.gettempdir()
    return "/var/tmp"


def _ascends(ids: pa.ChunkedArray) -> bool:
    """Whether integer ids are in order; strings are looked at as if they were not."""
    if not pa.types.is_integer(ids.type):
        return False
    last = None
    for chunk in ids.chunks:
        values = chunk.to_numpy()
        if not len(values):
            continue
        if last is not None and values[0] <= last:
            return False
        if not bool(np.all(values[1:] > values[:-1])):
            return False
        last = values[-1]
    return True


def _too_small(
    plan: ProgramPlan, needs: Mapping[Mode, int], budget: int, estimate: Estimate
) -> BudgetError:
    smallest = min(needs.values()) * 21 // 20  # the process itself varies a little
    why = ""
    if "paged" not in needs:
        why = " (the rows must be in memory: " + (
            "the graph is" if estimate.topology.graph is None else "edges have states"
        ) + ")"  # fmt: skip
    return BudgetError(
        f"memory: {plan.spec.name} on {estimate.num_nodes} nodes and "
        f"{estimate.topology.num_edges} edges needs {format_bytes(smallest)}{why}, "
        f"got {format_bytes(budget)}; give memory={rounded(smallest)!r} or more"
    )


def rounded(amount: int) -> str:
    """Write an amount of memory that is enough, in whole megabytes.

    Examples:
        >>> rounded(2_000_001)
        '3MB'
    """
    return f"{-(-amount // 10**6)}MB"


def _reasons(
    mode: Mode, needs: Mapping[Mode, int], budget: int | None, estimate: Estimate
) -> tuple[str, ...]:
    rows = format_bytes(estimate.index_bytes)
    texts = {
        "memory": "rows and states in memory",
        "streamed": f"rows streamed from {rows} of index files, states in memory",
        "paged": f"rows streamed from {rows} of index files, states in scratch files",
    }
    if mode == "memory" and not estimate.united_bytes and estimate.index_bytes:
        texts["memory"] = f"rows mapped as they are ({rows}), states in memory"
    limit = "no limit" if budget is None else f"budget {format_bytes(budget)}"
    sizes = ", ".join(f"{name} {format_bytes(size)}" for name, size in needs.items())
    return (f"storage: {texts[mode]}", f"{limit}; peaks: {sizes}")
