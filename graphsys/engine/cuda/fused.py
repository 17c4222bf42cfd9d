"""Many supersteps in one launch: when that pays, and what becomes of those run too many.

A launch and a look of the host cost as much as a superstep of some hundred thousand edges,
and graphs of large diameter need thousands of such supersteps. A cooperative kernel runs
them on the device (``fused_source.py``) until the frontier is empty or too large.

``until`` is plain Python and cannot be asked on the device: the host asks it for one
superstep after another when the launch is over, with that superstep's totals. When it ends
the phase before the last one, the states of the launch's beginning are restored and as many
supersteps as count are run again: the result is the same, for at most one launch more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from graphsys.core.clocks import DEVICE_ROWS
from graphsys.core.cuda.device import Array, DeviceArray, can_wait_for_grid
from graphsys.core.events import is_asked
from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.cuda.arrays import CHANGED, EDGES, SIZE, WIDTH
from graphsys.engine.cuda.counters import MOST_STEPS
from graphsys.engine.cuda.enqueue_fused import FusedEnqueuer
from graphsys.engine.cuda.frontier import DeviceFrontier
from graphsys.engine.execute.directions import (
    num_messages,
    pull_directions,
    push_directions,
)
from graphsys.engine.execute.frontier import StepResult
from graphsys.engine.execute.supersteps import PULL_SHARE

FUSED_EDGES = 4_000_000
"""A superstep of fewer edges takes less time than its launches and its host's turn."""
_UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class SpeculativeSuperstep:
    """A superstep that was run before the loop of the run came to it.

    Attributes:
        step: What it did.
        totals: The aggregators' totals after it, or None where it has none.
    """

    step: StepResult
    totals: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning:
    """Where a fused launch began, to run a part of it again."""

    phase: PhasePlan
    num_senders: int
    superstep: int


class FusedRuns:
    """Runs many supersteps of a phase in one launch.

    Args:
        enqueuer: Launches kernels.
        strategy: ``fused`` wherever it can be had; ``auto``: where it pays.
        max_ahead: Supersteps to run before ``until`` is asked, at most.
        steps_left: How many supersteps the limits still allow.
    """

    def __init__(
        self,
        enqueuer: FusedEnqueuer,
        strategy: str,
        max_ahead: int,
        steps_left: Callable[[PhasePlan], int],
    ) -> None:
        self.enqueuer = enqueuer
        self.launcher = enqueuer.launcher
        self.device = enqueuer.device
        self.topology = enqueuer.topology
        self._is_forced = strategy == "fused"
        self._is_wanted = strategy in ("auto", "fused") and can_wait_for_grid()
        self._is_wanted &= not is_asked(DEVICE_ROWS)
        self._max_ahead = max_ahead
        self._steps_left = steps_left
        self._beginning: _Beginning | None = None

    def takes(
        self, phase: PhasePlan, senders: DeviceFrontier, mode: str, *, went_on: bool
    ) -> bool:
        """Return whether the next supersteps share a launch.

        Args:
            phase: The phase.
            senders: Who sends in the next superstep.
            mode: How the next superstep would run alone.
            went_on: Whether the one before pushed too and left senders.
        """
        pushes = self.launcher.has(f"push_fused_thread_{phase.number}")
        pulls = self.launcher.has(f"pull_fused_thread_{phase.number}")
        if not self._is_wanted or not (pushes or pulls) or self._steps_left(phase) < 2:
            return False
        pulled = pull_directions(self.topology, phase)
        if pulls and len(pulled) > 1:
            return False
        rows = push_directions(self.topology, phase) if pushes else pulled
        if any(self.enqueuer.rows.is_streamed(direction) for direction in rows):
            return False
        if self._is_forced:
            return True
        if pushes:
            return mode == "push" and went_on and senders.edges <= FUSED_EDGES
        return num_messages(self.topology, phase) <= FUSED_EDGES

    def run(self, phase: PhasePlan, senders: DeviceFrontier) -> list[SpeculativeSuperstep]:
        """Run supersteps until none changed, too much is to do, or the host has to look."""
        limit = min(self._steps_left(phase), MOST_STEPS)
        if phase.spec.schedule == "changed":
            self.enqueuer.list_senders(senders)
        if phase.spec.until is not None:
            # Each superstep that `until` would not have wanted is run in vain.
            limit = min(limit, self._max_ahead)
            self._keep(phase, senders)
        counts = self._launch(phase, limit)
        totals = None
        if phase.functions["aggregate"] is not None:
            totals = self.enqueuer.many_totals(len(counts) - 1)
        return self._steps(phase, senders, counts, totals)

    def settle(self, num_steps: int) -> None:
        """Undo the last launch but for its first supersteps, those that count."""
        begun, self._beginning = self._beginning, None
        assert begun is not None  # only ``until`` ends a phase early, and run() kept it
        for kept, present in self._kept(begun.phase):
            self.enqueuer.memory.copy(kept, present)
        self.enqueuer.counters.restart(begun.num_senders)
        present, self.launcher.superstep = self.launcher.superstep, begun.superstep
        self._launch(begun.phase, num_steps)
        self.launcher.superstep = present

    # ---- one launch

    def _launch(self, phase: PhasePlan, limit: int) -> Array:
        """Run at most so many supersteps; return their rows of counters, and the next."""
        enqueuer = self.enqueuer
        mapping = enqueuer.mappings.fused(phase)
        pushes = phase.spec.schedule == "changed"
        if pushes:
            edge_limit = _UNLIMITED
            if not self._is_forced:
                # Beyond this many edges a pull is cheaper, which is the host's to choose.
                sparse = num_messages(self.topology, phase) // PULL_SHARE
                edge_limit = min(FUSED_EDGES, sparse)
            enqueuer.push_many(phase, mapping, limit, edge_limit)
        else:
            endless = phase.spec.until is None and phase.spec.max_supersteps is None
            enqueuer.pull_many(phase, mapping, limit, stop_when_same=endless)
        counts = enqueuer.counters.read_fused()
        if len(counts) % 2 == 0:  # an odd number of supersteps, which exchange arrays
            if pushes:
                self.device.swap_named("list", "frontier", "next")
            else:
                self.device.swap(phase.buffered)
        return counts

    def _steps(
        self,
        phase: PhasePlan,
        senders: DeviceFrontier,
        counts: Array,
        totals: Array | None,
    ) -> list[SpeculativeSuperstep]:
        num_nodes, last = self.enqueuer.num_nodes, len(counts) - 1
        pushes = phase.spec.schedule == "changed"
        mapping = self.enqueuer.mappings.fused(phase)
        name = f"{'push' if pushes else 'pull'} (fused {mapping})"
        sent, messages = senders.count, senders.edges
        found = []
        for number in range(last):
            size, edges = counts[number + 1, SIZE : EDGES + 1].tolist()
            following = DeviceFrontier(num_nodes, size, edges, is_listed=True)
            following.size_at = last * WIDTH
            if not pushes:
                following = DeviceFrontier(num_nodes, sent, messages, everyone=True)
            changed = int(counts[number, CHANGED])
            step = StepResult(name, sent, messages, changed, following)
            found.append(
                SpeculativeSuperstep(step, None if totals is None else totals[number])
            )
            sent, messages = following.count, following.edges
        return found

    # ---- the states before a launch

    def _keep(self, phase: PhasePlan, senders: DeviceFrontier) -> None:
        """Copy all that a launch changes, on the device."""
        for kept, present in self._kept(phase):
            self.enqueuer.memory.copy(present, kept)
        self._beginning = _Beginning(
            phase=phase, num_senders=senders.count, superstep=self.launcher.superstep
        )

    def _kept(self, phase: PhasePlan) -> Iterator[tuple[DeviceArray, DeviceArray]]:
        """Yield the copies and what they are of."""
        named = {f"state {name}": self.device.states[name] for name in phase.spec.updates}
        named["totals"] = self.enqueuer.counters.totals
        if phase.spec.schedule == "changed":
            named["frontier"] = self.device.node_list("frontier")
        for name, present in named.items():
            room = self.device.scratch(f"kept {name}", len(present), present.dtype)
            yield room, present
