"""What a profile sees of a launch on a device: which rows it visits."""

from typing import Any

import numpy as np

from graphsys.core.clocks import DEVICE_ROWS
from graphsys.core.events import is_asked, observe
from graphsys.core.row_trace import RowVisit
from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.cuda.launch import DeviceLauncher
from graphsys.engine.cuda.rows import DeviceBlock
from graphsys.graph.csr import row_lengths

_STREAMED = "rows were streamed, not held"


def tell(
    launcher: DeviceLauncher,
    kernel: str,
    phase: PhasePlan,
    block: DeviceBlock,
    mapping: str,
    arguments: dict[str, Any],
) -> None:
    """Offer the rows that a launch visits, if somebody wants those of devices.

    A list of nodes is copied back for it, which waits for the device: such a run is
    watched, and its times are not those of a run alone.
    """
    if is_asked(DEVICE_ROWS):
        observe(
            "rows", lambda: [_visit(launcher, kernel, phase, block, mapping, arguments)]
        )


def _visit(
    launcher: DeviceLauncher,
    kernel: str,
    phase: PhasePlan,
    block: DeviceBlock,
    mapping: str,
    arguments: dict[str, Any],
) -> RowVisit:
    is_push = kernel.startswith("push")
    message = phase.functions["message"]
    drops = message is not None and message.drops
    early = phase.combiner == "any" or phase.functions["accepts"] is not None
    is_held = len(block.key) == 1
    nodes = _listed(launcher, arguments)
    if is_held:
        rows = launcher.arrays.topology.csr(block.direction)
        indptr, indices = rows.indptr, rows.indices
    else:
        indptr, indices = block.indptr.copy_to_host(), None
    lengths = row_lengths(indptr[: block.num_rows + 1])
    starts = indptr[: block.num_rows]
    if nodes is not None:
        local = nodes.astype(np.int64) - block.row_base
        lengths, starts = lengths[local], starts[local]
    return RowVisit(
        superstep=launcher.superstep,
        kind="push" if is_push else "pull",
        lengths=lengths,
        starts=starts if is_held else None,
        indices=indices,
        value_bytes=min(phase.message_dtypes[0].itemsize, 8),
        width=max(phase.num_components, 1),
        by_entry=phase.num_components > 0,
        # what a device leaves out of its rows is known to the device alone
        is_exact=not (drops or early or launcher.arrays.plan.spec.delta),
        key=None,
        reason="" if is_held else _STREAMED,
        mapping=mapping,
    )


def _listed(launcher: DeviceLauncher, arguments: dict[str, Any]) -> Any:
    """Return the nodes of the list that a launch visits; None where it visits all."""
    if not arguments.get("listed"):
        return None
    launcher.memory.stream.synchronize()
    size = int(arguments["sizes"].copy_to_host()[arguments["size_at"]])
    return arguments["nodes"][: max(size, 1)].copy_to_host()[:size]
