"""Which schedule of a pattern is the cheapest on a graph."""

from dataclasses import dataclass

import numpy as np

from graphsys.core.rng import draw_key
from graphsys.kernels.cpu.mining.trips import sample_trips
from graphsys.mining.compiler.schedule import Schedule, schedules
from graphsys.mining.pattern import Pattern
from graphsys.mining.simple_graph import SimpleGraph

_TRIED = 96
_SAMPLES = 128


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule and what it is expected to cost.

    Attributes:
        schedule: The one that is expected to cost least.
        trips: How often the loop of each step is run through; the last step is counted.
        work: Entries of sorted rows that the sets of each step read.
        num_schedules: How many there were to choose from.
    """

    schedule: Schedule
    trips: tuple[float, ...]
    work: tuple[float, ...]
    num_schedules: int

    @property
    def cost(self) -> float:
        """Entries read and loops run through, in all."""
        num_counted = 2 if self.schedule.is_paired else 1
        return sum(self.work) + sum(self.trips[:-num_counted])

    def lines(self) -> list[str]:
        """Say it in words: the schedule, and what is expected of it."""
        said = self.schedule.lines()
        for step in range(1, len(said)):
            cost = f"{self.trips[step]:.2g} expected"
            if self.work[step]:
                cost += f", {self.work[step]:.2g} entries read"
            said[step] += f" ({cost})"
        if self.schedule.is_paired:
            said.append("the last two are counted as pairs, without a loop")
        return [*said, f"cost {self.cost:.2g}, of {self.num_schedules} schedules the least"]


def choose_schedule(rows: SimpleGraph, pattern: Pattern, *, is_induced: bool) -> Choice:
    """Choose among the schedules of a pattern by the costs of sampled descents.

    Those are tried whose steps have edges with many before them as early as can be.

    Args:
        rows: The graph.
        pattern: The pattern.
        is_induced: Whether a match has no other edges than the pattern's.
    """
    known = schedules(pattern, is_induced=is_induced)
    ranked = sorted(known, key=lambda it: [-bits.bit_count() for bits in it.needed])
    tried = [_costed(rows, it, len(known)) for it in ranked[:_TRIED]]
    return min(tried, key=lambda it: it.cost)


def _costed(rows: SimpleGraph, schedule: Schedule, num_schedules: int) -> Choice:
    size = len(schedule.order)
    trips, work = np.zeros(size), np.zeros(size)
    if len(rows.indices):
        words = (schedule.needed, schedule.refused, schedule.above, schedule.below)
        steps = np.array(words, dtype=np.int64).T.copy()
        longest = int(np.diff(rows.indptr).max())
        sample_trips(
            rows.indptr, rows.indices, steps, _SAMPLES, draw_key(0, "schedules"),
            np.zeros(size, np.int64), np.empty(longest, rows.indices.dtype), trips, work,
        )  # fmt: skip
    return Choice(schedule, tuple(trips.tolist()), tuple(work.tolist()), num_schedules)
