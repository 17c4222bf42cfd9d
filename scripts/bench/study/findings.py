"""All findings, in the paper's order."""

from bench.study import balance, caches, lanes, launches, mix, schedulers
from bench.study.finding import Finding
from bench.study.statistics import Rows


def findings(rows: Rows, simulated: Rows, mixes: Rows) -> list[Finding]:
    """Return what became of each finding.

    Args:
        rows: The runs of the case ``bottlenecks``.
        simulated: Those of the case ``schedulers``.
        mixes: Those of the case ``instructions``.
    """
    return [
        launches.launches(rows),
        launches.work_per_launch(rows),
        launches.copies(rows),
        lanes.requests(rows),
        caches.stalls(simulated),
        caches.misses(simulated),
        lanes.on_chip(),
        caches.first_level(simulated),
        lanes.lanes(rows),
        mix.instructions(mixes),
        balance.coarse(rows),
        balance.larger(rows),
        balance.fine(rows),
        balance.divergent(rows),
        balance.warps(rows),
        schedulers.policies(simulated),
        schedulers.speed(simulated),
    ]
