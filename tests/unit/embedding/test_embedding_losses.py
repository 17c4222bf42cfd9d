"""Every loss of scored candidates and its gradients, against NumPy's float64 formulas."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.kernels.cpu.embedding.candidate_weights import CandidateWeights
from graphsys.kernels.cpu.embedding.known import Masks
from graphsys.kernels.cpu.embedding.losses import (
    logistic_losses,
    ranking_losses,
    softmax_losses,
    weighted_losses,
)
from graphsys.kernels.jit import jit
from tests.embedding_codes import LOSS_CODES

Doubles = npt.NDArray[np.float64]
MARGIN: Final = 0.5
NUM_QUERIES, NUM_COLUMNS = 6, 9


def for_python(losses: Any) -> Any:
    """Return a kernel that only kernels can call, with an entry from Python."""

    @jit
    def call(*given: Any) -> Any:
        return losses(*given)

    return call


softmax, logistic = for_python(softmax_losses), for_python(logistic_losses)
weighted, ranking = for_python(weighted_losses), for_python(ranking_losses)


def softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax_of(p: float, s: Doubles) -> tuple[float, float, Doubles]:
    every = np.exp(np.append(s, p))
    share = every / every.sum()
    return np.log(every.sum()) - p, share[-1] - 1, share[:-1]


def logistic_of(p: float, s: Doubles) -> tuple[float, float, Doubles]:
    own = np.float64(p)
    loss = softplus(-own) + softplus(s).sum() / max(len(s), 1)
    return float(loss), float(-sigmoid(-own)), sigmoid(s) / max(len(s), 1)


def ranking_of(p: float, s: Doubles) -> tuple[float, float, Doubles]:
    is_violated = MARGIN + s - p > 0
    loss = np.where(is_violated, MARGIN + s - p, 0).sum()
    return float(loss), -float(is_violated.sum()), is_violated.astype(float)


def pools_of(kept: int, temperatures: list[float]) -> Any:
    """Return the formula where 2 columns are the batch's, 3 and 4 are two pools."""

    def formula(p: float, s: Doubles) -> tuple[float, float, Doubles]:
        loss, gradient = float(softplus(np.float64(-p))), -float(sigmoid(np.float64(-p)))
        slopes, share = np.zeros(len(s)), 1 / (len(s) - (4 - kept if kept else 0))
        spans = [(0, 2, 2), (2, 5, 3), (5, 9, kept or 4)]
        for (low, high, count), t in zip(spans, temperatures, strict=True):
            part = s[low:high]
            weights = np.ones(high - low)
            if t:
                weights = np.exp(t * part) / np.exp(t * part).sum() * count
            loss += share * float(weights[part > -np.inf] @ softplus(part[part > -np.inf]))
            slopes[low:high] = share * weights * sigmoid(part)
        return loss, gradient, slopes

    return formula


PLAIN: Final = CandidateWeights(
    Masks(np.empty(0, np.int64), np.empty(0, np.int32)),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    False,
    np.empty(0, np.float32),
)


def counting_of(kept: int, temperatures: list[float]) -> CandidateWeights:
    begins, num_kept = np.array([0, 3, 7]), np.array([0, kept])
    return PLAIN._replace(
        begins=begins,
        num_kept=num_kept,
        has_hard=kept > 0,
        temperatures=np.array(temperatures, np.float32),
    )


SHARP: Final = [0.5, 0.0, 2.0]
CASES: dict[str, tuple[Callable[..., Any], Any, CandidateWeights, int]] = {
    "softmax": (softmax, softmax_of, PLAIN, 0),
    "logistic": (logistic, logistic_of, PLAIN, 0),
    "ranking": (ranking, ranking_of, PLAIN, 0),
    "plain pools": (weighted, logistic_of, PLAIN, 0),
    "pools": (weighted, pools_of(0, SHARP), counting_of(0, SHARP), 0),
    "hard pools": (weighted, pools_of(3, SHARP), counting_of(3, SHARP), 1),
}


@pytest.mark.parametrize("skip", [0, 3])
@pytest.mark.parametrize("name", CASES)
def test_losses_and_gradients_are_their_formulas(name: str, skip: int) -> None:
    kernel, formula, counting, num_easy = CASES[name]
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 2, (NUM_QUERIES, skip + NUM_COLUMNS)).astype(np.float32)
    positives = rng.normal(0, 2, NUM_QUERIES).astype(np.float32)
    positives[0] = 30.0  # far above all others, where sums lose digits
    scores[1, skip] = 25.0
    bias = rng.normal(0, 1, skip + NUM_COLUMNS).astype(np.float32)
    weights = rng.uniform(0.5, 3, NUM_QUERIES).astype(np.float32)
    nodes = np.arange(100, 100 + skip + NUM_COLUMNS)
    own = nodes[skip] + np.arange(NUM_QUERIES) * 2 - 3  # some are candidates too
    if num_easy:
        scores[:, -1] = -np.inf
    found, gradients = scores.copy(), np.full(NUM_QUERIES, 7, np.float32)
    total = kernel(
        found,
        skip,
        positives,
        own,
        nodes,
        weights,
        bias,
        np.float32(MARGIN),
        counting,
        num_easy,
        gradients,
    )
    wanted = 0.0
    assert np.array_equal(found[:, :skip], scores[:, :skip])
    for i in range(NUM_QUERIES):
        row = scores[i, skip:].astype(np.float64) + bias[skip:]
        row[nodes[skip:] == own[i]] = -np.inf
        loss, at_positive, slopes = formula(float(positives[i]), row)
        wanted += float(weights[i]) * loss
        assert gradients[i] == pytest.approx(weights[i] * at_positive, rel=2e-5, abs=1e-9)
        np.testing.assert_allclose(
            found[i, skip:], weights[i] * slopes, rtol=2e-5, atol=1e-9
        )
    assert total == pytest.approx(wanted, rel=1e-6)
    assert (own[:, None] == nodes[skip:]).any()


@pytest.mark.parametrize("num", [0, 1, 2])
@pytest.mark.parametrize("name", ["softmax", "logistic", "ranking", "plain pools"])
def test_few_negatives_or_none_count_as_many_as_they_are(name: str, num: int) -> None:
    kernel, formula, counting, _ = CASES[name]
    positives, weights = np.array([0.25], np.float32), np.array([2], np.float32)
    scores, bias = np.full((1, num), 0.5, np.float32), np.zeros(num, np.float32)
    gradients = np.full(1, 7, np.float32)
    total = kernel(
        scores,
        0,
        positives,
        np.array([5]),
        np.arange(num),
        weights,
        bias,
        np.float32(MARGIN),
        counting,
        0,
        gradients,
    )
    loss, at_positive, slopes = formula(0.25, np.full(num, 0.5))
    assert total == pytest.approx(2 * loss, abs=1e-6)
    assert gradients[0] == pytest.approx(2 * at_positive, abs=1e-6)
    np.testing.assert_allclose(scores[0], 2 * slopes, atol=1e-6)


@pytest.mark.parametrize("name", ["ranking", "softmax", "logistic"])
def test_a_score_that_is_no_number_shows_in_the_loss(name: str) -> None:
    kernel, _, counting, _ = CASES[name]
    gradients, bias = np.zeros(1, np.float32), np.zeros(2, np.float32)
    total = kernel(
        np.ones((1, 2), np.float32),
        0,
        np.array([np.nan], np.float32),
        np.array([5]),
        np.arange(2),
        np.ones(1, np.float32),
        bias,
        np.float32(MARGIN),
        counting,
        0,
        gradients,
    )
    assert np.isnan(total)


def test_a_violation_of_the_ranking_loss_begins_above_the_margin() -> None:
    scores = np.array([[0.25, 0.5, 0.75]], np.float32)
    gradients = np.zeros(1, np.float32)
    total = ranking(
        scores,
        0,
        np.ones(1, np.float32),
        np.array([9]),
        np.arange(3),
        np.ones(1, np.float32),
        np.zeros(3, np.float32),
        np.float32(MARGIN),
        PLAIN,
        0,
        gradients,
    )
    assert total == 0.25
    assert scores.tolist() == [[0, 0, 1]]
    assert gradients[0] == -1


def test_codes_are_those_that_kernels_of_devices_compare_with() -> None:
    assert LOSS_CODES == {"softmax": 0, "logistic": 1, "ranking": 2}
