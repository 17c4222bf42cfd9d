"""What a run takes in memory, told from sizes before it, and how it therefore uses it.

Three ways, from the fastest to the smallest: rows united in memory; rows streamed from
files, states in memory; states in scratch files too, visited partition by partition. All
give the same results. What is counted is anonymous memory; pages of mapped files belong to
the page cache.

Each native algorithm has its own function beside it, which counts arrays beside the rows in
the order in which its code makes and frees them; what programs take is told in
``execute/program_memory.py``. ``scripts/memory_rule`` measures both.
"""

import functools
import mmap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from graphsys.core.errors import BudgetError
from graphsys.core.memory import (
    available_bytes,
    format_bytes,
    keep_to_budget,
    parse_bytes,
    resident_bytes,
    too_small,
)
from graphsys.core.types import number_dtype
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import ENTRIES_AT_A_TIME, Direction, num_entries
from graphsys.kernels.cpu.rows.csr import count_rows, count_superfluous
from graphsys.storage.scratch import ScratchArrays

Mode = Literal["memory", "streamed", "paged"]

LOADED_BYTES = 40 << 20
"""What loading compiled kernels, starting threads and writing a result take."""
_NOTHING = np.zeros(1, dtype=np.uint32)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """How a run uses memory.

    Attributes:
        mode: ``memory``, ``streamed`` or ``paged``.
        needs: Bytes that each mode takes at its peak, the process itself included.
        budget: Bytes allowed, or None.
        index_bytes: Bytes of the rows on disk that will be read.
        reasons: What was decided and why, for people.
        unites: Whether the rows are united, in a scratch file where not in memory, rather
            than read from the store as they lie there.
    """

    mode: Mode
    needs: Mapping[Mode, int]
    budget: int | None
    index_bytes: int
    reasons: tuple[str, ...]
    unites: bool = False

    @property
    def needed(self) -> int:
        """Bytes at the peak of the chosen mode."""
        return self.needs[self.mode]


def budget_of(memory: int | str | None) -> int:
    """Return the budget in bytes; without one, what there is.

    Where one is stated, what the process frees goes back to the system from now on.

    Raises:
        ConfigError: not an amount of memory.
    """
    if memory is None:
        return available_bytes() + resident_bytes()
    budget = parse_bytes(memory)
    keep_to_budget()
    return budget


def base_bytes() -> int:
    """Return what the process takes besides the work's arrays and its kernels."""
    _load_numba()
    return resident_bytes() + LOADED_BYTES


@functools.cache
def _load_numba() -> None:
    """Call a first kernel, which has numba load what it needs."""
    count_rows(_NOTHING[:0], _NOTHING)


def fitting(needs: Mapping[Mode, int], budget: int | None) -> Mode | None:
    """Return the first mode that fits a budget, or None."""
    fits = (mode for mode, needed in needs.items() if budget is None or needed <= budget)
    return next(fits, None)


def placed(choice: MemoryPlan, topology: Topology) -> Topology:
    """Return the graph whose united rows will lie where it was chosen."""
    if choice.mode == "memory" or not choice.unites:
        return topology
    return topology.placed(ScratchArrays().zeros)


def none_fits(
    what: str, needs: Mapping[Mode, int], budget: int, why: str = ""
) -> BudgetError:
    """Return the refusal of a budget; it names one that works."""
    return too_small(what, min(needs.values()), budget, why)


def row_texts(
    index_bytes: int, *, is_mapped: bool, unites: bool, why: str = "", beside: str = ""
) -> dict[Mode, str]:
    """Tell people where rows and states are in each mode.

    Args:
        index_bytes: Bytes of the rows on disk.
        is_mapped: Whether the mode ``memory`` reads them where they lie.
        unites: Whether streaming needs them united in a scratch file.
        why: Why rows are copied, where they are.
        beside: What a scratch file holds in place of them, where they are mapped.
    """
    rows = format_bytes(index_bytes)
    source = f"rows streamed from {rows} of index files"
    if unites:
        source = f"rows streamed from a scratch file that unites {rows} of index files"
    texts: dict[Mode, str] = {
        "memory": f"rows and states in memory{f'; rows are copied: {why}' if why else ''}",
        "streamed": f"{source}, states in memory",
        "paged": f"{source}, states in scratch files",
    }
    if is_mapped and beside:
        texts["streamed"] = f"rows mapped as they are ({rows}), {beside} in a scratch file"
    if is_mapped:
        texts["memory"] = f"rows mapped as they are ({rows}), states in memory"
    return texts


def reasons_of(
    mode: Mode, needs: Mapping[Mode, int], budget: int | None, texts: Mapping[Mode, str]
) -> tuple[str, ...]:
    """Tell people what was chosen and why."""
    limit = "no limit" if budget is None else f"budget {format_bytes(budget)}"
    sizes = ", ".join(f"{name} {format_bytes(size)}" for name, size in needs.items())
    peak = f"peak: about {format_bytes(needs[mode])} ({needs[mode]} B), {mode}"
    return f"storage: {texts[mode]}", f"{limit}; peaks: {sizes}", peak


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBytes:
    """What rows of all nodes take beside the files of a store.

    Attributes:
        entries: Bytes of arrays of all entries, which a scratch file may hold.
        nodes: Bytes of what stays in memory in any case.
        making_entries: Bytes of arrays of all entries while rows are made, besides.
        making: Bytes of the rest while they are made, besides.
    """

    entries: int = 0
    nodes: int = 0
    making_entries: int = 0
    making: int = 0

    @property
    def in_memory(self) -> int:
        """Bytes at the peak, all in memory."""
        return self.entries + self.nodes + self.making_entries + self.making

    @property
    def in_scratch(self) -> int:
        """Bytes at the peak, arrays of entries in a scratch file."""
        return self.nodes + self.making

    def made_before(self, work: int, *, in_memory: bool) -> int:
        """Return the bytes at the peak of rows, and then of work that needs them."""
        if not in_memory:
            return self.nodes + max(self.making, work)
        making = self.making + self.making_entries
        return self.entries + self.nodes + max(making, work)

    def __add__(self, other: "RowBytes") -> "RowBytes":
        """Return what both take, made one after the other."""
        return RowBytes(
            entries=self.entries + other.entries,
            nodes=self.nodes + other.nodes,
            making_entries=max(self.making_entries, other.making_entries),
            making=max(self.making, other.making),
        )


def united_bytes(
    topology: Topology,
    directions: Iterable[Direction],
    *,
    in_place: bool = False,
    columns: Sequence[str] = (),
) -> RowBytes:
    """Return what :meth:`Topology.csr` takes in some directions.

    Args:
        topology: The graph.
        directions: The directions.
        in_place: Tell what :meth:`Topology.rows` takes instead.
        columns: Columns that it is asked for.
    """
    total = RowBytes()
    for direction in directions:
        if topology.is_at_hand(direction):
            continue
        if in_place and topology.can_map(direction, columns):
            total += _mapped(topology, direction, columns)
        else:
            total += _united(topology, direction)
    return total


def _mapped(topology: Topology, direction: Direction, columns: Sequence[str]) -> RowBytes:
    blocks = topology.blocks(direction)
    # between two files lie less than two pages
    most = num_entries(blocks) + len(blocks) * 2 * mmap.PAGESIZE // 4
    offsets = 2 + len(set(columns) & set(topology.column_dtypes()))
    return RowBytes(nodes=(4 if most < 2**32 else 8) * offsets * topology.num_nodes)


def _united(topology: Topology, direction: Direction) -> RowBytes:
    blocks, num_nodes = topology.blocks(direction), topology.num_nodes
    columns = topology.column_dtypes()
    entries = num_entries(blocks)
    numbers = number_dtype(max(num_nodes, 1)).itemsize
    width = numbers + sum(dtype.itemsize for dtype in columns.values())
    several = len({block.edge_type for block in blocks}) > 1
    at_a_time = min(entries, ENTRIES_AT_A_TIME)
    return RowBytes(
        entries=entries * width,
        nodes=(4 if entries < 2**32 else 8) * num_nodes,
        # made rows twice more, with the place of every entry, to sort them
        making_entries=(width + (8 if columns else 0)) * entries if several else 0,
        making=16 * num_nodes + at_a_time * (8 + numbers),
    )


def simple_bytes(topology: Topology, *, in_place: bool = False) -> RowBytes:
    """Return what :meth:`Topology.simple` takes, the rows that it is made of included.

    Args:
        topology: The graph.
        in_place: Tell what :meth:`Topology.simple_in_place` takes instead.
    """
    if topology.is_simple_at_hand:
        return RowBytes()
    sides: tuple[Direction, ...] = ("out", "in") if topology.is_directed else ("out",)
    rows = united_bytes(topology, sides, in_place=True)
    kept = num_simple_entries(topology)
    is_simple = not topology.is_directed and kept == topology.num_edges
    is_there = topology.is_at_hand("out") or (in_place and topology.can_map("out"))
    if is_simple and is_there:
        return rows + RowBytes(making=8 * topology.num_nodes)
    numbers = number_dtype(max(topology.num_nodes, 1)).itemsize
    return rows + RowBytes(
        entries=kept * numbers, nodes=4 * topology.num_nodes, making=8 * topology.num_nodes
    )


def num_simple_entries(topology: Topology) -> int:
    """Return how many entries the simple undirected graph has, at most.

    Counted where an undirected graph has one edge type, in a pass over its rows.
    """
    if topology.is_directed:
        return 2 * topology.num_edges
    if topology.graph is None:
        rows = topology.csr()
        return rows.num_edges - count_superfluous(rows.indptr, rows.indices, 0)
    blocks = topology.blocks("out")
    if len({(block.edge_type, block.side) for block in blocks}) > 1:
        return topology.num_edges
    superfluous = sum(
        count_superfluous(
            block.index.indptr, block.index.indices, block.row_base - block.column_base
        )
        for block in blocks
    )
    return topology.num_edges - superfluous


BY_ID = "they are put in the order of ids, so that partitions change nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What an algorithm takes.

    Attributes:
        rows: Directions of the rows that it reads.
        in_place: Whether it reads them where they lie (``Topology.rows``).
        columns: Columns that it asks those for.
        simple: Whether it reads the simple undirected graph.
        bytes: Bytes in memory at the peak, beside rows.
        entries: Bytes of arrays of all entries, which a scratch file may hold.
        copies: Why it copies the rows that it reads, for people; empty where it reads them
            in place.
        beside: What the arrays of entries are, for people, where it reads rows in place.
        kernels: Module of ``engine/algorithms`` whose kernels it calls, where not its own.
        variant: What tells the kernels that it calls from those of other runs.
    """

    rows: tuple[Direction, ...] = ()
    in_place: bool = False
    columns: tuple[str, ...] = ()
    simple: bool = False
    bytes: float = 0
    entries: float = 0
    copies: str = ""
    beside: str = ""
    kernels: str = ""
    variant: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What needs are told from.

    Attributes:
        topology: The graph.
        options: Parameters of the algorithm that were given.
        threads: How many threads will run.
        is_stated: Whether the user stated a budget; what is too long to count otherwise
            is counted then.
    """

    topology: Topology
    options: Mapping[str, Any]
    threads: int
    is_stated: bool

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.topology.num_nodes

    @property
    def edges(self) -> int:
        """Entries of the out rows."""
        return self.topology.num_edges

    @cached_property
    def simple_entries(self) -> int:
        """Entries of the simple graph, at most."""
        return num_simple_entries(self.topology)

    @property
    def both(self) -> tuple[Direction, ...]:
        """Both directions."""
        return ("out", "in") if self.topology.is_directed else ("out",)

    @property
    def id_bytes(self) -> float:
        """Bytes of an id."""
        return self.topology.numbers.id_bytes

    @property
    def ranked(self) -> int:
        """Bytes a node that finding ranks takes; 0 where numbers are ranks."""
        return 0 if self.topology.numbers.are_ordered else 36
