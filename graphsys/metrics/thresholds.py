"""Scores turned into classes: a threshold chosen on some pairs, F1 of others."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]


def best_threshold(scores: Floats, is_positive: Bools) -> float:
    """Return the score from which on pairs are best taken for positives, by macro-F1.

    Halfway between two neighboring scores, the first of equally good ones from above.

    Args:
        scores: Scores ``[n]``.
        is_positive: Which pairs are positives ``[n]``.

    Returns:
        The threshold; ``inf`` where there are no scores.

    Examples:
        >>> best_threshold(np.array([0.9, 0.5, 0.1]), np.array([True, True, False]))
        0.3
    """
    if not len(scores):
        return float("inf")
    order = np.argsort(-scores, kind="stable")
    ordered, hits = scores[order].astype(np.float64), np.cumsum(is_positive[order])
    ends = np.append(ordered[1:] != ordered[:-1], True)  # equal scores are one step
    taken, hits = np.flatnonzero(ends) + 1, hits[ends]
    total, positives = len(scores), int(is_positive.sum())
    misses = total - taken - (positives - hits)  # what is rightly left out
    yes = 2 * hits / (taken + positives)
    no = 2 * misses / np.maximum(total - taken + total - positives, 1)
    best = int(np.argmax(yes + no))
    low = ordered[taken[best]] if taken[best] < total else ordered[-1] - 2.0
    return float((ordered[taken[best] - 1] + low) / 2)


def f1_of_classes(
    found: npt.NDArray[np.int64], true: npt.NDArray[np.int64], num: int
) -> dict[str, float]:
    """Return ``f1_micro`` and ``f1_macro`` of classes ``0 .. num - 1``.

    Of one class a pair, the micro-average is the share of right ones; the macro-average is
    the mean over classes, 0 for one that is neither found nor there.

    Args:
        found: Predicted classes, int64 ``[n]``.
        true: Classes, int64 ``[n]``.
        num: How many there are.

    Examples:
        >>> f1_of_classes(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]), 2)
        {'f1_micro': 0.75, 'f1_macro': 0.7333333333333334}
    """
    counts = np.bincount(true * num + found, minlength=num * num).reshape(num, num)
    right = counts.diagonal()
    own = 2 * right / np.maximum(counts.sum(axis=0) + counts.sum(axis=1), 1)
    return {
        "f1_micro": float(right.sum() / max(len(true), 1)),
        "f1_macro": float(own.mean()),
    }
