"""Scores of queries against shared candidates, and the gradients through them.

``B`` queries meet ``K`` candidates; candidate ``i`` (for ``i < B``) is the positive of
query ``i`` and a negative of all other queries, candidates from ``B`` on are negatives of
every query. All scores come from one matrix product and both gradients from one each:

    dot           s = q.c
    cos           s = q.c / (|q| |c|)
    squared_l2    s = -|q - c|**2
    l2            s = -|q - c|

What becomes of the scores is ``losses.py``'s. Each comparator is a kernel of its
own with the signature of ``embedding_calls.call_rank``:

    queries: Query rows ``[B, D]``.
    candidates: Candidate rows ``[K, D]``, the positives of the queries first.
    nodes: Numbers of the candidates ``[K]``.
    weights: Weight of every query ``[B]``.
    use_batch: Whether the other positives count as negatives.
    objective: Codes of comparator and loss, margin, the kernels of the loss.
    bias: Added to the score of a candidate where it is a negative ``[K]``.
    counting: What else does not count, or not equally.
    scratch: At least ``B * K`` floats, flat.
    scratch_distances: The same for the two distances, else anything.
    dqueries: Receives the gradient at the queries ``[B, D]``.
    dcandidates: Receives the gradient at the candidates ``[K, D]``.

They return the summed loss.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.calls import (
    Objective,
    call_custom_losses,
    call_leave_out,
    call_losses,
)
from graphsys.kernels.cpu.embedding.candidate_weights import CandidateWeights
from graphsys.kernels.cpu.embedding.products import multiply, multiply_by_rows
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    add_scaled,
    fused_jit,
    normalize_rows,
    normalize_rows_backward,
    pointed_jit,
    row_dot,
    row_sum,
)

Ints = npt.NDArray[np.int64]

DOT: Final = 0
COS: Final = 1
SQUARED_L2: Final = 2
L2: Final = 3

_EPSILON: Final = np.float32(1e-12)
_ZERO: Final = np.float32(0.0)
_TWO: Final = np.float32(2.0)


@fused_jit
def _leave_out(
    scores: Floats,
    positives: Floats,
    nodes: Ints,
    counting: CandidateWeights,
    objective: Objective,
    first: int,
) -> int:
    """Mask what does not count; return how many candidates hard pools left out."""
    if objective.calls.leave_out == 0:
        return 0
    return int(
        call_leave_out(objective.calls.leave_out, scores, positives, nodes, counting, first)
    )


@fused_jit
def sum_losses(
    scores: Floats,
    skip: int,
    positives: Floats,
    own: Ints,
    nodes: Ints,
    weights: Floats,
    bias: Floats,
    objective: Objective,
    counting: CandidateWeights,
    num_easy: int,
    gradients: Floats,
) -> float:
    """Call the kernel of the loss: ours, or the one around another package's."""
    calls = objective.calls
    if calls.query_loss != 0:
        return float(
            call_custom_losses(
                calls.losses,
                calls.query_loss,
                scores,
                skip,
                positives,
                own,
                nodes,
                weights,
                bias,
                objective.margin,
                counting,
                num_easy,
                gradients,
            )
        )
    return float(
        call_losses(
            calls.losses,
            scores,
            skip,
            positives,
            own,
            nodes,
            weights,
            bias,
            objective.margin,
            counting,
            num_easy,
            gradients,
        )
    )


@fused_jit
def losses_and_gradients(
    scores: Floats,
    nodes: Ints,
    weights: Floats,
    use_batch: bool,
    objective: Objective,
    bias: Floats,
    counting: CandidateWeights,
) -> float:
    """Sum the losses of all queries and turn their scores into gradients.

    Args:
        scores: Scores ``[B, K]``; receives the gradient of the summed loss.
        nodes: Numbers of the candidates ``[K]``, the positives first.
        weights: Weight of every query ``[B]``.
        use_batch: Whether the other positives count as negatives.
        objective: The kernels of the loss, margin.
        bias: Added to the score of a candidate where it is a negative ``[K]``.
        counting: What else does not count, or not equally.

    Returns:
        The summed loss.
    """
    num_queries = scores.shape[0]
    # A positive is scored against its own query alone.
    positives = np.empty(num_queries, np.float32)
    gradients = np.empty(num_queries, np.float32)
    for i in range(num_queries):
        positives[i] = scores[i, i]
    num_easy = _leave_out(scores, positives, nodes, counting, objective, 0)
    skip = 0 if use_batch else num_queries
    total = sum_losses(
        scores,
        skip,
        positives,
        nodes[:num_queries],
        nodes,
        weights,
        bias,
        objective,
        counting,
        num_easy,
        gradients,
    )
    for i in range(num_queries):
        for j in range(skip):
            scores[i, j] = _ZERO
        scores[i, i] = gradients[i]
    return float(total)


@pointed_jit
def rank_products(
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
    """Compare by inner products: see the head of the file."""
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
    num_drawn = num_candidates - num_queries
    scores = scratch[: num_queries * num_drawn].reshape((num_queries, num_drawn))
    drawn = candidates[num_queries:]
    multiply_by_rows(queries, drawn, np.empty(drawn.size, np.float32), scores)
    positives = np.empty(num_queries, np.float32)
    gradients = np.empty(num_queries, np.float32)
    for i in range(num_queries):
        positives[i] = row_dot(queries[i], candidates[i])
    num_easy = _leave_out(scores, positives, nodes, counting, objective, num_queries)
    total = sum_losses(
        scores,
        0,
        positives,
        nodes[:num_queries],
        nodes[num_queries:],
        weights,
        bias[num_queries:],
        objective,
        counting,
        num_easy,
        gradients,
    )
    multiply(scores, drawn, dqueries, False)
    multiply(scores.T, queries, dcandidates[num_queries:], False)
    for i in range(num_queries):
        add_scaled(dqueries[i], candidates[i], gradients[i])
        for k in range(queries.shape[1]):
            dcandidates[i, k] = gradients[i] * queries[i, k]
    return float(total)


@pointed_jit
def rank_cosines(
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
    """Compare by cosines: see the head of the file."""
    unit_q, norms_q = np.empty_like(queries), np.empty(queries.shape[0], np.float32)
    unit_c, norms_c = np.empty_like(candidates), np.empty(candidates.shape[0], np.float32)
    normalize_rows(queries, unit_q, norms_q)
    normalize_rows(candidates, unit_c, norms_c)
    total = rank_products(
        unit_q,
        unit_c,
        nodes,
        weights,
        use_batch,
        objective,
        bias,
        counting,
        scratch,
        scratch_distances,
        dqueries,
        dcandidates,
    )
    normalize_rows_backward(unit_q, norms_q, dqueries)
    normalize_rows_backward(unit_c, norms_c, dcandidates)
    return total


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


@pointed_jit
def rank_distances(
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
    """Compare by negated distances, squared or not: see the head of the file."""
    num_queries, num_candidates = queries.shape[0], candidates.shape[0]
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
