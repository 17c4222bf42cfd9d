"""The paper's findings beside ours, from the figures of the case ``bottlenecks``.

The paper's findings stand here in our words, see the README of ``graphsys/analysis``.
Every word about ours is chosen by a figure of the result file.
"""

import json
import statistics
from collections.abc import Sequence

from bench.output import RESULTS, newest

GPU, OLD = "h100", "m2050"
_BALANCE = (
    "Coarse: with m SMs of at most n CTAs each, more than m*n CTAs balance, exactly m*n "
    "are perfect, fewer are uneven; larger inputs balance better. Fine: larger inputs "
    "raise the variation between CTAs, divergent applications vary most, warps of a CTA "
    "do not vary much"
)
_SCHEDULERS = (
    "GTO, two-level and round-robin differ little; graph applications run significantly "
    "fewer instructions per cycle"
)
Rows = Sequence[tuple[str, dict[str, float]]]


def medians(rows: Rows, name: str) -> tuple[float, float]:
    """Return the median of a figure over graph applications, and over controls."""
    found = []
    for is_control in (False, True):
        known = [
            figures[name]
            for work, figures in rows
            if work.startswith("control") == is_control and name in figures
        ]
        found.append(statistics.median(known) if known else float("nan"))
    return found[0], found[1]


def superiority(rows: Rows, name: str) -> float:
    """Return in which share of pairs the graph application has more than the control.

    Ties count half; 0.5 is no difference (Mann and Whitney's U over all pairs).
    """
    both: tuple[list[float], list[float]] = ([], [])
    for work, figures in rows:
        if name in figures:
            both[work.startswith("control")].append(figures[name])
    pairs = [(a > b) + (a == b) / 2 for a in both[0] for b in both[1]]
    return statistics.fmean(pairs) if pairs else float("nan")


def findings(rows: Rows) -> list[tuple[str, str, str, str]]:
    """Return letter and subject, the paper's words, our figures, and what became of it."""
    return [
        _launches(rows),
        _transfers(rows),
        _memory(rows),
        _storage(),
        _lanes(rows),
        ("E. Instruction mix",
         "It does not explain the difference in time to other applications",
         "`graphsys profile --compile sm_90 PROGRAM` tells it by kernel and by line",
         "open: no control was compiled to compare with"),
        _balance(rows),
        _schedulers(),
    ]  # fmt: skip


def _schedulers() -> tuple[str, str, str, str]:
    """Return the finding from the newest result of the case ``schedulers``."""
    found = sorted(RESULTS.glob("schedulers_*.json"))
    head = ("G. Warp scheduler", _SCHEDULERS)
    if not found:
        return (*head, "Cannot be varied on silicon, and was not simulated", "not done")
    runs = json.loads(found[-1].read_text())["machine"]["runs"]
    told, widest = [], 0.0
    for work in dict.fromkeys(run["work"] for run in runs):
        own = {
            run["system"].removeprefix("graphsys "): run["figures"][f"{GPU} ipc"]
            for run in runs
            if run["work"] == work
        }
        best, least = max(own.values()), min(own.values())
        is_graph = "control" not in work
        widest = max(widest, best / least - 1) if is_graph else widest
        name = work.removeprefix("simulated schedulers, ")
        cells = ", ".join(f"{policy} {ipc:.3f}" for policy, ipc in own.items())
        told.append(f"{name}: {cells}")
    return (
        *head,
        (
            f"Simulated instructions per cycle of one scheduler of an H100, from assumed "
            f"latencies (`{found[-1].name}`): {'; '.join(told)}"
        ),
        _verdict(
            widest > 0.05,
            f"simulated: the policy changes up to {widest:.0%} on graphs",
            f"simulated: the policy changes at most {widest:.1%} on graphs, which wait for "
            "memory whoever goes first",
        ),
    )


def _verdict(holds: bool, yes: str, no: str) -> str:
    return yes if holds else no


def _launches(rows: Rows) -> tuple[str, str, str, str]:
    graph, control = medians(rows, "kernel_invocations")
    work, regular = medians(rows, f"{GPU} work_per_invocation")
    per_step = statistics.median(
        figures["kernel_invocations"] / figures["supersteps"]
        for work, figures in rows
        if not work.startswith("control") and figures.get("supersteps")
    )
    more = superiority(rows, "kernel_invocations")
    return (
        "A. Launches",
        (
            "Kernel invocations nearly an order of magnitude higher than non-graph; less "
            "computation per invocation"
        ),
        (
            f"{graph:.3g} launches against {control:.3g} (medians), more in {more:.0%} of "
            f"pairs; {per_step:.2g} per superstep; {work:,.0f} entries per launch against "
            f"{regular:,.0f} operands"
        ),
        _verdict(
            graph > 5 * control and work < regular,
            f"holds: {graph / control:.1f} times the launches, "
            f"{regular / work:.1f} times less work in each; fused supersteps need one "
            "launch for many (`graphsys/engine/cuda/README.md`: 1 instead of 134)",
            f"does not hold: {graph / control:.1f} times the launches, "
            f"{work / regular:.2g} times the work in each",
        ),
    )


def _transfers(rows: Rows) -> tuple[str, str, str, str]:
    _, copies = medians(rows, "transfer_count")
    sizes = [
        figures["transfer_bytes"] / figures["transfer_count"]
        for _, figures in rows
        if figures.get("transfer_count")
    ]
    each = statistics.median(sizes) if sizes else float("nan")
    return (
        "A. Transfers",
        "The CPU interacts over PCI more often, in total longer; each transfer is smaller",
        (
            f"Controls copy {copies:.3g} times (median), {each:,.0f} bytes each. Of graph "
            "applications it is not measured: no GPU. By construction arrays are copied "
            "once, and 64 bytes of counters per look of the host"
        ),
        "open until a GPU has run it",
    )


def _memory(rows: Rows) -> tuple[str, str, str, str]:
    graph, control = medians(rows, f"{GPU} coalescing_efficiency thread")
    sectors, regular = medians(rows, f"{GPU} value_sectors_per_request thread")
    lanes, _ = medians(rows, f"{GPU} lane_utilization thread")
    per_lane = sectors / (32 * lanes)
    return (
        "B. Stalls",
        "Long memory latency causes over 70 % of pipeline stalls; cache misses are many",
        (
            f"Stalls need a GPU. Of the bytes moved for `x[indices]`, {graph:.0%} are "
            f"useful, against {control:.0%}; {per_lane:.2f} sectors per active lane, "
            f"against {regular / 32:.2f}"
        ),
        _verdict(
            graph < control / 2,
            "its cause is there; the stalls are not measured",
            "its cause was not found",
        ),
    )


def _storage() -> tuple[str, str, str, str]:
    kernels = [
        facts
        for program in json.loads(newest("cuda_registers_sm90").read_text())[
            "kernels"
        ].values()
        for facts in program.values()
    ]
    registers = statistics.median(facts["registers"] for facts in kernels)
    shared = [facts["shared_bytes"] for facts in kernels if facts["shared_bytes"]]
    share = len(shared) / len(kernels)
    return (
        "C. SRAM",
        (
            "Registers are the best used; shared memory is little used, constant memory "
            'too; L1 is "entirely ineffective"'
        ),
        (
            f"{len(kernels)} kernels of the shipped programs, compiled for sm_90: "
            f"{registers:.0f} registers a thread (median); {share:.0%} use shared memory, "
            f"at most {max(shared, default=0):,} bytes a CTA. L1 needs a GPU"
        ),
        _verdict(
            share < 0.5,
            "holds for shared memory; L1 is not measured",
            "no longer holds for shared memory; L1 is not measured",
        ),
    )


def _lanes(rows: Rows) -> tuple[str, str, str, str]:
    found = {
        mapping: medians(rows, f"{GPU} lane_utilization {mapping}")
        for mapping in ("thread", "sub-warp", "warp", "twc", "edge", "merge-path")
    }
    told = ", ".join(f"{name} {graph:.0%}" for name, (graph, _) in found.items())
    thread, control = found["thread"]
    best = max(("twc", "warp", "sub-warp"), key=lambda name: found[name][0])
    return (
        "D. SIMT lanes",
        "Iterations per lane vary with the degree, so lanes idle",
        f"Lanes at work (medians): {told}; controls by thread {control:.0%}",
        _verdict(
            thread < control / 2,
            f"holds for a thread per row; {best} keeps {found[best][0] / thread:.1f} times "
            "as many lanes at work, and sharing by edges removes it",
            "does not hold",
        ),
    )


def _balance(rows: Rows) -> tuple[str, str, str, str]:
    text = []
    for label, gpu in (("H100", GPU), ("M2050", OLD)):
        cta, regular = medians(rows, f"{gpu} cta_variance thread")
        auto, _ = medians(rows, f"{gpu} cta_variance auto")
        sms, even = medians(rows, f"{gpu} sm_imbalance thread")
        text.append(
            f"{label}: CTA sigma/mu {cta:.2f} by thread, {auto:.2f} by auto, controls "
            f"{regular:.2f}; busiest SM {sms:.1f} times the mean, controls {even:.1f}"
        )
    ctas, _ = medians(rows, f"{GPU} ctas_per_sm thread")
    cta, regular = medians(rows, f"{GPU} cta_variance thread")
    auto, _ = medians(rows, f"{GPU} cta_variance auto")
    better = "less so" if auto < cta else "no less"
    return (
        "F. Balance",
        _BALANCE,
        "; ".join(text) + f"; {ctas:.2g} CTAs per SM over a whole run on an H100",
        _verdict(
            cta > 2 * regular + 0.1,
            f"variation is there by thread, {better} by the chosen mapping; these graphs "
            "are too small to fill an H100, which is most of its imbalance",
            "no variation",
        ),
    )
