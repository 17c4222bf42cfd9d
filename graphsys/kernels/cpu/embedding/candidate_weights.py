"""How candidates count beyond a plain sum: masked, only the hardest, weighted by score.

All of it happens on the matrix of scores of a chunk, ``B`` queries by ``K`` candidates,
so it works with every comparator and operator. Left out is what has the score -inf.

Hard pools: a candidate is as hard as it is likely to beat a positive of the chunk, were
the scores logits: the mean over the queries of sigmoid(score - positive's score). So every
query has the same say, however large its scores are. Easier candidates are left out.

Self-adversarial weights (Sun, Deng, Nie, Tang, "RotatE", ICLR 2019): in a pool of m
negatives the mean of log(1 + exp(s_j)) becomes the sum of w_j log(1 + exp(s_j)), with
w = softmax(temperature * s) over the pool, which has no gradient of its own.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.known import Masks
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    fast_exp,
    fused_jit,
    uncounted_jit,
)

Ints = npt.NDArray[np.int64]
_MASKED: Final = np.float32(-np.inf)
_ZERO: Final = np.float32(0.0)
_ONE: Final = np.float32(1.0)


class CandidateWeights(NamedTuple):
    """How the candidates of a chunk count; with :func:`plain_counting` all do.

    Attributes:
        masks: Candidates that do not count for a query.
        begins: Where each pool begins behind the positives, int64 ``[P + 1]``.
        num_kept: How many of a hard pool count, else 0, int64 ``[P]``.
        has_hard: Whether there is a hard pool.
        temperatures: Of the self-adversarial weights, of the batch and of each pool,
            float32 ``[1 + P]``, 0 for equal weights; or empty: equal weights for all,
            and no hard pool.
    """

    masks: Masks
    begins: Ints
    num_kept: Ints
    has_hard: bool
    temperatures: Floats


@fused_jit
def plain_counting() -> CandidateWeights:
    """Return the counting that leaves nothing out."""
    masks = Masks(np.empty(0, np.int64), np.empty(0, np.int32))
    none = np.empty(0, np.int64)
    return CandidateWeights(masks, none, none, False, np.empty(0, np.float32))


@uncounted_jit
def counting_of(counting: CandidateWeights, has_all: bool) -> CandidateWeights:
    """Return how candidates count that may be all nodes: then only masks hold."""
    return CandidateWeights(
        counting.masks,
        counting.begins,
        counting.num_kept,
        counting.has_hard and not has_all,
        counting.temperatures[:0] if has_all else counting.temperatures,
    )


@fused_jit
def leave_out(
    scores: Floats, positives: Floats, nodes: Ints, counting: CandidateWeights, first: int
) -> int:
    """Mask what is known, then the easier part of every hard pool.

    Args:
        scores: Scores ``[B, K - first]``, of the candidates from ``first`` on.
        positives: The positives' scores ``[B]``.
        nodes: Numbers of all candidates ``[K]``, the positives first.
        counting: What does not count.
        first: 0, or B where the scores have no columns for the positives.

    Returns:
        How many candidates were left out of hard pools.
    """
    masks = counting.masks
    if masks.starts.size > 0:
        for i in range(scores.shape[0]):
            for m in range(masks.starts[i], masks.starts[i + 1]):
                if masks.positions[m] >= first:
                    scores[i, masks.positions[m] - first] = _MASKED
    num_easy = 0
    if counting.has_hard:
        shift = scores.shape[0] - first
        for p in range(counting.num_kept.size):
            if counting.num_kept[p] > 0:
                low, high = shift + counting.begins[p], shift + counting.begins[p + 1]
                own = nodes[: scores.shape[0]]
                _drop_easy(
                    scores[:, low:high],
                    positives,
                    own,
                    nodes[low + first : high + first],
                    counting.num_kept[p],
                )
                num_easy += high - low - counting.num_kept[p]
    return num_easy


@fused_jit
def _drop_easy(
    scores: Floats, positives: Floats, own: Ints, nodes: Ints, num_kept: int
) -> None:
    hard = np.empty(nodes.size, np.float32)
    hardness(scores, positives, own, nodes, hard)
    order = np.argsort(-hard, kind="mergesort")  # of equals the first stays
    for j in order[num_kept:]:
        for i in range(scores.shape[0]):
            scores[i, j] = _MASKED


@fused_jit
def hardness(
    scores: Floats, positives: Floats, own: Ints, nodes: Ints, out: Floats
) -> None:
    """Say how hard candidates are; a node's second occurrence is never hard.

    Args:
        scores: Scores ``[B, K]``, -inf for what does not count.
        positives: The positives' scores ``[B]``.
        own: The positives' nodes ``[B]``.
        nodes: The candidates' nodes ``[K]``.
        out: Receives the hardness, 0 to 1, or -1 for a repetition, float32 ``[K]``.
    """
    num_queries, k = scores.shape
    out[:] = _ZERO
    share = _ONE / np.float32(num_queries)
    for i in range(num_queries):
        row, positive = scores[i], positives[i]
        for j in range(k):
            chance = share / (_ONE + fast_exp(positive - row[j]))
            out[j] += _ZERO if nodes[j] == own[i] else chance
    keys = np.empty(k, np.int64)
    for j in range(k):
        keys[j] = nodes[j] * k + j
    keys.sort()
    for j in range(1, k):
        if keys[j] // k == keys[j - 1] // k:
            out[keys[j] % k] = -_ONE


@fused_jit
def weighted_logistic_row(
    row: Floats,
    weight: np.float32,
    counting: CandidateWeights,
    num_batch: int,
    num_easy: int,
) -> float:
    """Turn the scores of a query's negatives into gradients; return their loss.

    Args:
        row: Scores, -inf for what does not count; receives the gradient.
        weight: Weight of the query.
        counting: The pools and their temperatures.
        num_batch: How many in-batch candidates the row begins with.
        num_easy: How many candidates were left out of hard pools.
    """
    share = weight / np.float32(max(row.size - num_easy, 1))
    loss = 0.0
    for p in range(counting.temperatures.size):
        low, high, count = 0, num_batch, num_batch
        if p > 0:
            low, high = num_batch + counting.begins[p - 1], num_batch + counting.begins[p]
            count = (
                high - low if counting.num_kept[p - 1] == 0 else counting.num_kept[p - 1]
            )
        temperature = counting.temperatures[p]
        if high > low:
            factor = share * np.float32(count) if temperature > _ZERO else share
            loss += _weighted_part(row[low:high], temperature, factor)
    return loss


@fused_jit
def _weighted_part(row: Floats, temperature: np.float32, factor: np.float32) -> float:
    highest, total, loss = _MASKED, _ONE, 0.0
    if temperature > _ZERO:
        for j in range(row.size):
            highest = row[j] if row[j] > highest else highest
        total = _ZERO
        for j in range(row.size):
            total += fast_exp(temperature * (row[j] - highest))
    for j in range(row.size):
        s = row[j]
        if s == _MASKED:
            row[j] = _ZERO
            continue
        w = factor
        if temperature > _ZERO:
            w = factor * fast_exp(temperature * (s - highest)) / total
        e = fast_exp(-abs(s))
        loss += float(w) * float(np.log1p(e) + max(s, _ZERO))
        row[j] = w * (_ONE if s > 0 else e) / (_ONE + e)
    return loss
