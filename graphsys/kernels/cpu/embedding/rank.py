"""Rank of a positive among all candidates, exact and independent of how they are cut.

Scores come from a float32 matrix product per block of candidates, whose rounding depends
on the shape of the block. A candidate whose score is within the error bound of the
positive's is therefore compared again in float64, each sum in the order of the
dimensions; so equal rows tie, and the ranks do not depend on blocks or partitions.

A score is ``q.c - bias(c)``: dot and cos (of unit rows) have no bias, the two distances
order candidates as ``q.c - |c|**2 / 2`` does. With a trained bias ``c_0``, which is the
first dimension of the rows (and ``q_0`` 0 here), squared distances order as
``q.c - (|c|**2 - c_0) / 2`` over the rest; distances are taken themselves. Under dot and
cos ``q_0 = 1`` does it.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.vector_math import Floats
from graphsys.kernels.cpu.searching import lower_bound
from graphsys.kernels.jit import inline_jit, jit

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

PRODUCT: Final = 0
DISTANCE: Final = 1
BIASED_SQUARES: Final = 2
BIASED_DISTANCE: Final = 3
PAIRWISE: Final = 4
"""What is scored pair by pair: its scores are given, and rounded alike."""


@inline_jit
def exact_score(query: Floats, candidate: Floats, form: int) -> float:
    """Return one score in float64, summed in the order of the dimensions."""
    total, square, apart = 0.0, 0.0, 0.0
    first = 1 if form >= BIASED_SQUARES else 0
    for k in range(first, query.size):
        q, c = np.float64(query[k]), np.float64(candidate[k])
        total += q * c
        square += c * c
        apart += (q - c) * (q - c)
    if form == PRODUCT:
        return total
    if form == DISTANCE:
        return total - 0.5 * square
    bias = np.float64(candidate[0])
    if form == BIASED_SQUARES:
        return total - 0.5 * (square - bias)
    return float(bias - np.sqrt(apart))


@jit
def exact_scores(queries: Floats, candidates: Floats, form: int, out: Doubles) -> None:
    """Score query ``i`` against candidate ``i``.

    Args:
        queries: float32 ``[B, D]``.
        candidates: float32 ``[B, D]``.
        form: How rows are compared: PRODUCT, DISTANCE, ...
        out: Receives the scores, float64 ``[B]``.
    """
    for i in range(queries.shape[0]):
        out[i] = exact_score(queries[i], candidates[i], form)


@inline_jit
def _compare(
    score: float,
    query: Floats,
    candidate: Floats,
    positive: float,
    slack: float,
    form: int,
) -> int:
    """Return 1 if the candidate is better than the positive, 0 if equal, -1 if worse."""
    difference = score - positive
    if difference > slack:
        return 1
    if difference < -slack:
        return -1
    exact = exact_score(query, candidate, form)
    if exact > positive:
        return 1
    return 0 if exact == positive else -1


@inline_jit
def _take_roots(row: Floats, halves: Floats, candidates: Floats, square: float) -> None:
    """Turn products into biases less distances; ``halves`` has half the squares."""
    for j in range(row.size):
        apart = square + 2.0 * (np.float64(halves[j]) - np.float64(row[j]))
        row[j] = candidates[j, 0] - np.sqrt(max(apart, 0.0))


@jit
def count_better(
    queries: Floats,
    candidates: Floats,
    biases: Floats,
    first: int,
    positives: Doubles,
    targets: Ints,
    known_begin: Ints,
    known_end: Ints,
    known: Ints,
    form: int,
    longest: float,
    scores: Floats,
    counts: Ints,
) -> None:
    """Count, per query, the candidates of a block better than or equal to its positive.

    Args:
        queries: float32 ``[B, D]``.
        candidates: A block of candidates, float32 ``[K, D]``.
        biases: Subtracted from the scores, float32 ``[K]``.
        first: Number of the block's first candidate.
        positives: Exact scores of the positives, float64 ``[B]``.
        targets: Numbers of the positives, -1 for one that is no candidate ``[B]``.
        known_begin: Where each query's known answers begin in ``known`` ``[B]``.
        known_end: Where they end ``[B]``.
        known: Numbers of known answers, ascending within each query, each once.
        form: How rows are compared: PRODUCT, DISTANCE, ...
        longest: Length of the longest candidate.
        scores: Scratch, float32 ``[B, K]``.
        counts: Added to: better, equal, known and better, known and equal ``[B, 4]``;
            the positive itself counts nowhere.
    """
    size, num_candidates = queries.shape[1], candidates.shape[0]
    # One product for the block, whose shape decides how it rounds: hence the slack below.
    np.dot(queries, candidates.T, scores)
    shift = np.zeros_like(biases) if form == BIASED_DISTANCE else biases
    for i in range(queries.shape[0]):
        query, positive, target = queries[i], positives[i], targets[i] - first
        square = np.float64(0.0)
        for k in range(size):
            square += np.float64(query[k]) * np.float64(query[k])
        # Cauchy and Schwarz bound each partial sum, and every addition rounds by at most
        # 1.2e-7 of it.
        bound = (np.sqrt(square) + longest) * longest
        if form >= BIASED_SQUARES:
            bound += longest
        slack = (size + 4) * 1.2e-7 * bound + 1e-30
        if form == BIASED_DISTANCE:
            _take_roots(scores[i], biases, candidates, square)
            slack = 2.0 * np.sqrt(slack)  # the root of a sum that may be near 0
        better, equal = 0, 0
        for j in range(num_candidates):
            score = np.float64(scores[i, j] - shift[j])
            # Nearly all candidates end here, without the positive's number being compared.
            if score - positive < -slack:
                continue
            if j == target:
                continue
            sign = _compare(score, query, candidates[j], positive, slack, form)
            better += sign == 1
            equal += sign == 0
        counts[i, 0] += better
        counts[i, 1] += equal
        # Known answers are counted apart, to be taken off: so one pass gives raw and
        # filtered ranks.
        for e in range(
            lower_bound(known, known_begin[i], known_end[i], first), known_end[i]
        ):
            j = known[e] - first
            if j >= num_candidates:
                break
            if j == target:
                continue
            score = np.float64(scores[i, j] - shift[j])
            sign = _compare(score, query, candidates[j], positive, slack, form)
            counts[i, 2] += sign == 1
            counts[i, 3] += sign == 0


@jit
def count_better_scores(
    scores: Floats,
    first: int,
    positives: Doubles,
    targets: Ints,
    known_begin: Ints,
    known_end: Ints,
    known: Ints,
    counts: Ints,
) -> None:
    """Count as :func:`count_better` does, by scores ``[B, K]`` that are rounded alike."""
    num_candidates = scores.shape[1]
    for i in range(scores.shape[0]):
        positive, target = positives[i], targets[i] - first
        better, equal = 0, 0
        for j in range(num_candidates):
            if j != target:
                better += scores[i, j] > positive
                equal += scores[i, j] == positive
        counts[i, 0] += better
        counts[i, 1] += equal
        for e in range(
            lower_bound(known, known_begin[i], known_end[i], first), known_end[i]
        ):
            j = known[e] - first
            if j >= num_candidates:
                break
            if j != target:
                counts[i, 2] += scores[i, j] > positive
                counts[i, 3] += scores[i, j] == positive


@jit
def keep_best(
    scores: Floats,
    first: int,
    out_begin: Ints,
    out_end: Ints,
    left_out: Ints,
    best_scores: Floats,
    best: Ints,
) -> None:
    """Merge a block of candidates into the best so far, equal scores by number.

    Args:
        scores: Of a block of candidates, float32 ``[B, K]``; may be overwritten.
        first: Number of the block's first candidate; blocks come in ascending order.
        out_begin: Where the candidates to leave out begin in ``left_out`` ``[B]``.
        out_end: Where they end ``[B]``.
        left_out: Numbers of candidates, ascending within each query.
        best_scores: The best scores so far, descending, -inf where none ``[B, k]``.
        best: Numbers of their candidates, -1 where none ``[B, k]``.
    """
    num, width = scores.shape[1], best.shape[1]
    for i in range(scores.shape[0]):
        for e in range(lower_bound(left_out, out_begin[i], out_end[i], first), out_end[i]):
            if left_out[e] - first >= num:
                break
            scores[i, left_out[e] - first] = -np.inf
        worst = best_scores[i, width - 1]
        for j in range(num):
            score = scores[i, j]
            # Blocks ascend, and only larger scores enter: among equals the smaller number
            # stays first.
            if score > worst:
                place = width - 1
                while place > 0 and best_scores[i, place - 1] < score:
                    best_scores[i, place] = best_scores[i, place - 1]
                    best[i, place] = best[i, place - 1]
                    place -= 1
                best_scores[i, place] = score
                best[i, place] = first + j
                worst = best_scores[i, width - 1]
