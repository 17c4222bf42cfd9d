"""Finding E: the mix of instructions, from the newest result of ``instructions``."""

import json
from pathlib import Path

from bench.output import RESULTS
from bench.study.finding import MOST, OPEN, Finding, judge
from bench.study.statistics import Rows, medians, superiority, values

PREFIX = "instructions, "
COMMAND = "scripts/bench/run instructions --save"
SLOW = ("memory", "control", "inter_thread")
"""Kinds that wait, jump or meet: more of them could make an application slow."""


def newest_name() -> str:
    """Return the name of the newest result's file."""
    return max((path.name for path in RESULTS.glob("instructions_*.json")), default="none")


def mixes(path: Path | None = None) -> Rows:
    """Return the mixes of the applications and controls; the newest result's by default."""
    path = RESULTS / newest_name() if path is None else path
    if not path.exists():
        return []
    kept = json.loads(path.read_text())["machine"]["runs"]
    return [(run["work"].removeprefix(PREFIX), run["figures"]) for run in kept]


def instructions(rows: Rows) -> Finding:
    """Return the finding about the mix of instructions.

    Args:
        rows: As :func:`mixes` returns them.
    """
    told, shares = [], []
    for kind in SLOW:
        name = f"{kind} share"
        if not all(values(rows, name)):
            continue
        graph, control = medians(rows, name)
        shares.append(superiority(rows, name))
        told.append(
            f"{kind.replace('_', ' ')} {graph:.1%}, controls {control:.1%}, more in "
            f"{shares[-1]:.0%} of pairs"
        )
    graph_runs, controls = values(rows, "instructions")
    return Finding(
        subject="E. Instruction mix",
        paper="It does not explain the difference in time to other applications",
        statistic="Shares of instructions of global memory, control and between threads in "
        "machine code for Hopper, counted in the text: none is larger than in controls in "
        "75 % of pairs, so that none could explain G's difference",
        here="; ".join(told) or f"not counted yet: `{COMMAND}`",
        verdict=judge(
            max(shares) < MOST,
            f"{len(graph_runs)} applications and {len(controls)} controls; not as often as "
            "executed",
        )
        if shares
        else OPEN,
    )
