"""Comparators and losses of other packages, called through their addresses pair by pair.

Such a comparator is two functions of two rows, a loss is one of the scores of one query;
see ``graphsys/embedding/spec``. The kernels here have the signatures of those in
``scores.py`` and ``losses.py``, and keep masks, biases and weights away from them.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.bias import BIASED
from graphsys.kernels.cpu.embedding.calls import (
    Objective,
    call_query_loss,
    call_score,
    call_score_gradient,
)
from graphsys.kernels.cpu.embedding.candidate_weights import CandidateWeights
from graphsys.kernels.cpu.embedding.scores import losses_and_gradients
from graphsys.kernels.cpu.embedding.vector_math import Floats, fused_jit, pointed_jit
from graphsys.kernels.jit import jit

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

CUSTOM: Final = 8
"""Code of a comparator of another package."""
CUSTOM_LOSS: Final = 8
"""Code of a loss of another package."""

_MASKED: Final = np.float32(-np.inf)
_ZERO: Final = np.float32(0.0)


@fused_jit
def _score(score: int, query: Floats, candidate: Floats, first: int) -> float:
    value = call_score(score, query[first:], candidate[first:])
    return float(value + query[0] + candidate[0] if first == 1 else value)


@jit
def score_all(
    score: int, queries: Floats, candidates: Floats, first: int, out: Floats
) -> None:
    """Score every query against every candidate.

    Args:
        score: Address of the comparator's function.
        queries: float32 ``[B, D]``.
        candidates: float32 ``[K, D]``.
        first: 1 where the first number of a row is a bias, which is not compared but
            added, else 0.
        out: Receives the scores, float32 ``[B, K]``.
    """
    for i in range(queries.shape[0]):
        for j in range(candidates.shape[0]):
            out[i, j] = _score(score, queries[i], candidates[j], first)


@jit
def score_pairs(
    score: int, queries: Floats, candidates: Floats, first: int, out: Doubles
) -> None:
    """Score query ``i`` against candidate ``i``, as :func:`score_all` does; ``out [B]``."""
    for i in range(queries.shape[0]):
        out[i] = _score(score, queries[i], candidates[i], first)


@pointed_jit
def rank_custom(
    queries: Floats,
    candidates: Floats,
    nodes: Ints,
    weights: Floats,
    use_batch: bool,
    objective: Objective,
    bias: Floats,
    counting: CandidateWeights,
    scratch: Floats,
    scratch_distances: Floats,
    dqueries: Floats,
    dcandidates: Floats,
) -> float:
    """Compare by the function of another package: see the head of ``scores.py``."""
    num_queries, num_candidates = queries.shape[0], candidates.shape[0]
    first = 1 if objective.comparator >= CUSTOM + BIASED else 0
    calls, begin = objective.calls, 0 if use_batch else num_queries
    scores = scratch[: num_queries * num_candidates]
    scores = scores.reshape((num_queries, num_candidates))
    scores[:, :begin] = _ZERO  # of no negatives
    for i in range(num_queries):
        scores[i, i] = _score(calls.score, queries[i], candidates[i], first)
        for j in range(begin, num_candidates):
            scores[i, j] = _score(calls.score, queries[i], candidates[j], first)
    total = losses_and_gradients(
        scores, nodes, weights, use_batch, objective, bias, counting
    )
    dqueries[:] = _ZERO
    dcandidates[:] = _ZERO
    for i in range(num_queries):
        for j in range(num_candidates):
            factor = scores[i, j]
            if factor != _ZERO:
                call_score_gradient(
                    calls.score_gradient,
                    queries[i][first:],
                    candidates[j][first:],
                    factor,
                    dqueries[i][first:],
                    dcandidates[j][first:],
                )
                if first == 1:
                    dqueries[i, 0] += factor
                    dcandidates[j, 0] += factor
    return float(total)


@pointed_jit
def custom_losses(
    query_loss: int,
    scores: Floats,
    skip: int,
    positives: Floats,
    own: Ints,
    nodes: Ints,
    weights: Floats,
    bias: Floats,
    margin: np.float32,
    counting: CandidateWeights,
    num_easy: int,
    gradients: Floats,
) -> float:
    """Sum the losses of another package: see the head of ``losses.py``.

    Its function, whose address comes first, is given the positive's score, then those of
    the negatives that count.
    """
    width = scores.shape[1] - skip + 1
    kept, slopes = np.empty(width, np.float32), np.empty(width, np.float32)
    places = np.empty(width, np.int64)
    total = 0.0
    for i in range(scores.shape[0]):
        kept[0], count = positives[i], 1
        for j in range(skip, scores.shape[1]):
            if nodes[j] != own[i] and scores[i, j] != _MASKED:
                kept[count], places[count] = scores[i, j] + bias[j], j
                count += 1
            scores[i, j] = _ZERO
        slopes[:count] = _ZERO
        loss = call_query_loss(query_loss, kept[:count], margin, slopes[:count])
        total += float(weights[i]) * loss
        gradients[i] = weights[i] * slopes[0]
        for k in range(1, count):
            scores[i, places[k]] = weights[i] * slopes[k]
    return total
