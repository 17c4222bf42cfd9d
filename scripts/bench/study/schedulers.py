"""Finding G: warp schedulers, from the newest result of the case ``schedulers``."""

import json
from pathlib import Path

from bench.output import RESULTS
from bench.study.finding import FEW, GPU, Finding, judge
from bench.study.statistics import Rows, medians, superiority, values

LITTLE = 0.05
PREFIX = "simulated schedulers, "


def newest_name() -> str:
    """Return the name of the newest result's file."""
    return max((path.name for path in RESULTS.glob("schedulers_*.json")), default="none")


def simulated(path: Path | None = None) -> Rows:
    """Return the simulated runs with their figures; the newest result's by default."""
    if path is None:
        path = RESULTS / newest_name()
        if not path.exists():
            return []
    found: dict[str, dict[str, float]] = {}
    for run in json.loads(path.read_text())["machine"]["runs"]:  # alike for all policies
        found.setdefault(run["work"].removeprefix(PREFIX), {}).update(run["figures"])
    return list(found.items())


def policies(rows: Rows) -> Finding:
    """Return the finding about the policies."""
    spreads = values(rows, f"{GPU} scheduler_spread")
    graph, control = (max(own, default=float("nan")) for own in spreads)
    middle = medians(rows, f"{GPU} scheduler_spread")
    return Finding(
        subject="G. Warp schedulers",
        paper="GTO, two-level and round-robin differ little",
        statistic="Best policy's instructions per cycle over the worst's, simulated: at "
        "most 5 % apart on every graph",
        here=f"at most {graph:.1%} on graphs, median {middle[0]:.1%}; on controls at most "
        f"{control:.1%}, median {middle[1]:.1%}",
        verdict=judge(graph <= LITTLE, "simulated: no GPU lets it be chosen"),
    )


def speed(rows: Rows) -> Finding:
    """Return the finding about instructions per cycle."""
    name = f"{GPU} scheduler_ipc.gto"
    graph, control = medians(rows, name)
    more = superiority(rows, name)
    return Finding(
        subject="G. Instructions per cycle",
        paper="Those of graph applications are significantly fewer",
        statistic="Of a scheduler that is greedy then oldest, simulated: fewer in 75 % of "
        "pairs, and the median below half of the controls'",
        here=f"{graph:.3f} against {control:.3f} (medians); fewer in {1 - more:.0%} of "
        "pairs",
        verdict=judge(more <= FEW and graph < control / 2, "simulated"),
    )
