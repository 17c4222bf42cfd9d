"""Finding G: warp schedulers, from the newest result of the case ``schedulers``."""

import json
from pathlib import Path

from bench.output import RESULTS
from bench.study.finding import FEW, GPU, Finding, judge
from bench.study.statistics import Rows, is_control, medians, superiority

LITTLE = 0.05
POLICIES = ("round-robin", "gto", "two-level")
Simulated = dict[str, dict[str, float]]


def simulated(path: Path | None = None) -> Simulated:
    """Return instructions per cycle by work and policy; the newest result's by default."""
    if path is None:
        files = sorted(RESULTS.glob("schedulers_*.json"))
        if not files:
            return {}
        path = files[-1]
    found: Simulated = {}
    for run in json.loads(path.read_text())["machine"]["runs"]:
        work = run["work"].removeprefix("simulated schedulers, ")
        policy = run["system"].removeprefix("graphsys ")
        found.setdefault(work, {})[policy] = run["figures"][f"{GPU} ipc"]
    return found


def policies(found: Simulated) -> Finding:
    """Return the finding about the policies."""
    widest = {
        is_control(work): max(
            (max(own.values()) / min(own.values()) - 1
             for name, own in found.items() if is_control(name) == is_control(work)),
        )
        for work in found
    }  # fmt: skip
    graph = widest.get(False, float("nan"))
    return Finding(
        subject="G. Warp schedulers",
        paper="GTO, two-level and round-robin differ little",
        statistic="Best policy's instructions per cycle over the worst's, simulated: at "
        "most 5 % apart on every graph",
        here=f"at most {graph:.1%} on graphs, {widest.get(True, float('nan')):.1%} on "
        "controls",
        verdict=judge(graph <= LITTLE, "simulated: no GPU lets it be chosen"),
    )


def speed(found: Simulated) -> Finding:
    """Return the finding about instructions per cycle."""
    rows: Rows = [(work, {"ipc": max(own.values())}) for work, own in found.items()]
    graph, control = medians(rows, "ipc")
    more = superiority(rows, "ipc")
    return Finding(
        subject="G. Instructions per cycle",
        paper="Those of graph applications are significantly fewer",
        statistic="Of a scheduler, its best policy, simulated: fewer in 75 % of pairs, and "
        "the median below half of the controls'",
        here=f"{graph:.3f} against {control:.3f} (medians); fewer in {1 - more:.0%} of "
        "pairs",
        verdict=judge(more <= FEW and graph < control / 2, "simulated"),
    )
