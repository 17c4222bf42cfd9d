"""Losses of queries against scored candidates, and their gradients.

The loss of a query, with ``p`` the positive's score and ``s_j`` the negatives':

    softmax       log(exp(p) + sum exp(s_j)) - p
    logistic      log(1 + exp(-p)) + mean of log(1 + exp(s_j))
    ranking       sum max(0, margin + s_j - p)

A negative that is the same node as the positive is masked. Each loss is a kernel of its
own with the signature of ``embedding_calls.call_losses``:

    scores: Scores of candidates ``[B, K]``; receive the gradient of the summed loss.
    skip: Columns up to here are no negatives and stay as they are.
    positives: The positives' scores ``[B]``.
    own: The positives' nodes ``[B]``.
    nodes: The candidates' nodes ``[K]``.
    weights: Weights of the queries ``[B]``.
    bias: Added to the score of a candidate where it is a negative ``[K]``.
    margin: Of the ranking loss.
    counting: How candidates count, of those that were not left out of the scores.
    num_easy: How many candidates were left out of hard pools.
    gradients: Receive the gradients at the positives' scores ``[B]``.

They return the summed loss.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.candidate_weights import (
    CandidateWeights,
    weighted_logistic_row,
)
from graphsys.kernels.cpu.embedding.softmax import begin_row, exp_shifted, scale
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    fast_exp,
    fused_jit,
    pointed_jit,
)
from graphsys.kernels.jit import lean_jit

Ints = npt.NDArray[np.int64]

SOFTMAX: Final = 0
LOGISTIC: Final = 1
RANKING: Final = 2

_MASKED: Final = np.float32(-np.inf)
_ZERO: Final = np.float32(0.0)
_ONE: Final = np.float32(1.0)


@fused_jit
def _begin_row(row: Floats, bias: Floats, nodes: Ints, own: int) -> None:
    """Add the biases; mask the node that is the positive itself."""
    for j in range(row.size):
        row[j] = _MASKED if nodes[j] == own else row[j] + bias[j]


@lean_jit
def _softmax_rows(
    scores: Floats,
    skip: int,
    positives: Floats,
    own: Ints,
    nodes: Ints,
    weights: Floats,
    bias: Floats,
    gradients: Floats,
) -> float:
    loss = 0.0
    for i in range(scores.shape[0]):
        row, positive, weight = scores[i, skip:], positives[i], weights[i]
        highest = begin_row(row, bias[skip:], nodes[skip:], own[i])
        highest = highest if highest > positive else positive
        e = fast_exp(positive - highest)
        total = exp_shifted(row, highest) + e
        scale(row, weight / total)
        gradients[i] = weight * (e / total - _ONE)
        loss += float(weight) * (np.log(float(total)) + float(highest) - float(positive))
    return loss


@pointed_jit
def softmax_losses(
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
    """Sum the softmax losses: see the head of the file."""
    return float(
        _softmax_rows(scores, skip, positives, own, nodes, weights, bias, gradients)
    )


@fused_jit
def _logistic_positive(
    positive: np.float32, weight: np.float32
) -> tuple[float, np.float32]:
    e = fast_exp(-abs(positive))
    own = np.log1p(e) + max(-positive, _ZERO)
    gradient = -weight * (e if positive > 0 else _ONE) / (_ONE + e)
    return float(weight) * float(own), np.float32(gradient)


@fused_jit
def _logistic_negatives(row: Floats, weight: np.float32) -> float:
    share = weight / np.float32(max(row.size, 1))
    loss = 0.0
    for j in range(row.size):
        s = row[j]
        e = fast_exp(-abs(s))
        loss += np.log1p(e) + max(s, _ZERO)
        row[j] = share * (_ONE if s > 0 else e) / (_ONE + e)
    return float(share) * loss


@pointed_jit
def logistic_losses(
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
    """Sum the logistic losses: see the head of the file."""
    total = 0.0
    for i in range(scores.shape[0]):
        row = scores[i, skip:]
        _begin_row(row, bias[skip:], nodes[skip:], own[i])
        loss, gradients[i] = _logistic_positive(positives[i], weights[i])
        total += loss + _logistic_negatives(row, weights[i])
    return total


@pointed_jit
def weighted_losses(
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
    """Sum the logistic losses where the negatives of a pool have weights, or are hard."""
    total, is_plain = 0.0, counting.temperatures.size == 0
    num_batch = scores.shape[1] - skip
    num_batch -= 0 if is_plain else counting.begins[-1]
    for i in range(scores.shape[0]):
        row = scores[i, skip:]
        _begin_row(row, bias[skip:], nodes[skip:], own[i])
        loss, gradients[i] = _logistic_positive(positives[i], weights[i])
        if is_plain:
            loss += _logistic_negatives(row, weights[i])
        else:
            loss += weighted_logistic_row(row, weights[i], counting, num_batch, num_easy)
        total += loss
    return total


@fused_jit
def _ranking_row(
    row: Floats, positive: np.float32, weight: np.float32, margin: np.float32
) -> tuple[float, np.float32]:
    loss, violations = 0.0, 0
    for j in range(row.size):
        excess = margin + row[j] - positive
        is_violated = excess > 0
        loss += excess if is_violated else 0.0
        violations += is_violated
        row[j] = weight if is_violated else _ZERO
    loss = np.nan if positive != positive else float(weight) * loss
    return loss, np.float32(-weight * np.float32(violations))


@pointed_jit
def ranking_losses(
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
    """Sum the ranking losses: see the head of the file."""
    total = 0.0
    for i in range(scores.shape[0]):
        row = scores[i, skip:]
        _begin_row(row, bias[skip:], nodes[skip:], own[i])
        loss, gradients[i] = _ranking_row(row, positives[i], weights[i], margin)
        total += loss
    return total
