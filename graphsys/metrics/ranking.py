"""Ranks averaged: means, their intervals of confidence, breakdowns."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HITS: Final = (1, 3, 10)
LEVEL: Final = 0.95


def ranking_metrics(filtered: Sequence[Doubles], raw: Sequence[Doubles]) -> dict[str, Any]:
    """Average ranks into the metrics of the command line's contract."""
    metrics: dict[str, Any] = means(np.concatenate(list(filtered)))
    metrics["unfiltered"] = means(np.concatenate(list(raw)))
    return metrics


def means(ranks: Doubles) -> dict[str, float]:
    """Return mean reciprocal rank, mean rank and hits of ranks ``[n]``."""
    ranks = np.sort(ranks)  # so that the order of the queries does not change a sum
    return {name: float(np.mean(value)) for name, value in _values(ranks).items()}


def intervals(ranks: Doubles, clusters: Ints) -> dict[str, Any]:
    """Return intervals of confidence of the means.

    Student's t interval of a mean over clusters of queries that are not independent: the
    variance of the sum of their deviations (Liang, Zeger, "Longitudinal data analysis
    using generalized linear models", Biometrika 1986), with clusters - 1 degrees of
    freedom. With clusters of one query this is the textbook interval. It ends where the
    mean of no ranks can lie: below 0 or above 1, of ranks below 1.

    Args:
        ranks: Ranks ``[n]``.
        clusters: The cluster of every query, 0 to G - 1 ``[n]``.

    Returns:
        ``level``, ``method`` and ``[low, high]`` per metric; None for fewer than two
        clusters, of which nothing is known.
    """
    from scipy.special import stdtrit  # Student's quantile; scipy.stats takes seconds

    order = np.lexsort((ranks, clusters))
    ranks, clusters = ranks[order], clusters[order]
    num = int(clusters[-1]) + 1
    found: dict[str, Any] = {"level": LEVEL, "method": f"t, {num} clusters"}
    for name, values in _values(ranks).items():
        mean = float(np.mean(values))
        if num < 2:
            found[name] = None
            continue
        sums = np.bincount(clusters, weights=values - mean, minlength=num)
        error = float(np.sqrt(float(sums @ sums) * num / (num - 1))) / len(ranks)
        width = float(stdtrit(num - 1, 0.5 + LEVEL / 2)) * error
        low, high = (1.0, math.inf) if name == "mr" else (0.0, 1.0)
        found[name] = [max(mean - width, low), min(mean + width, high)]
    return found


def by_group(
    names: Sequence[str], groups: Ints, ranks: Doubles
) -> dict[str, dict[str, Any]]:
    """Average the ranks of every group.

    Args:
        names: Names of the groups.
        groups: The group of every query ``[n]``.
        ranks: Ranks ``[n]``.

    Returns:
        Means and ``num_queries`` by name; groups without queries are left out.
    """
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups, minlength=len(names)))
    found = {}
    for name, begin, end in zip(names, [0, *ends[:-1]], ends, strict=True):
        if end > begin:
            some = ranks[order[begin:end]]
            found[name] = {**means(some), "num_queries": int(end - begin)}
    return found


def degree_bins(degrees: Ints) -> tuple[list[str], Ints]:
    """Put degrees into bins 0, 1, 2-3, 4-7, ...: their names, and the bin of each."""
    bins = np.where(degrees > 0, np.log2(np.maximum(degrees, 1)).astype(np.int64) + 1, 0)
    names = ["0", "1"]
    names += [f"{1 << k}-{(2 << k) - 1}" for k in range(1, int(bins.max(initial=0)))]
    return names, bins


def _values(ranks: Doubles) -> Mapping[str, Doubles]:
    hits = {f"hits@{k}": (ranks <= k).astype(np.float64) for k in HITS}
    return {"mrr": 1.0 / ranks, "mr": ranks} | hits
