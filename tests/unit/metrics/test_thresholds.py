"""Thresholds and F1 of classes against scikit-learn's definitions, written out."""

import numpy as np
import pytest

from graphsys.metrics.thresholds import best_threshold, f1_of_classes


def test_the_best_threshold_is_that_of_all_there_are() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 40):
        scores, is_positive = rng.integers(0, 9, size) / 3, rng.random(size) < 0.4
        found = f1_at(scores, is_positive, best_threshold(scores, is_positive))
        every = [f1_at(scores, is_positive, t) for t in np.arange(-1, 4, 1 / 7)]
        assert found == pytest.approx(max(every))


def f1_at(scores: np.ndarray, is_positive: np.ndarray, threshold: float) -> float:
    """Return the macro-F1 of what is above a threshold, class by class."""
    parts = []
    for true, found in (
        (is_positive, scores > threshold),
        (~is_positive, scores <= threshold),
    ):
        both = (true & found).sum()
        parts.append(2 * both / max(true.sum() + found.sum(), 1))
    return float(np.mean(parts))


def test_no_scores_choose_nothing() -> None:
    assert best_threshold(np.array([]), np.array([], dtype=bool)) == np.inf


def test_f1_of_three_classes() -> None:
    found, true = np.array([0, 1, 1, 2, 0]), np.array([0, 1, 2, 2, 1])
    # class 0: 2*1/(2+1); 1: 2*1/(2+2); 2: 2*1/(1+2)
    assert f1_of_classes(found, true, 3) == {
        "f1_micro": 0.6,
        "f1_macro": pytest.approx((2 / 3 + 1 / 2 + 2 / 3) / 3),
    }
