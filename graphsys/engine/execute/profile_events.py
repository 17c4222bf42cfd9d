"""What a profile sees of a launch on the CPU: how many entries, and which rows how far."""

from typing import Any, Protocol

import numpy as np

from graphsys.core.events import count, is_recording, observe
from graphsys.core.row_trace import RowVisit
from graphsys.engine.execute.arrays import RunArrays
from graphsys.engine.execute.launch import Launch
from graphsys.kernels.cpu.rows.csr import CsrArrays

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
    rows = [CsrArrays(block.begins, block.ends, block.indices)]
    if len(extra.get("other_begins", ())):
        others = extra["other_begins"], extra["other_ends"], extra["other_indices"]
        rows.append(CsrArrays(*others))
    if launch.nodes is not None:
        local = np.asarray(launch.nodes, dtype=np.int64) - block.row_base
        rows = [CsrArrays(it.begins[local], it.ends[local], it.indices) for it in rows]
    lengths = [np.subtract(it.ends, it.begins, dtype=np.int64) for it in rows]
    at_most = launch.phase is not None and launcher.has(f"trips_{launch.phase.number}")
    at_most = at_most and launch.kernel in _PULLS
    count("edges", sum(int(it.sum()) for it in lengths), at_most=at_most)
    visited = list(zip(rows, lengths, strict=True))
    observe("rows", lambda: [_visit(launcher, launch, *it) for it in visited])


def _visit(launcher: Calls, launch: Launch, rows: CsrArrays, lengths: Array) -> RowVisit:
    """Return rows of a launch as the SIMT model takes them."""
    phase = launch.phase
    assert phase is not None  # only phases have kernels over rows
    is_push = launch.kernel in _PUSHES
    early = not is_push and launcher.has(f"trips_{phase.number}")
    is_held = len(launch.block.key) == 1
    message = phase.functions["message"]
    drops = message is not None and message.drops
    key = (launch.block.key, id(rows.begins), launch.kernel)
    return RowVisit(
        superstep=launcher.superstep,
        kind="push" if is_push else "pull",
        lengths=launcher.trips(launch) if early else lengths,
        starts=rows.begins if is_held else None,
        indices=rows.indices if is_held else None,
        value_bytes=min(phase.message_dtypes[0].itemsize, 8),
        width=max(phase.num_components, 1),
        by_entry=phase.num_components > 0,
        mapping=launcher.arrays.plan.visited_by(phase),
        # a sender without a message does not enter its row, which nobody counts
        is_exact=not (is_push and (drops or launcher.arrays.plan.spec.delta)),
        key=key if is_held and not early and launch.nodes is None else None,
        reason="" if is_held else _STREAMED,
    )
