"""Comparators with a bias: the first dimension of a row is left out and added to scores.

    s(q, c) = q_0 + c_0 + comparator(q_rest, c_rest)

(PyTorch-BigGraph's option ``bias``.) Operators act on whole rows, the bias among them.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.calls import Objective
from graphsys.kernels.cpu.embedding.candidate_weights import CandidateWeights
from graphsys.kernels.cpu.embedding.products import multiply, multiply_by_rows
from graphsys.kernels.cpu.embedding.scores import (
    COS,
    L2,
    SQUARED_L2,
    distance_gradients,
    losses_and_gradients,
    negated_distances,
)
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    fused_jit,
    normalize_rows,
    normalize_rows_backward,
    pointed_jit,
    row_sum,
)

Ints = npt.NDArray[np.int64]

BIASED: Final = 4
"""Added to the code of a comparator that has a bias."""


@fused_jit
def has_distances(objective: Objective) -> bool:
    """Whether scores are distances, which are kept beside them."""
    return bool(objective.comparator % BIASED in (L2, SQUARED_L2))


@pointed_jit
def rank_biased(
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
    """Compare with a bias, by any comparator: see the head of ``scores.py``."""
    comparator = objective.comparator - BIASED
    num_queries, num_candidates = queries.shape[0], candidates.shape[0]
    rest_q, rest_c = queries[:, 1:].copy(), candidates[:, 1:].copy()
    norms_q = np.empty(num_queries, np.float32)
    norms_c = np.empty(num_candidates, np.float32)
    if comparator == COS:
        normalize_rows(rest_q, rest_q, norms_q)
        normalize_rows(rest_c, rest_c, norms_c)
    size = num_queries * num_candidates
    scores = scratch[:size].reshape((num_queries, num_candidates))
    multiply_by_rows(rest_q, rest_c, np.empty(rest_c.size, np.float32), scores)
    is_distance, is_squared = comparator in (L2, SQUARED_L2), comparator == SQUARED_L2
    distances = scores
    if is_distance:
        distances = scratch_distances[:size].reshape((num_queries, num_candidates))
        negated_distances(rest_q, rest_c, is_squared, scores, distances)
    for i in range(num_queries):
        for j in range(num_candidates):
            scores[i, j] += queries[i, 0] + candidates[j, 0]
    total = losses_and_gradients(
        scores, nodes, weights, use_batch, objective, bias, counting
    )
    _bias_gradients(scores, dqueries, dcandidates)
    drest_q, drest_c = np.empty_like(rest_q), np.empty_like(rest_c)
    if is_distance:
        distance_gradients(rest_q, rest_c, is_squared, scores, distances, drest_q, drest_c)
    else:
        multiply(scores, rest_c, drest_q, False)
        multiply(scores.T, rest_q, drest_c, False)
    if comparator == COS:
        normalize_rows_backward(rest_q, norms_q, drest_q)
        normalize_rows_backward(rest_c, norms_c, drest_c)
    dqueries[:, 1:] = drest_q
    dcandidates[:, 1:] = drest_c
    return total


@fused_jit
def _bias_gradients(gradient: Floats, dqueries: Floats, dcandidates: Floats) -> None:
    """Write the gradients at the first dimensions: sums of rows and of columns."""
    for j in range(dcandidates.shape[0]):
        dcandidates[j, 0] = np.float32(0.0)
    for i in range(dqueries.shape[0]):
        dqueries[i, 0] = row_sum(gradient[i])
        for j in range(dcandidates.shape[0]):
            dcandidates[j, 0] += gradient[i, j]
