"""What a run will take in memory, and where its rows and states therefore live.

Three ways, from the fastest to the smallest: rows united in memory; rows streamed from the
store's index files, states in memory; states in scratch files too, visited partition by
partition. All give the same results. What is counted is anonymous memory; pages of mapped
files belong to the page cache.
"""

import os
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from graphsys.core.errors import BudgetError
from graphsys.core.memory import available_bytes, format_bytes, resident_bytes
from graphsys.engine.arrays import Allocate
from graphsys.engine.memory_estimate import Estimate
from graphsys.engine.plan import ProgramPlan
from graphsys.engine.rows import MemoryRows, Rows
from graphsys.engine.stream import PagedRows, StreamRows
from graphsys.engine.topology import Topology
from graphsys.storage.scratch import Scratch
from graphsys.storage.transaction import disk_errors

Mode = Literal["memory", "streamed", "paged"]

COMPILE_BYTES = 64 << 20
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
    return kind(topology, columns, keeps_bytes=max(spare, 0))


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
