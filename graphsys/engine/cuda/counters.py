"""Counters and totals of supersteps: written on the device, read in one copy."""

import numpy as np

from graphsys.core.cuda.device import Array
from graphsys.engine.cuda.arrays import SIZE, STEPS, WIDTH
from graphsys.engine.cuda.frontier import DeviceFrontier
from graphsys.engine.cuda.launch import DeviceLauncher

MOST_STEPS = 1024
"""Supersteps of one fused launch, at most: their counters must have room."""
_OPERATIONS = {"sum": 0, "minimum": 1, "maximum": 2}


class Counters:
    """One row of counters per superstep, and the aggregators' totals.

    Args:
        launcher: Launches kernels.
        max_fused: Supersteps between two looks of the host, at most.

    Attributes:
        counts: The rows on the device, int64; see :mod:`graphsys.engine.cuda.arrays`.
        totals: The totals on the device, float64 ``[num_totals]``.
        operations: How each total is reduced, int32.
    """

    def __init__(self, launcher: DeviceLauncher, max_fused: int) -> None:
        self._launcher = launcher
        self._device = launcher.device
        self._memory = launcher.memory
        length = (max_fused + 1) * WIDTH
        self._host = np.zeros(length, dtype=np.int64)
        self._log = np.zeros((max(max_fused, MOST_STEPS) + 2) * WIDTH, dtype=np.int64)
        self.counts = self._memory.empty(len(self._log), np.int64)  # begin() clears
        aggregators = launcher.arrays.plan.spec.aggregators.values()
        operations = [_OPERATIONS[a.operation] for a in aggregators]
        self.num_totals = len(operations)
        self.operations = self._memory.upload(np.asarray(operations, dtype=np.int32))
        self.totals = self._memory.full(len(operations), 0.0, np.float64)
        self._last_row = 0

    def begin(self, frontier: DeviceFrontier | None) -> None:
        """Make room for the counters of new supersteps, the first one's senders known."""
        if frontier is None or frontier.nodes is not None:
            self._host.fill(0)
            if frontier is not None:
                self._host[0] = frontier.count
                nodes = np.asarray(
                    frontier.nodes, dtype=self._launcher.arrays.plan.id_dtype
                )
                self._memory.write(nodes, self._device.node_list("frontier"))
                frontier.nodes, frontier.is_listed = None, True
            self._memory.write(self._host, self.counts)
        else:
            self._launcher.launch_common(
                "keep_last",
                1,
                self.counts,
                self._last_row * WIDTH,
                len(self._host),
                blocks=1,
            )
        if frontier is not None:
            frontier.size_at = 0
        self._last_row = 0

    def read(self, num_rows: int) -> Array:
        """Return the first rows of the counters, int64 ``[num_rows, WIDTH]``."""
        found = self._host[: num_rows * WIDTH]
        self._memory.read(self.counts, found)
        self._last_row = num_rows - 1
        return found.reshape(-1, WIDTH)

    def read_fused(self) -> Array:
        """Return the counters of a fused launch and of the frontier that it left.

        Returns:
            int64 ``[num_steps + 1, WIDTH]``.
        """
        self._memory.read(self.counts, self._log[:WIDTH])
        self._last_row = int(self._log[STEPS])
        found = self._log[: (self._last_row + 1) * WIDTH]
        self._memory.read(self.counts, found)
        return found.reshape(-1, WIDTH)

    def restart(self, num_senders: int) -> None:
        """Count from the first row again, with so many nodes in the frontier's list."""
        first = np.zeros(2 * WIDTH, dtype=np.int64)
        first[SIZE] = num_senders
        self._memory.write(first, self.counts)
        self._last_row = 0

    def read_totals(self) -> Array:
        """Return the aggregators' totals, float64."""
        found = np.zeros(self.num_totals, dtype=np.float64)
        self._memory.read(self.totals, found)
        return found
