"""What a run will take in memory, and where its rows and states therefore live.

Three ways, from the fastest to the smallest: rows united in memory; rows streamed from
files, states in memory; states in scratch files too, visited partition by partition. All
give the same results. What is counted is anonymous memory; pages of mapped files belong to
the page cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from graphsys.core import budget as budgets
from graphsys.core.errors import BudgetError
from graphsys.core.memory import (
    available_bytes,
    format_bytes,
    keep_to_budget,
    parse_bytes,
    resident_bytes,
)
from graphsys.engine.codegen.cpu import module_source
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.execute.arrays import Allocate
from graphsys.engine.execute.memory_estimate import MemoryEstimate
from graphsys.engine.execute.rows import MemoryBlocks, RowProvider
from graphsys.engine.execute.stream import PagedBlocks, StreamedBlocks
from graphsys.engine.topology import Topology
from graphsys.engine.used_kernels import WorkKernels
from graphsys.generated.modules import load_module
from graphsys.kernels.cpu.rows.csr import count_rows
from graphsys.storage.scratch_arrays import ScratchArrays, scratch_is_memory

Mode = Literal["memory", "streamed", "paged"]

LOADED_BYTES = 40 << 20
"""What loading compiled kernels, starting threads and writing a result take."""
_NOTHING = np.zeros(1, dtype=np.uint32)
_COPIED_SHARE = 5
"""With paged states at most one of so many bytes of them is copied at a time."""
_LIST_SHARE = 64
"""With paged states a list holds at most one of so many nodes."""


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
    count_rows(_NOTHING[:0], _NOTHING)  # the first kernel has numba load what it needs
    return resident_bytes() + LOADED_BYTES


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
        raise too_small(
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


def fitting(needs: Mapping[Mode, int], budget: int | None) -> Mode | None:
    """Return the first mode that fits a budget, or None."""
    fits = (mode for mode, needed in needs.items() if budget is None or needed <= budget)
    return next(fits, None)


def list_limit(num_nodes: int) -> int:
    """Return how long lists of nodes may be where states are paged."""
    return max(num_nodes // _LIST_SHARE, 1 << 12)


def placed(choice: MemoryPlan, topology: Topology) -> Topology:
    """Return the graph whose united rows will lie where it was chosen."""
    if choice.mode == "memory" or not choice.unites:
        return topology
    return topology.placed(ScratchArrays().zeros)


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


def too_small(
    what: str, needs: Mapping[Mode, int], budget: int, why: str = ""
) -> BudgetError:
    """Return the refusal of a budget; it names one that works."""
    return budgets.too_small(what, min(needs.values()), budget, why)


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
