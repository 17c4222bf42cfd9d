"""Findings B, C and D: requests, what kernels keep on chip, lanes."""

import json
import statistics

from bench.output import newest
from bench.study.finding import FEW, GPU, Finding, judge
from bench.study.statistics import Rows, medians, rank_correlation, superiority

WAYS = ("thread", "sub-warp", "warp", "twc", "edge", "merge-path")


def requests(rows: Rows) -> Finding:
    """Return the finding about stalls, as far as requests tell it."""
    name = f"{GPU} coalescing_efficiency thread"
    graph, control = medians(rows, name)
    more = superiority(rows, name)
    sectors, even = medians(rows, f"{GPU} value_sectors_per_request thread")
    return Finding(
        subject="B. Scattered loads",
        paper="Long memory latency stalls the pipeline",
        statistic="Its cause: useful bytes of those moved for `x[indices]`, by a thread "
        "per row, less than the controls' loads in 75 % of pairs",
        here=f"{graph:.0%} against {control:.0%}; less in {1 - more:.0%} of pairs; "
        f"{sectors:.3g} sectors a request against {even:.3g}",
        verdict=judge(more <= FEW),
    )


def on_chip() -> Finding:
    """Return the finding about registers and shared memory."""
    from bench.controls.catalog import kernels

    told = [
        facts
        for program in json.loads(newest("cuda_registers_sm90").read_text())[
            "kernels"
        ].values()
        for facts in program.values()
    ]
    registers = statistics.median(facts["registers"] for facts in told)
    shared = [facts["shared_bytes"] for facts in told]
    own = [4 * it.shared for it in kernels() if it.shared > 1]
    share, regular = sum(map(bool, shared)) / len(told), len(own) / len(kernels())
    return Finding(
        subject="C. Shared memory",
        paper="Registers are the best used; shared and constant memory are little used",
        statistic="Share of kernels with shared memory, ours compiled for sm_90: below a "
        "half, and below the controls'",
        here=f"{share:.0%} of {len(told)} kernels, {max(shared):,} bytes a CTA at most, "
        f"against {regular:.0%} of {len(kernels())}, {statistics.median(own):,.0f} bytes "
        f"(median of those); {registers:.0f} registers a thread (median)",
        verdict=judge(share < min(0.5, regular)),
    )


def lanes(rows: Rows) -> Finding:
    """Return the finding about lanes."""
    name = f"{GPU} lane_utilization thread"
    more = superiority(rows, name)
    trend = rank_correlation(rows, "degree_variation", name)
    told = ", ".join(
        f"{way} {medians(rows, f'{GPU} lane_utilization {way}')[0]:.0%}" for way in WAYS
    )
    return Finding(
        subject="D. SIMT lanes",
        paper="Iterations per lane vary with the degree, so lanes idle",
        statistic="A thread per row: fewer lanes at work than in controls in 75 % of "
        "pairs, and the fewer, the more degrees vary: Spearman's rho at most -0.5",
        here=f"Lanes at work (medians): {told}; controls {medians(rows, name)[1]:.0%}; "
        f"fewer in {1 - more:.0%} of pairs; rho {trend:.2f}",
        verdict=judge(more <= FEW and trend <= -0.5, "sharing by edges removes it"),
    )
