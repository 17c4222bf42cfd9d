"""What a profile sees of a launch on the CPU: how many entries, and which rows how far."""

from typing import Any, Protocol

import numpy as np

from graphsys.core.events import count, is_recording, observe
from graphsys.core.row_trace import RowVisit
from graphsys.engine.execute.arrays import RunArrays
from graphsys.engine.execute.launch import Launch

Array = Any

_PULLS = ("pull", "look", "gather")
_PUSHES = ("push", "claim")
_STREAMED = "rows were streamed, not held"


class Calls(Protocol):
    """What makes launches, as far as it is asked here.

    Attributes:
        superstep: Number of the superstep.
        arrays: The arrays of the run.
    """

    superstep: int
    arrays: RunArrays

    def has(self, kernel: str) -> bool:
        """Return whether the program has a kernel of that name."""

    def trips(self, launch: Launch) -> Array:
        """Return how many entries a launch will look at in each of its rows."""


def tell(launcher: Calls, launch: Launch) -> None:
    """Emit the work of a launch over rows, and offer the rows."""
    if not is_recording() or launch.kernel not in (*_PULLS, *_PUSHES):
        return
    block, extra = launch.block, launch.extra
    rows = [_VisitedRows(block.begins, block.ends, block.indices, launch)]
    if len(extra.get("other_begins", ())):
        others = extra["other_begins"], extra["other_ends"], extra["other_indices"]
        rows.append(_VisitedRows(*others, launch))
    at_most = launch.phase is not None and launcher.has(f"trips_{launch.phase.number}")
    at_most = at_most and launch.kernel in _PULLS
    count("edges", sum(it.num_entries for it in rows), at_most=at_most)
    observe("rows", lambda: [it.visit(launcher) for it in rows])


class _VisitedRows:
    """Some rows of a launch."""

    def __init__(self, begins: Array, ends: Array, indices: Array, launch: Launch) -> None:
        self.begins, self.ends, self.indices, self.launch = begins, ends, indices, launch

    @property
    def num_entries(self) -> int:
        """Entries of the rows visited, all of them."""
        return int(self._lengths().sum())

    def visit(self, launcher: Calls) -> RowVisit:
        """Return the rows as the SIMT model takes them."""
        launch = self.launch
        phase = launch.phase
        assert phase is not None  # only phases have kernels over rows
        is_push = launch.kernel in _PUSHES
        early = not is_push and launcher.has(f"trips_{phase.number}")
        is_held = len(launch.block.key) == 1
        message = phase.functions["message"]
        drops = message is not None and message.drops
        key = (launch.block.key, id(self.begins), launch.kernel)
        return RowVisit(
            superstep=launcher.superstep,
            kind="push" if is_push else "pull",
            lengths=launcher.trips(launch) if early else self._lengths(),
            starts=self._starts() if is_held else None,
            indices=self.indices if is_held else None,
            value_bytes=min(phase.message_dtypes[0].itemsize, 8),
            width=max(phase.num_components, 1),
            by_entry=phase.num_components > 0,
            mapping=launcher.arrays.plan.visited_by(phase),
            # a sender without a message does not enter its row, which nobody counts
            is_exact=not (is_push and (drops or launcher.arrays.plan.spec.delta)),
            key=key if is_held and not early and launch.nodes is None else None,
            reason="" if is_held else _STREAMED,
        )

    def _local(self) -> Array:
        block, nodes = self.launch.block, self.launch.nodes
        return np.asarray(nodes, dtype=np.int64) - block.row_base

    def _starts(self) -> Array:
        if self.launch.nodes is None:
            return self.begins
        return self.begins[self._local()]

    def _lengths(self) -> Array:
        if self.launch.nodes is None:
            return np.subtract(self.ends, self.begins, dtype=np.int64)
        local = self._local()
        return np.subtract(self.ends[local], self.begins[local], dtype=np.int64)
