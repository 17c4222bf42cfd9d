"""All findings, in the paper's order."""

from bench.study import balance, caches, lanes, launches, mix, schedulers
from bench.study.finding import Finding
from bench.study.statistics import Rows, comparable


def findings(rows: Rows, simulated: Rows, mixes: Rows) -> list[Finding]:
    """Return what became of each finding.

    Args:
        rows: The runs of the case ``bottlenecks``.
        simulated: Those of the case ``schedulers``.
        mixes: Those of the case ``instructions``.
    """
    alike, near = comparable(rows), comparable(simulated)
    return [
        launches.launches(alike),
        launches.work_per_launch(alike),
        launches.copies(alike),
        lanes.requests(alike),
        caches.stalls(near),
        caches.misses(near),
        lanes.on_chip(),
        caches.first_level(near),
        lanes.lanes(alike),
        mix.instructions(mixes),
        balance.coarse(rows),
        balance.larger(rows),
        balance.fine(rows),
        balance.divergent(rows),
        balance.warps(rows),
        schedulers.policies(simulated),
        schedulers.speed(near),
    ]
