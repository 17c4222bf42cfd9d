"""Findings B and C as far as caches tell them, from the case ``schedulers``."""

from bench.study.finding import FEW, GPU, LABELS, MOST, OLD, Finding, judge
from bench.study.statistics import Rows, medians, superiority

STALLED, INEFFECTIVE = 0.7, 0.5


def stalls(rows: Rows) -> Finding:
    """Return the finding about stalls."""
    name = f"{GPU} predicted_stall_share"
    graph, control = medians(rows, name)
    more = superiority(rows, name)
    return Finding(
        subject="B. Stalls",
        paper="Long memory latency causes over 70 % of pipeline stalls",
        statistic="Cycles in which all warps of a scheduler wait for loads, simulated, "
        "other stalls left out: over 70 % (median), and more than in controls in 75 % of "
        "pairs",
        here=f"{graph:.0%}, controls {control:.0%} (medians); more in {more:.0%} of pairs",
        verdict=judge(
            graph > STALLED and more >= MOST, "a model; the stalls' shares need a GPU"
        ),
    )


def misses(rows: Rows) -> Finding:
    """Return the finding about cache misses."""
    told, shares = [], []
    for gpu in (GPU, OLD):
        for level in (1, 2):
            name = f"{gpu} l{level}_hit_rate"
            graph, control = medians(rows, name)
            shares.append(superiority(rows, name))
            told.append(
                f"{LABELS[gpu]} L{level} {1 - graph:.0%}, controls {1 - control:.0%}, "
                f"higher in {1 - shares[-1]:.0%} of pairs"
            )
    return Finding(
        subject="B. Cache misses",
        paper="High cache-miss rates",
        statistic="Misses over what is asked for, by the cache model: more than in "
        "controls in 75 % of pairs, on both GPUs, in L1 and in L2",
        here="; ".join(told),
        verdict=judge(max(shares) <= FEW, "a model"),
    )


def first_level(rows: Rows) -> Finding:
    """Return the finding about the L1."""
    found = {gpu: medians(rows, f"{gpu} l1_hit_rate.states") for gpu in (GPU, OLD)}
    indices = medians(rows, f"{OLD} l1_hit_rate.indices")[0]
    told = ", ".join(
        f"{LABELS[gpu]} {graph:.0%} (controls {control:.0%})"
        for gpu, (graph, control) in found.items()
    )
    return Finding(
        subject="C. L1",
        paper='L1 is "entirely ineffective"',
        statistic="Hits in L1 of what is read of neighbors, by the cache model: below 50 % "
        "(median) on the paper's GPU",
        here=f"{told}; neighbors' numbers on an M2050 {indices:.0%}",
        verdict=judge(found[OLD][0] < INEFFECTIVE, "a model"),
    )
