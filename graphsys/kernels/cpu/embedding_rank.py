"""Rank of a positive among all candidates, exact and independent of how they are cut.

Scores come from a float32 matrix product per block of candidates, whose rounding depends
on the shape of the block. A candidate whose score is within the error bound of the
positive's is therefore compared again in float64, each sum in the order of the
dimensions; so equal rows tie, and the ranks do not depend on blocks or partitions.

A score is ``q.c - bias(c)``: dot and cos (of unit rows) have no bias, the two distances
order candidates as ``q.c - |c|**2 / 2`` does.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding_math import Floats
from graphsys.kernels.jit import inline_jit, jit

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@inline_jit
def exact_score(query: Floats, candidate: Floats, is_distance: bool) -> float:
    """Return one score in float64, summed in the order of the dimensions."""
    total, square = 0.0, 0.0
    for k in range(query.size):
        c = np.float64(candidate[k])
        total += np.float64(query[k]) * c
        square += c * c
    return total - 0.5 * square if is_distance else total


@jit
def exact_scores(
    queries: Floats, candidates: Floats, is_distance: bool, out: Doubles
) -> None:
    """Score query ``i`` against candidate ``i``.

    Args:
        queries: float32 ``[B, D]``.
        candidates: float32 ``[B, D]``.
        is_distance: Whether the comparator is a distance.
        out: Receives the scores, float64 ``[B]``.
    """
    for i in range(queries.shape[0]):
        out[i] = exact_score(queries[i], candidates[i], is_distance)


@inline_jit
def _compare(
    score: float, query: Floats, candidate: Floats, positive: float, slack: float,
    is_distance: bool,
) -> int:  # fmt: skip
    """Return 1 if the candidate is better than the positive, 0 if equal, -1 if worse."""
    difference = score - positive
    if difference > slack:
        return 1
    if difference < -slack:
        return -1
    exact = exact_score(query, candidate, is_distance)
    if exact > positive:
        return 1
    return 0 if exact == positive else -1


@inline_jit
def lower_bound(numbers: Ints, begin: int, end: int, least: int) -> int:
    """Return the first place in ``numbers[begin:end]``, ascending, of one >= least."""
    while begin < end:
        middle = (begin + end) // 2
        if numbers[middle] < least:
            begin = middle + 1
        else:
            end = middle
    return begin


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
    is_distance: bool,
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
        is_distance: Whether the comparator is a distance.
        longest: Length of the longest candidate.
        scores: Scratch, float32 ``[B, K]``.
        counts: Added to: better, equal, known and better, known and equal ``[B, 4]``;
            the positive itself counts nowhere.
    """
    size, num_candidates = queries.shape[1], candidates.shape[0]
    np.dot(queries, candidates.T, scores)
    for i in range(queries.shape[0]):
        query, positive, target = queries[i], positives[i], targets[i] - first
        square = np.float64(0.0)
        for k in range(size):
            square += np.float64(query[k]) * np.float64(query[k])
        bound = (np.sqrt(square) + longest) * longest
        slack = (size + 4) * 1.2e-7 * bound + 1e-30
        better, equal = 0, 0
        for j in range(num_candidates):
            score = np.float64(scores[i, j] - biases[j])
            if score - positive < -slack:
                continue
            if j == target:
                continue
            sign = _compare(score, query, candidates[j], positive, slack, is_distance)
            better += sign == 1
            equal += sign == 0
        counts[i, 0] += better
        counts[i, 1] += equal
        for e in range(
            lower_bound(known, known_begin[i], known_end[i], first), known_end[i]
        ):
            j = known[e] - first
            if j >= num_candidates:
                break
            if j == target:
                continue
            score = np.float64(scores[i, j] - biases[j])
            sign = _compare(score, query, candidates[j], positive, slack, is_distance)
            counts[i, 2] += sign == 1
            counts[i, 3] += sign == 0
