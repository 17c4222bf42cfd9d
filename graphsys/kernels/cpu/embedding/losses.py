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

A question over all nodes has ``K`` answers: those listed as positions of candidates in
``counting`` (see ``known.py``), and the node that it was asked for. With N nodes, labels
y_j and smoothing e, which is given as ``margin``:

    softmax    log(sum exp(s_j)) - sum y_j s_j,  y_j = (1 - e) [j is an answer] / K + e / N
    logistic   sum log(1 + exp(s_j)) - y_j s_j,  y_j = (1 - e) [j is an answer] + e / N

With one answer the former is the softmax over all nodes (1vsAll), with all of them either
is KvsAll (Dettmers, Minervini, Stenetorp, Riedel, "Convolutional 2D knowledge graph
embeddings", AAAI 2018; Ruffinelli, Broscheit, Gemulla, "You CAN teach an old dog new
tricks!", ICLR 2020). The columns behind ``skip`` are all nodes in their order; of a side
that is not asked for there are none, and no loss.

They return the summed loss.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.candidate_weights import (
    CandidateWeights,
    weighted_logistic_row,
)
from graphsys.kernels.cpu.embedding.known import Masks
from graphsys.kernels.cpu.embedding.softmax import begin_row, exp_shifted, scale
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    fast_exp,
    fused_jit,
    pointed_jit,
    reduce_jit,
)
from graphsys.kernels.jit import lean_jit

Ints = npt.NDArray[np.int64]

SOFTMAX: Final = 0
LOGISTIC: Final = 1
RANKING: Final = 2

_FACTORS: Final = 512  # each below 2: their product is finite in float64
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
        # The largest is subtracted from all: no exponential exceeds 1.
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
    # Of minus the modulus, so that it never overflows; the sign is put back below.
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
    # Comparisons with NaN are false: without this a broken row would have no loss.
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


@fused_jit
def _list_targets(masks: Masks, i: int, num_queries: int, own: int, out: Ints) -> int:
    """List the nodes that answer question ``i``, each once; return how many."""
    count, has_own = 0, False
    if masks.starts.size > 0:
        for m in range(masks.starts[i], masks.starts[i + 1]):
            node = np.int64(masks.positions[m]) - num_queries
            if node >= 0:  # the positives before the nodes are some of them
                out[count] = node
                count += 1
                has_own |= node == own
    if not has_own:
        out[count] = own
        count += 1
    return count


@reduce_jit
def _sum_labeled(row: Floats, targets: Ints, share: np.float32, base: np.float32) -> float:
    """Return the sum of labels times scores."""
    total = 0.0
    for k in range(targets.size):
        total += float(row[targets[k]])
    total *= float(share)
    if base > _ZERO:
        every = 0.0
        for j in range(row.size):
            every += float(row[j])
        total += float(base) * every
    return total


@fused_jit
def _subtract_labels(
    row: Floats, targets: Ints, share: np.float32, base: np.float32
) -> None:
    if base > _ZERO:
        for j in range(row.size):
            row[j] -= base
    for k in range(targets.size):
        row[targets[k]] -= share


@pointed_jit
def softmax_targets(
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
    total, num_queries, size = 0.0, scores.shape[0], scores.shape[1] - skip
    gradients[:] = _ZERO
    if size == 0:
        return total
    listed, base = np.empty(size, np.int64), margin / np.float32(size)
    for i in range(num_queries):
        row, weight = scores[i, skip:], weights[i]
        count = _list_targets(counting.masks, i, num_queries, own[i], listed)
        targets, share = listed[:count], (_ONE - margin) / np.float32(count)
        labeled = _sum_labeled(row, targets, share, base)
        highest = begin_row(row, bias[skip:], nodes[skip:], -1)
        mass = exp_shifted(row, highest)
        scale(row, weight / mass)
        _subtract_labels(row, targets, weight * share, weight * base)
        total += float(weight) * (np.log(float(mass)) + float(highest) - labeled)
    return total


@reduce_jit
def _take_sigmoids(row: Floats, weight: np.float32) -> float:
    """Turn scores into weighted sigmoids; return the sum of log(1 + exp(s))."""
    loss = 0.0
    for begin in range(0, row.size, _FACTORS):
        product = 1.0  # one logarithm for many factors
        for j in range(begin, min(begin + _FACTORS, row.size)):
            s = row[j]
            e = fast_exp(-abs(s))
            loss += max(s, _ZERO)
            product *= 1.0 + float(e)
            row[j] = weight * (_ONE if s > 0 else e) / (_ONE + e)
        loss += np.log(product)
    return loss


@pointed_jit
def logistic_targets(
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
    """Sum the binary cross-entropies: see the head of the file."""
    total, num_queries, size = 0.0, scores.shape[0], scores.shape[1] - skip
    gradients[:] = _ZERO
    if size == 0:
        return total
    listed, base = np.empty(size, np.int64), margin / np.float32(size)
    share = _ONE - margin
    for i in range(num_queries):
        row, weight = scores[i, skip:], weights[i]
        count = _list_targets(counting.masks, i, num_queries, own[i], listed)
        targets = listed[:count]
        labeled = _sum_labeled(row, targets, share, base)
        loss = _take_sigmoids(row, weight)
        _subtract_labels(row, targets, weight * share, weight * base)
        total += float(weight) * (loss - labeled)
    return total
