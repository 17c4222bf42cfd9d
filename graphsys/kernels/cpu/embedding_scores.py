"""Scores of queries against shared candidates, losses, and their gradients.

``B`` queries meet ``K`` candidates; candidate ``i`` (for ``i < B``) is the positive of
query ``i`` and a negative of all other queries, candidates from ``B`` on are negatives of
every query. All scores come from one matrix product and both gradients from one each:

    dot           s = q.c
    cos           s = q.c / (|q| |c|)
    squared_l2    s = -|q - c|**2
    l2            s = -|q - c|

The loss of a query, with ``p`` the positive's score and ``s_j`` the negatives':

    softmax       log(exp(p) + sum exp(s_j)) - p
    logistic      log(1 + exp(-p)) + mean of log(1 + exp(s_j))
    ranking       sum max(0, margin + s_j - p)

A negative that is the same node as the positive is masked; so are the other positives
when the in-batch negatives are off.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding_counting import (
    Counting,
    leave_out,
    weighted_logistic_row,
)
from graphsys.kernels.cpu.embedding_math import (
    Floats,
    add_scaled,
    exp_shifted,
    fast_exp,
    fused_jit,
    normalise_rows,
    normalise_rows_backward,
    row_dot,
    row_maximum,
    row_sum,
    scale_row,
)
from graphsys.kernels.cpu.embedding_products import multiply, multiply_by_rows

DOT: Final = 0
COS: Final = 1
SQUARED_L2: Final = 2
L2: Final = 3

SOFTMAX: Final = 0
LOGISTIC: Final = 1
RANKING: Final = 2

_MASKED: Final = np.float32(-np.inf)
_EPSILON: Final = np.float32(1e-12)
_ZERO: Final = np.float32(0.0)
_ONE: Final = np.float32(1.0)
_TWO: Final = np.float32(2.0)


class Objective(NamedTuple):
    """What is optimised.

    Attributes:
        comparator: Code of the comparator.
        loss: Code of the loss.
        margin: Margin of the ranking loss.
    """

    comparator: int
    loss: int
    margin: np.float32


@fused_jit
def _mask_row(row: Floats, nodes: npt.NDArray[np.int64], positive: int) -> None:
    for j in range(row.size):
        row[j] = _MASKED if nodes[j] == positive else row[j]


@fused_jit
def _softmax_row(
    row: Floats, positive: np.float32, weight: np.float32, lanes: Floats
) -> tuple[float, np.float32]:
    highest = row_maximum(row, lanes)
    highest = highest if highest > positive else positive
    exp_shifted(row, highest)
    own = fast_exp(positive - highest)
    total = row_sum(row) + own
    scale_row(row, weight / total)
    loss = float(weight) * (np.log(float(total)) + float(highest) - float(positive))
    return loss, np.float32(weight * (own / total - _ONE))


@fused_jit
def _logistic_row(
    row: Floats, positive: np.float32, weight: np.float32
) -> tuple[float, np.float32]:
    share = weight / np.float32(max(row.size, 1))
    loss = 0.0
    for j in range(row.size):
        s = row[j]
        e = fast_exp(-abs(s))
        loss += np.log1p(e) + max(s, _ZERO)
        row[j] = share * (_ONE if s > 0 else e) / (_ONE + e)
    e = fast_exp(-abs(positive))
    own = np.log1p(e) + max(-positive, _ZERO)
    gradient = -weight * (e if positive > 0 else _ONE) / (_ONE + e)
    return float(share) * loss + float(weight) * float(own), np.float32(gradient)


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


@fused_jit
def _row_loss(
    row: Floats, positive: np.float32, weight: np.float32, loss: int,
    margin: np.float32, lanes: Floats,
) -> tuple[float, np.float32]:  # fmt: skip
    """Return a query's loss and its positive's gradient; ``row`` gets the negatives'."""
    if loss == SOFTMAX:
        return _softmax_row(row, positive, weight, lanes)
    if loss == LOGISTIC:
        return _logistic_row(row, positive, weight)
    return _ranking_row(row, positive, weight, margin)


@fused_jit
def _count_row(
    row: Floats, positive: np.float32, weight: np.float32, objective: Objective,
    counting: Counting, num_batch: int, num_easy: int, lanes: Floats,
) -> tuple[float, np.float32]:  # fmt: skip
    """Do :func:`_row_loss`, or what takes its place where negatives have weights."""
    if counting.temperatures.size == 0:
        return _row_loss(row, positive, weight, objective.loss, objective.margin, lanes)
    loss, gradient = _logistic_row(row[:0], positive, weight)
    loss += weighted_logistic_row(row, weight, counting, num_batch, num_easy)
    return loss, gradient


@fused_jit
def negated_distances(
    queries: Floats, candidates: Floats, is_squared: bool, scores: Floats, distances: Floats
) -> None:
    """Turn inner products into negated distances; keep the distances."""
    lengths = np.empty(candidates.shape[0], np.float32)
    for j in range(candidates.shape[0]):
        lengths[j] = row_dot(candidates[j], candidates[j])
    for i in range(queries.shape[0]):
        own = row_dot(queries[i], queries[i])
        row, kept = scores[i], distances[i]
        for j in range(row.size):
            square = own + lengths[j] - _TWO * row[j]
            square = square if not square < _EPSILON else _EPSILON  # NaN stays
            kept[j] = square if is_squared else np.sqrt(square)
            row[j] = -kept[j]


@fused_jit
def distance_gradients(
    queries: Floats,
    candidates: Floats,
    is_squared: bool,
    gradient: Floats,
    distances: Floats,
    dqueries: Floats,
    dcandidates: Floats,
) -> None:
    """Finish the gradients through distances: h (c - q) with h = 2 g or g / distance."""
    columns = np.zeros(candidates.shape[0], np.float32)
    for i in range(queries.shape[0]):
        row, kept = gradient[i], distances[i]
        for j in range(row.size):
            row[j] = row[j] * _TWO if is_squared else row[j] / kept[j]
            columns[j] += row[j]
    multiply(gradient, candidates, dqueries, False)
    multiply(gradient.T, queries, dcandidates, False)
    for i in range(queries.shape[0]):
        add_scaled(dqueries[i], queries[i], -row_sum(gradient[i]))
    for j in range(candidates.shape[0]):
        add_scaled(dcandidates[j], candidates[j], -columns[j])


@fused_jit
def losses_and_gradients(
    scores: Floats,
    nodes: npt.NDArray[np.int64],
    weights: Floats,
    use_batch: bool,
    objective: Objective,
    bias: Floats,
    counting: Counting,
) -> float:
    """Mask the scores, sum the losses of all queries and turn scores into gradients.

    Args:
        scores: Scores ``[B, K]``; receives the gradient of the summed loss.
        nodes: Numbers of the candidates ``[K]``, the positives first.
        weights: Weight of every query ``[B]``.
        use_batch: Whether the other positives count as negatives.
        objective: Codes of comparator and loss, margin.
        bias: Added to the score of a candidate where it is a negative ``[K]``.
        counting: What else does not count, or not equally.

    Returns:
        The summed loss.
    """
    lanes = np.empty(16, np.float32)
    num_queries, total = scores.shape[0], 0.0
    first = 0 if use_batch else num_queries
    positives = np.diag(scores).copy()
    num_easy = leave_out(scores, positives, nodes, counting, 0)
    for i in range(num_queries):
        row, positive = scores[i], positives[i]
        for j in range(row.size):
            row[j] += bias[j]
        if not use_batch:
            row[:num_queries] = _ZERO
        _mask_row(row[first:], nodes[first:], nodes[i])
        loss, gradient = _count_row(
            row[first:], positive, weights[i], objective, counting, num_queries - first,
            num_easy, lanes,
        )  # fmt: skip
        row[i] = gradient
        total += loss
    return total


@fused_jit
def _rank_by_product(
    queries: Floats,
    candidates: Floats,
    nodes: npt.NDArray[np.int64],
    weights: Floats,
    use_batch: bool,
    objective: Objective,
    bias: Floats,
    counting: Counting,
    scratch: Floats,
    dqueries: Floats,
    dcandidates: Floats,
) -> float:
    """Do :func:`rank_candidates` for the inner product."""
    num_queries, num_candidates = queries.shape[0], candidates.shape[0]
    if use_batch:
        scores = scratch[: num_queries * num_candidates]
        scores = scores.reshape((num_queries, num_candidates))
        multiply_by_rows(queries, candidates, np.empty(candidates.size, np.float32), scores)
        total = losses_and_gradients(
            scores, nodes, weights, True, objective, bias, counting
        )
        multiply(scores, candidates, dqueries, False)
        multiply(scores.T, queries, dcandidates, False)
        return total
    # without in-batch negatives the products leave the positives out
    num_uniform, total = num_candidates - num_queries, 0.0
    lanes, gradients = np.empty(16, np.float32), np.empty(num_queries, np.float32)
    scores = scratch[: num_queries * num_uniform].reshape((num_queries, num_uniform))
    uniform = candidates[num_queries:]
    multiply_by_rows(queries, uniform, np.empty(uniform.size, np.float32), scores)
    positives = np.empty(num_queries, np.float32)
    for i in range(num_queries):
        positives[i] = row_dot(queries[i], candidates[i])
    num_easy = leave_out(scores, positives, nodes, counting, num_queries)
    for i in range(num_queries):
        row, positive = scores[i], positives[i]
        for j in range(num_uniform):
            row[j] += bias[num_queries + j]
        _mask_row(row, nodes[num_queries:], nodes[i])
        loss, gradients[i] = _count_row(
            row, positive, weights[i], objective, counting, 0, num_easy, lanes
        )
        total += loss
    multiply(scores, uniform, dqueries, False)
    multiply(scores.T, queries, dcandidates[num_queries:], False)
    for i in range(num_queries):
        add_scaled(dqueries[i], candidates[i], gradients[i])
        for k in range(queries.shape[1]):
            dcandidates[i, k] = gradients[i] * queries[i, k]
    return total


@fused_jit
def rank_candidates(
    queries: Floats,
    candidates: Floats,
    nodes: npt.NDArray[np.int64],
    weights: Floats,
    use_batch: bool,
    objective: Objective,
    bias: Floats,
    counting: Counting,
    scratch: Floats,
    scratch_distances: Floats,
    dqueries: Floats,
    dcandidates: Floats,
) -> float:
    """Score queries against candidates; return the loss and both gradients.

    Args:
        queries: Query rows ``[B, D]``.
        candidates: Candidate rows ``[K, D]``, the positives of the queries first.
        nodes: Numbers of the candidates ``[K]``.
        weights: Weight of every query ``[B]``.
        use_batch: Whether the other positives count as negatives.
        objective: Codes of comparator and loss, margin.
        bias: Added to the score of a candidate where it is a negative ``[K]``.
        counting: What else does not count, or not equally.
        scratch: At least ``B * K`` floats, flat.
        scratch_distances: The same for the two distances, else anything.
        dqueries: Receives the gradient at the queries ``[B, D]``.
        dcandidates: Receives the gradient at the candidates ``[K, D]``.

    Returns:
        The summed loss.
    """
    num_queries, num_candidates = queries.shape[0], candidates.shape[0]
    if objective.comparator == DOT:
        return _rank_by_product(
            queries, candidates, nodes, weights, use_batch, objective, bias,
            counting, scratch, dqueries, dcandidates,
        )  # fmt: skip
    if objective.comparator == COS:
        unit_q, norms_q = np.empty_like(queries), np.empty(num_queries, np.float32)
        unit_c, norms_c = np.empty_like(candidates), np.empty(num_candidates, np.float32)
        normalise_rows(queries, unit_q, norms_q)
        normalise_rows(candidates, unit_c, norms_c)
        total = _rank_by_product(
            unit_q, unit_c, nodes, weights, use_batch, objective, bias,
            counting, scratch, dqueries, dcandidates,
        )  # fmt: skip
        normalise_rows_backward(unit_q, norms_q, dqueries)
        normalise_rows_backward(unit_c, norms_c, dcandidates)
        return total
    is_squared = objective.comparator == SQUARED_L2
    scores = scratch[: num_queries * num_candidates]
    scores = scores.reshape((num_queries, num_candidates))
    distances = scratch_distances[: scores.size].reshape(scores.shape)
    multiply_by_rows(queries, candidates, np.empty(candidates.size, np.float32), scores)
    negated_distances(queries, candidates, is_squared, scores, distances)
    total = losses_and_gradients(
        scores, nodes, weights, use_batch, objective, bias, counting
    )
    distance_gradients(
        queries, candidates, is_squared, scores, distances, dqueries, dcandidates
    )
    return total
