"""Supersteps on the device: the choices of the CPU's, with lists and counters there.

The host learns how large the next frontier is from one copy of a few counters. Supersteps
whose successors it need not see (a push while nobody asks for totals, a fixed number of
dense ones) are enqueued together and their counters read at once; or they share one launch
(``fused.py``).
"""

from collections import deque
from collections.abc import Callable

import numpy as np

from graphsys.core.cuda.device import Array
from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.cuda.arrays import CHANGED, SENDERS, SIZE, WIDTH
from graphsys.engine.cuda.enqueue_fused import FusedEnqueuer
from graphsys.engine.cuda.frontier import DeviceFrontier
from graphsys.engine.cuda.fused import FUSED_EDGES, FusedRuns, SpeculativeSuperstep
from graphsys.engine.cuda.launch import DeviceLauncher
from graphsys.engine.cuda.rows import DeviceBlocks
from graphsys.engine.execute.directions import num_messages, out_going, pull_directions
from graphsys.engine.execute.frontier import Frontier, StepResult
from graphsys.engine.execute.supersteps import PULL_SHARE


class DeviceSupersteps:
    """Runs supersteps of any phase on the device.

    Args:
        launcher: Launches kernels.
        rows: The graph's rows.
        strategy: Who visits a row.
        max_fused: At most so many supersteps are enqueued before the host looks.
        steps_left: How many supersteps the limits still allow.
    """

    def __init__(
        self,
        launcher: DeviceLauncher,
        rows: DeviceBlocks,
        strategy: str,
        max_fused: int,
        steps_left: Callable[[PhasePlan], int],
    ) -> None:
        self.launcher = launcher
        self.topology = launcher.arrays.topology
        self.rows = rows
        self.num_nodes = self.topology.num_nodes
        self.max_fused = max_fused
        self.enqueuer = FusedEnqueuer(launcher, rows, strategy, max_fused)
        self.fused = FusedRuns(self.enqueuer, strategy, max_fused, steps_left)
        self.all_nodes = None
        self._steps_left = steps_left
        self._ready: deque[SpeculativeSuperstep] = deque()
        self._num_run = 0
        self._following: Frontier | None = None
        self._ahead = 1
        self._went_on = False

    # ---- as graphsys.engine.execute.supersteps.Supersteps

    def everyone(self, phase: PhasePlan) -> Frontier:
        """Return the frontier of all nodes."""
        edges = num_messages(self.topology, phase)
        return DeviceFrontier(self.num_nodes, self.num_nodes, edges, everyone=True)

    def listed(self, phase: PhasePlan, nodes: Array) -> Frontier:
        """Return the frontier of some nodes, by number, each given once."""
        degrees = out_going(self.launcher.arrays, phase)[nodes]
        edges = int(degrees.sum(dtype=np.int64))
        return DeviceFrontier(self.num_nodes, len(nodes), edges, nodes=nodes)

    def initial_totals(self, phase: PhasePlan) -> None:
        """Compute the aggregators on the states as they are."""
        self.settle()
        self._ensure_states()
        self.enqueuer.counters.begin(None)
        self.enqueuer.totals(phase)
        self._read_totals()

    def run(self, phase: PhasePlan, frontier: Frontier) -> StepResult:
        """Run one superstep of a phase, or return the next of those run ahead."""
        # Steps that were run ahead are good only if the caller goes on from their frontier.
        if self._ready and frontier is self._following:
            return self._next_step()
        self.settle()
        assert isinstance(frontier, DeviceFrontier)  # everyone() and listed() make these
        self._ensure_states()
        senders = self._senders(phase, frontier)
        mode = self._mode(phase, senders)
        if self.fused.takes(phase, senders, mode, went_on=self._went_on):
            self._ready.extend(self.fused.run(phase, senders))
            left = self._ready[-1].step.frontier.count > 0
            self._went_on = phase.spec.schedule == "changed" and left
        else:
            self._run_apart(phase, frontier, senders, mode)
        self._num_run = len(self._ready)
        return self._next_step()

    def settle(self) -> None:
        """Make the states those of the supersteps that were asked for, if more were run."""
        if self._ready:
            num_asked = self._num_run - len(self._ready)
            self._ready.clear()
            self.fused.settle(num_asked)

    def _next_step(self) -> StepResult:
        ahead = self._ready.popleft()
        if ahead.totals is not None:
            self._note_totals(ahead.totals)
        self._following = ahead.step.frontier
        return ahead.step

    def _run_apart(
        self, phase: PhasePlan, frontier: DeviceFrontier, senders: DeviceFrontier, mode: str
    ) -> None:
        """Run supersteps by kernels of their own."""
        num_steps = self._num_enqueued(phase, senders, mode)
        for number in range(num_steps):
            at = number * WIDTH
            self.enqueuer.superstep(phase, senders, mode, at)
            if number + 1 < num_steps:
                self.launcher.superstep += 1
                senders = self.enqueuer.next_frontier(phase, mode, at + WIDTH)
        self._collect(phase, senders, frontier, mode, num_steps)

    def _ensure_states(self) -> None:
        if not self.launcher.device.states:
            self.launcher.device.upload_states()

    def _mode(self, phase: PhasePlan, senders: DeviceFrontier) -> str:
        if phase.kind == "local":
            return "local"
        dense = phase.spec.schedule == "all" or phase.kind == "mode" or senders.everyone
        if dense or senders.edges * PULL_SHARE > num_messages(self.topology, phase):
            return "pull"
        # Rows that are streamed are read as a whole: there is nothing to be won by pushing.
        both_ways = {"in": "out", "out": "in"}
        pulled = pull_directions(self.topology, phase)
        directions = [*pulled, *(both_ways[direction] for direction in pulled)]
        if any(self.rows.is_streamed(d) for d in directions):  # type: ignore[arg-type]
            return "pull"
        if phase.can_push and self.launcher.has(f"push_thread_{phase.number}"):
            return "push"
        return "pull rows" if len(pulled) == 1 else "pull"

    def _senders(self, phase: PhasePlan, frontier: DeviceFrontier) -> DeviceFrontier:
        """Return the nodes of the frontier for which ``active`` holds."""
        if phase.spec.schedule == "all":
            frontier = self.everyone(phase)  # type: ignore[assignment]
        self.enqueuer.counters.begin(frontier if not frontier.everyone else None)
        if phase.functions["active"] is None:
            return frontier
        found = self.enqueuer.active_senders(phase, frontier)
        row = self.enqueuer.counters.read(1)[0]
        found.count, found.edges = int(row[SENDERS]), int(row[SENDERS + 1])
        return found

    # ---- several supersteps at once

    def _num_enqueued(self, phase: PhasePlan, senders: DeviceFrontier, mode: str) -> int:
        """Return how many supersteps can be enqueued before the host has to look."""
        spec, program = phase.spec, self.launcher.arrays.plan.spec
        if not spec.repeat or spec.until is not None or phase.functions["active"]:
            return 1
        limit = min(self.max_fused, self._steps_left(phase))
        if phase.spec.schedule == "all":
            needs_totals = program.until is not None
            fixed = spec.max_supersteps is not None and not needs_totals
            return max(limit, 1) if fixed and mode == "pull" else 1
        # Totals are needed after each: only a push without them can run on unseen.
        if mode != "push" or phase.functions["aggregate"]:
            return 1
        if senders.edges >= FUSED_EDGES:
            return 1
        # twice as many each time, so that a phase that ends soon wastes few launches
        self._ahead = min(2 * self._ahead, self.max_fused) if self._went_on else 1
        return max(min(limit, self._ahead), 1)

    def _collect(
        self,
        phase: PhasePlan,
        senders: DeviceFrontier,
        first: DeviceFrontier,
        mode: str,
        num_steps: int,
    ) -> None:
        """Read the counters; note every superstep that had senders."""
        counts = self.enqueuer.counters.read(num_steps + 1)
        if phase.functions["aggregate"]:
            self._read_totals()
        following = self.enqueuer.next_frontier(phase, mode, num_steps * WIDTH)
        self._went_on = mode == "push" and counts[num_steps, SIZE] > 0
        sent, messages = first.count, first.edges
        if num_steps == 1:
            sent, messages = senders.count, senders.edges
        elif phase.spec.schedule == "all":
            everyone = self.everyone(phase)
            sent, messages = everyone.count, everyone.edges
        name = f"{mode} ({self.enqueuer.last_mapping})" if mode != "local" else mode
        for number in range(num_steps):
            size, edges = counts[number + 1, SIZE : SIZE + 2].tolist()
            is_last = number + 1 == num_steps or (
                size == 0 and phase.spec.schedule == "changed"
            )
            frontier = following
            if phase.spec.schedule == "all":
                frontier = self.everyone(phase)  # type: ignore[assignment]
            elif not is_last:
                frontier = DeviceFrontier(self.num_nodes, size, edges)
            else:
                frontier.count, frontier.edges = size, edges
            changed = int(counts[number, CHANGED])
            self._ready.append(
                SpeculativeSuperstep(StepResult(name, sent, messages, changed, frontier))
            )
            if is_last:
                break
            if phase.spec.schedule == "changed":
                sent, messages = size, edges

    def _read_totals(self) -> None:
        self._note_totals(self.enqueuer.counters.read_totals())

    def _note_totals(self, values: Array) -> None:
        for i, name in enumerate(self.launcher.arrays.plan.spec.aggregators):
            self.launcher.totals[name] = float(values[i])
