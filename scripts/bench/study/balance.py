"""Finding F: how CTAs fill the SMs, and how they and their warps vary."""

from bench.study.finding import FEW, GPU, LABELS, MOST, OLD, Finding, judge
from bench.study.statistics import Rows, medians, rank_correlation, share_rising, values

FILLINGS = ("fewer", "exact", "more")
EVEN, UNEVEN = 1.1, 1.5


def coarse(rows: Rows) -> Finding:
    """Return the finding about the CTAs of each SM."""
    found: dict[str, list[float]] = {name: [] for name in FILLINGS}
    counts = dict.fromkeys(FILLINGS, 0)
    for name in FILLINGS:
        for gpu in (GPU, OLD):
            for own in values(rows, f"{gpu} {name} cta_imbalance"):
                found[name] += own
            counts[name] += int(sum(map(sum, values(rows, f"{gpu} {name} launches"))))
    middle = {name: _middle(own) for name, own in found.items()}
    worst = max(found["exact"], default=float("nan"))
    told = ", ".join(
        f"{name} {middle[name]:.2f} ({counts[name]:,} launches of {len(found[name])} runs)"
        for name in FILLINGS
    )
    return Finding(
        subject="F. Coarse balance",
        paper="With m SMs of at most n CTAs each, more than m*n CTAs balance, exactly m*n "
        "are perfect, fewer are uneven",
        statistic=f"Most CTAs of an SM over the mean, per launch, on both GPUs, graphs and "
        f"controls: median at most {EVEN} with more, 1 with as many always, at least "
        f"{UNEVEN} with fewer",
        here=f"{told}; worst with exactly m*n: {worst:.2f}",
        verdict=judge(
            middle["more"] <= EVEN and worst == 1.0 and middle["fewer"] >= UNEVEN,
            "exactly m*n follows from the placement, which takes free places in turn",
        ),
    )


def _middle(own: list[float]) -> float:
    import statistics

    return statistics.median(own) if own else float("nan")


def larger(rows: Rows) -> Finding:
    """Return the finding about larger inputs and the SMs' work."""
    told, shares = [], []
    for gpu in (GPU, OLD):
        share, count = share_rising(rows, f"{gpu} sm_imbalance thread")
        shares.append(share)
        told.append(f"{LABELS[gpu]} {1 - share:.0%} of {count}")
    return Finding(
        subject="F. Larger inputs, SMs",
        paper="Larger inputs balance better",
        statistic="Series of an application on one kind of graph: busiest SM over the mean "
        "falls from the smallest to the largest in 75 %, on both GPUs",
        here=", ".join(told),
        verdict=judge(max(shares) <= FEW),
    )


def fine(rows: Rows) -> Finding:
    """Return the finding about larger inputs and the variation between CTAs."""
    share, count = share_rising(rows, f"{GPU} cta_variance thread")
    graph, control = medians(rows, f"{GPU} cta_variance thread")
    return Finding(
        subject="F. Larger inputs, CTAs",
        paper="Larger inputs raise the variation between CTAs",
        statistic="Series as above: sigma/mu of the CTAs rises in 75 %",
        here=f"in {share:.0%} of {count}; median {graph:.2f}, controls {control:.2f}",
        verdict=judge(share >= MOST),
    )


def divergent(rows: Rows) -> Finding:
    """Return the finding about divergence and the variation between CTAs."""
    names = f"{GPU} lane_utilization thread", f"{GPU} cta_variance thread"
    trend = rank_correlation(rows, *names)
    return Finding(
        subject="F. Divergence",
        paper="Divergent applications vary most between CTAs",
        statistic="The fewer lanes at work, the more CTAs vary: Spearman's rho <= -0.5",
        here=f"rho {trend:.2f}",
        verdict=judge(trend <= -0.5),
    )


def warps(rows: Rows) -> Finding:
    """Return the finding about the warps of a CTA."""
    graph, control = medians(rows, f"{GPU} warp_variance thread")
    return Finding(
        subject="F. Warps",
        paper="The variation of the warps of a CTA is not high",
        statistic="Median sigma/mu of a CTA's warps below 0.5",
        here=f"{graph:.2f}, controls {control:.2f}",
        verdict=judge(graph < 0.5),
    )
