"""Which schedules of some patterns are the cheapest on a graph."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.rng import draw_key
from graphsys.kernels.cpu.mining.loop_costs import sample_trips
from graphsys.mining.compiler.emit import CountTask
from graphsys.mining.compiler.schedule import Schedule, schedules
from graphsys.mining.compiler.tail import distinct_sets, longest_tail
from graphsys.mining.pattern import Pattern
from graphsys.mining.simple_graph import SimpleGraph

_TRIED = 96
_SAMPLES = 128
_A_LOOK = 4.0
"""Entries that are read to find a node in a set."""


@dataclass(frozen=True, slots=True)
class CostedSchedule:
    """A schedule and what it is expected to cost.

    Attributes:
        schedule: The one that is expected to cost least.
        tail: How many of the last steps are counted together, without a loop.
        trips: How often the loop of each step is run through; the last step is counted.
        work: Entries of sorted rows that the sets of each step read.
        num_schedules: How many there were to choose from.
    """

    schedule: Schedule
    tail: int
    trips: tuple[float, ...]
    work: tuple[float, ...]
    num_schedules: int

    @property
    def cost(self) -> float:
        """Entries read and loops run through, in all."""
        return sum(self.costs)

    @property
    def stepwise_cost(self) -> float:
        """The same with a loop for every step but the last, as for all patterns."""
        return sum(self.work) + sum(self.trips[:-1])

    @property
    def costs(self) -> tuple[float, ...]:
        """The same of each step; those of the tail are of making its sets."""
        num_loops = len(self.trips) - self.tail
        loops = [*self.trips[:num_loops], *[0.0] * self.tail]
        loops[-1] += self._shared_cost()
        return tuple(a + b for a, b in zip(loops, self.work, strict=True))

    def _shared_cost(self) -> float:
        """Return what is read to leave out nodes that are given already, or given twice."""
        first, size = len(self.trips) - self.tail, len(self.trips)
        looks = sum(len(self.schedule.can_be_same(step)) for step in range(first, size))
        if self.tail == 1:
            return _A_LOOK * looks * self.trips[first - 1]
        num_sets = distinct_sets(self.schedule, self.tail)
        num_shared = (1 << num_sets) - 1 - num_sets
        # of a set's size the sampled loop over it tells
        return 2.0 * num_shared * max(self.trips[first], self.trips[first - 1])

    def lines(self) -> list[str]:
        """Say it in words: the schedule, and what is expected of it."""
        said = self.schedule.lines()
        for step in range(1, len(said)):
            cost = f"{self.trips[step]:.2g} expected"
            if self.work[step]:
                cost += f", {self.work[step]:.2g} entries read"
            said[step] += f" ({cost})"
        if self.tail == 2:
            said.append("the last two are counted as pairs, without a loop")
        elif self.tail > 2:
            said.append(f"the last {self.tail} are counted together, without loops")
        return [*said, f"cost {self.cost:.2g}, of {self.num_schedules} schedules the least"]


def choose_schedule(
    rows: SimpleGraph,
    pattern: Pattern,
    *,
    is_induced: bool,
    labels: npt.NDArray[np.int64] | None = None,
) -> CostedSchedule:
    """Choose among the schedules of a pattern by the costs of sampled descents.

    Those are tried whose steps have edges with many before them as early as can be.

    Args:
        rows: The graph.
        pattern: The pattern.
        is_induced: Whether a match has no other edges than the pattern's.
        labels: Place of every node's label in :attr:`Pattern.node_labels` ``[N]``.
    """
    tried = _tried(rows, pattern, is_induced, labels)
    return min(tried, key=lambda it: it.cost)


def choose_together(
    rows: SimpleGraph, patterns: Sequence[Pattern], *, is_induced: bool
) -> list[CostedSchedule]:
    """Choose a schedule of each pattern, so that loops that they share pay once.

    The dearest pattern chooses first; of the steps that a schedule begins with as one
    chosen before does, the loops and sets cost nothing.

    Args:
        rows: The graph.
        patterns: Patterns without labels and arrows.
        is_induced: Whether a match has no other edges than the pattern's.
    """
    tried = [_tried(rows, pattern, is_induced, None) for pattern in patterns]
    least = [min(choice.cost for choice in some) for some in tried]
    chosen: dict[int, CostedSchedule] = {}
    # The dearest has most to lose by a loop chosen for the sake of another.
    for place in sorted(range(len(patterns)), key=lambda k: -least[k]):
        before = list(chosen.values())
        chosen[place] = min(tried[place], key=lambda it: _own_cost(it, before))
    return [chosen[place] for place in range(len(patterns))]


def tasks_of(choices: Sequence[CostedSchedule]) -> list[CountTask]:
    """Return what is to be written for some choices, numbered in their order."""
    return [CountTask(it.schedule, it.tail, place) for place, it in enumerate(choices)]


def _own_cost(choice: CostedSchedule, before: Sequence[CostedSchedule]) -> float:
    """Return the cost of the steps that no choice before begins with."""
    shared = max((_num_shared(choice, other) for other in before), default=0)
    return sum(choice.costs[shared:])


def _num_shared(choice: CostedSchedule, other: CostedSchedule) -> int:
    """Return how many loops two choices begin with alike."""
    most = min(len(it.trips) - it.tail for it in (choice, other))
    for step in range(most):
        if choice.schedule.condition(step) != other.schedule.condition(step):
            return step
    return most


def _tried(
    rows: SimpleGraph,
    pattern: Pattern,
    is_induced: bool,
    labels: npt.NDArray[np.int64] | None,
) -> list[CostedSchedule]:
    """Return the schedules that are worth a look, each with the tail that costs least."""
    known = schedules(pattern, is_induced=is_induced)
    ranked = sorted(known, key=lambda it: [-bits.bit_count() for bits in it.needed])
    shares = _shares(pattern, labels)
    return [_costed(rows, it, len(known), shares) for it in ranked[:_TRIED]]


def _shares(pattern: Pattern, labels: npt.NDArray[np.int64] | None) -> list[float]:
    """Return which share of the nodes has each of a pattern's labels, and 1 for any."""
    if labels is None or not len(labels):
        return [1.0]
    counts = np.bincount(labels + 1, minlength=len(pattern.node_labels) + 1)
    return [*(counts[1:] / len(labels)).tolist(), 1.0]


def _costed(
    rows: SimpleGraph, schedule: Schedule, num_schedules: int, shares: list[float]
) -> CostedSchedule:
    size = len(schedule.order)
    trips, work = np.zeros(size), np.zeros(size)
    longest = int(np.diff(rows.indptr).max(initial=0))
    if len(rows.indices):
        words = (schedule.needed, schedule.refused, schedule.above, schedule.below)
        steps = np.array(words, dtype=np.int64).T.copy()
        sample_trips(
            rows.indptr,
            rows.indices,
            steps,
            _SAMPLES,
            draw_key(0, "schedules"),
            np.zeros(size, np.int64),
            np.empty(longest, rows.indices.dtype),
            trips,
            work,
        )
        # a label is taken for as frequent everywhere as it is in all
        kept = np.cumprod([shares[schedule.label(step)] for step in range(size)])
        trips *= kept
        work[1:] *= kept[:-1]
    most = longest_tail(schedule, longest)
    choices = [
        CostedSchedule(
            schedule, tail, tuple(trips.tolist()), tuple(work.tolist()), num_schedules
        )
        for tail in range(1, most + 1)
    ]
    return min(choices, key=lambda it: it.cost)
