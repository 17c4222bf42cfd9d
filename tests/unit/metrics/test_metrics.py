"""Areas, F1 and means, against plain Python and tables of Student's distribution."""

import math
from typing import Any

import numpy as np
import pytest

from graphsys.metrics import (
    by_group,
    degree_bins,
    f1,
    intervals,
    means,
    ranking_metrics,
    roc_auc,
    roc_auc_of,
)

RANKS = np.array([1.0, 10.0, 2.5, 3.0, 11.0, 40.0])
QUANTILES = {1: 12.7062047, 2: 4.30265273, 5: 2.57058184}  # of t at .975, by freedom


def test_means_are_those_of_the_contract() -> None:
    found = means(RANKS)
    assert found == pytest.approx(
        {
            "mrr": sum(1 / rank for rank in RANKS.tolist()) / 6,
            "mr": 67.5 / 6,
            "hits@1": 1 / 6,
            "hits@3": 3 / 6,
            "hits@10": 4 / 6,
        }
    )
    assert means(RANKS[::-1]) == found
    both = ranking_metrics([RANKS[:2], RANKS[2:]], [RANKS[:1], RANKS[4:5]])
    assert both == found | {"unfiltered": means(RANKS[[0, 4]])}


@pytest.mark.parametrize(
    "clusters", [[0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2], [1, 0, 0, 0, 0, 1]]
)
def test_intervals_are_students_over_the_sums_of_clusters(clusters: list[int]) -> None:
    num = max(clusters) + 1
    found = intervals(RANKS, np.array(clusters))
    assert found["level"] == 0.95
    assert found["method"] == f"t, {num} clusters"
    values: dict[str, Any] = {
        "mrr": 1 / RANKS,
        "mr": RANKS,
        "hits@1": RANKS <= 1,
        "hits@3": RANKS <= 3,
        "hits@10": RANKS <= 10,
    }
    assert found.keys() == {"level", "method", *values}
    for name, value in values.items():
        mean = value.mean()
        sums = [
            sum(v - mean for v, c in zip(value, clusters, strict=True) if c == cluster)
            for cluster in range(num)
        ]
        error = math.sqrt(sum(s * s for s in sums) * num / (num - 1)) / len(value)
        width = QUANTILES[num - 1] * error
        least, most = (1, math.inf) if name == "mr" else (0, 1)
        wanted = [max(mean - width, least), min(mean + width, most)]
        assert found[name] == pytest.approx(wanted)


def test_an_interval_has_no_values_that_no_mean_has() -> None:
    found = intervals(np.array([1.0, 1.0, 1.0, 12.0]), np.arange(4))
    assert found["hits@10"][1] == 1.0
    assert found["mr"][0] == 1.0
    rare = intervals(np.array([1.0, 30.0, 30.0, 30.0]), np.arange(4))
    assert rare["hits@3"][0] == 0.0
    assert rare["mrr"][0] == 0.0


def test_of_one_cluster_no_interval_is_known() -> None:
    found = intervals(RANKS, np.zeros(6, dtype=np.int64))
    assert found["method"] == "t, 1 clusters"
    assert found["mrr"] is None
    assert found["hits@10"] is None


def test_groups_are_averaged_by_name_and_empty_ones_left_out() -> None:
    found = by_group(["a", "b", "c", "d"], np.array([2, 0, 2, 0, 0, 1]), RANKS)
    assert found == {
        "a": {**means(RANKS[[1, 3, 4]]), "num_queries": 3},
        "b": {**means(RANKS[[5]]), "num_queries": 1},
        "c": {**means(RANKS[[0, 2]]), "num_queries": 2},
    }


def test_a_group_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        by_group(["a"], np.array([0, 1]), RANKS[:2])


def test_degrees_are_put_into_bins_of_powers_of_two() -> None:
    names, bins = degree_bins(np.array([0, 1, 2, 3, 4, 7, 8, 15, 16]))
    assert names == ["0", "1", "2-3", "4-7", "8-15", "16-31"]
    assert bins.tolist() == [0, 1, 2, 2, 3, 3, 4, 4, 5]
    names, bins = degree_bins(np.array([1, 0]))
    assert (names, bins.tolist()) == (["0", "1"], [1, 0])
    assert degree_bins(np.empty(0, dtype=np.int64))[0] == ["0", "1"]


def test_the_area_counts_wins_and_half_of_ties() -> None:
    rng = np.random.default_rng(5)
    positive = rng.integers(0, 6, 30).astype(float)
    negative = rng.integers(-2, 5, 40).astype(float)
    gaps = positive[:, None] - negative[None]
    wanted = ((gaps > 0) + 0.5 * (gaps == 0)).mean()
    assert roc_auc(positive, negative) == pytest.approx(wanted)
    with_none = np.append(negative, [np.nan, np.nan])
    assert roc_auc(positive, with_none) == pytest.approx(wanted)
    assert roc_auc(positive, np.array([np.nan])) is None
    assert roc_auc(np.empty(0), negative) is None
    assert roc_auc(np.array([1.0]), np.array([0.0])) == 1


def test_the_area_of_scores_with_their_truth_is_the_same_area() -> None:
    rng = np.random.default_rng(6)
    scores, truth = rng.integers(0, 6, 50).astype(np.float32), rng.random(50) < 0.3
    assert roc_auc_of(scores, truth) == roc_auc(scores[truth], scores[~truth])
    assert math.isnan(roc_auc_of(scores, np.ones(50, dtype=bool)))
    assert math.isnan(roc_auc_of(scores, np.zeros(50, dtype=bool)))


@pytest.mark.parametrize("place", [0, 1])
def test_a_score_that_is_no_number_makes_the_area_none(place: int) -> None:
    scores = np.array([1.0, 0.0, 0.5])
    scores[place] = np.nan
    assert math.isnan(roc_auc_of(scores, np.array([True, False, True])))


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    precision, recall = 3 / 4, 3 / 5
    assert f1(3, 4, 5) == pytest.approx(2 / (1 / precision + 1 / recall))
    assert f1(1, 1, 1) == 1
    assert f1(0, 0, 1) == f1(0, 0, 0) == 0
