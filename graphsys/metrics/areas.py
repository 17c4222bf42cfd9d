"""How well scores tell positives from negatives: areas below curves, F1."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]


def roc_auc(positive: Floats, negative: Floats) -> float | None:
    """Return the area under the ROC curve: how often a positive beats a negative.

    Every score of an edge is compared with every score of a wrong answer; equal ones
    count one half (Mann, Whitney, 1947).

    Args:
        positive: Scores of edges ``[n]``.
        negative: Scores of wrong answers ``[m]``; NaN: there was none.

    Returns:
        The area, or None if one side is empty.
    """
    negative = np.sort(negative[~np.isnan(negative)])
    if not len(positive) or not len(negative):
        return None
    wins = np.searchsorted(negative, positive, side="left")
    ties = np.searchsorted(negative, positive, side="right") - wins
    total = int(wins.sum()) + int(ties.sum()) / 2
    return total / (len(positive) * len(negative))


def roc_auc_of(scores: Floats, is_positive: npt.NDArray[np.bool_]) -> float:
    """Return the chance that a positive scores above a negative, ties counting half.

    Args:
        scores: Scores ``[n]``.
        is_positive: Which of them are of positives ``[n]``.

    Returns:
        :func:`roc_auc`; NaN if one side is empty or a score is none.

    Examples:
        >>> roc_auc_of(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, True, False, True]))
        0.875
    """
    area = roc_auc(scores[is_positive], scores[~is_positive])
    return float("nan") if area is None or np.isnan(scores).any() else area


def f1(num_hits: float, num_chosen: float, num_positive: float) -> float:
    """Return the harmonic mean of precision and recall; 0 where nothing is to be found.

    Args:
        num_hits: Positives among the chosen ones.
        num_chosen: How many were taken for positives.
        num_positive: How many are.

    Examples:
        >>> f1(1, 2, 2), f1(0, 0, 0)
        (0.5, 0.0)
    """
    return float(2 * num_hits / max(num_chosen + num_positive, 1.0))


def pair_metrics(positive: Floats, negative: Floats) -> dict[str, float]:
    """Return ``roc_auc``, ``pr_auc`` and ``f1`` of the scores of edges and of others.

    ``pr_auc`` is the area below the lines between the points of precision and recall;
    ``f1`` takes as many pairs for edges as there are (more where scores are equal), both as
    Cen et al. (KDD 2019) measure them.

    Args:
        positive: Scores of edges ``[n]``, at least one.
        negative: Scores of pairs that are none ``[m]``.

    Examples:
        >>> pair_metrics(np.array([0.9, 0.4]), np.array([0.5, 0.1]))["f1"]
        0.5
    """
    scores = np.concatenate([positive, negative])
    is_edge = np.arange(len(scores)) < len(positive)
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    ends = np.append(ordered[1:] != ordered[:-1], True)  # equal scores are one step
    hits = np.cumsum(is_edge[order])[ends]
    taken = np.flatnonzero(ends) + 1
    precision = np.concatenate([[1.0], hits / taken])
    recall = np.concatenate([[0.0], hits / len(positive)])
    at = int(np.searchsorted(taken, len(positive)))
    return {
        "roc_auc": roc_auc_of(scores, is_edge),
        "pr_auc": float(np.trapezoid(precision, recall)),
        "f1": f1(hits[at], taken[at], len(positive)),
    }
