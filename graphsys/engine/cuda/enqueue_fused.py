"""Enqueueing many supersteps as one launch of a cooperative kernel."""

from typing import Any

import numpy as np

from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.cuda.arrays import SIZE
from graphsys.engine.cuda.enqueue import Enqueuer
from graphsys.engine.cuda.frontier import DeviceFrontier
from graphsys.engine.cuda.launch import DeviceLaunch
from graphsys.engine.cuda.rows import DeviceBlock
from graphsys.engine.execute.directions import pull_directions, push_directions


class FusedEnqueuer(Enqueuer):
    """Enqueues supersteps one by one, as its base does, or many in one launch."""

    def list_senders(self, frontier: DeviceFrontier) -> None:
        """Make the frontier a list, whose length is the first counter."""
        if frontier.everyone:
            self.launcher.launch_common(
                "list_everyone",
                self.num_nodes,
                self.device.node_list("frontier"),
                self.num_nodes,
                self.counters.counts,
                SIZE,
            )
        else:
            self._ensure_listed(frontier)  # as many as the first counter says

    def push_many(
        self, phase: PhasePlan, mapping: str, max_steps: int, edge_limit: int
    ) -> None:
        """Push from the listed frontier, and from those that follow."""
        first, *others = [self.rows.block(d) for d in push_directions(self.topology, phase)]
        arguments = self._update_arguments(0, listing=True)
        arguments |= self._touch_arguments(0, touching=True)
        arguments |= {
            "nodes": self.device.node_list("frontier"),
            "edge_limit": edge_limit,
            "touch_epoch": self._touch_epoch + 1,
            "num_sides": 1 + len(others),
        }
        arguments |= _sides("first", first) | _sides("second", (others or [first])[0])
        self._touch_epoch += max_steps
        self._many("push", phase, mapping, max_steps, first, arguments)

    def pull_many(
        self, phase: PhasePlan, mapping: str, max_steps: int, *, stop_when_same: bool
    ) -> None:
        """Let all nodes send and all rows be pulled, over and over."""
        (direction,) = pull_directions(self.topology, phase)
        arguments = self._sender_arguments(DeviceFrontier(self.num_nodes, everyone=True))
        arguments |= self._update_arguments(0, listing=False)
        arguments["stop_when_same"] = stop_when_same
        block = self.rows.block(direction)
        self._many("pull", phase, mapping, max_steps, block, arguments)

    def _many(
        self,
        mode: str,
        phase: PhasePlan,
        mapping: str,
        max_steps: int,
        block: DeviceBlock,
        arguments: dict[str, Any],
    ) -> None:
        num_totals = self.counters.num_totals
        default = {"nodes": self.device.node_list("frontier")}
        arguments = default | arguments | {"max_steps": max_steps}
        if num_totals:
            warps = self.launcher.shape.max_blocks * self.launcher.shape.block // 32
            arguments |= {
                "partial": self._partial(warps * num_totals),
                "operations": self.counters.operations,
                "totals_log": self._totals_log(max_steps),
            }
        self.launcher.launch(
            DeviceLaunch(
                kernel=f"{mode}_fused_{mapping}",
                phase=phase,
                mapping=mapping,
                items=self.num_nodes,
                block=block,
                arguments=arguments,
                cooperative=True,
            )
        )

    def many_totals(self, num_steps: int) -> Any:
        """Return the totals of so many supersteps, float64 ``[num_steps, num_totals]``."""
        width = self.counters.num_totals
        found = np.zeros(num_steps * width, dtype=np.float64)
        self.memory.read(self._totals_log(num_steps), found)
        return found.reshape(num_steps, width)

    def _totals_log(self, num_steps: int) -> Any:
        length = num_steps * self.counters.num_totals
        return self.device.scratch("totals log", length, np.float64)


def _sides(name: str, block: DeviceBlock) -> dict[str, Any]:
    """Return a block's arrays by the names that fused kernels give them."""
    columns = {f"{name}__edge__{key}": column for key, column in block.columns.items()}
    indptr, indices = f"{name}__indptr", f"{name}__indices"
    return {indptr: block.indptr, indices: block.indices, **columns}
