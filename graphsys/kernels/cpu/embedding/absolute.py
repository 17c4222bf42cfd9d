"""Comparators that sum distances number by number, which no matrix product gives.

    l1            s = -sum_k |q_k - c_k|
    complex_l1    s = -sum_k sqrt((q_k - c_k)**2 + (q_(h+k) - c_(h+k))**2),  k < h = D / 2

The second sums moduli of complex numbers, whose real parts are the first half of a row: the
distance of RotatE (Sun et al., ICLR 2019). Every query is walked beside a block of
candidates that stays in the first-level cache. A pair's gradient needs its differences
again, which costs less than to keep D numbers for a score of one.

Where rows have a bias, the first number of both is added to the score and compared as 0, so
that halves stay halves.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.bias import BIASED
from graphsys.kernels.cpu.embedding.calls import Objective
from graphsys.kernels.cpu.embedding.candidate_weights import CandidateWeights
from graphsys.kernels.cpu.embedding.scores import losses_and_gradients
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    fused_jit,
    lean_fused_jit,
    pointed_jit,
)
from graphsys.kernels.jit import compile_kernel, jit

Ints = npt.NDArray[np.int64]
Kernel = TypeVar("Kernel", bound=Callable[..., Any])

L1: Final = 16
COMPLEX_L1: Final = 17
"""Codes of the two, with which ``BIASED`` may be added."""

_BLOCK: Final = 16  # candidates, with their gradients, beside a query: 2 * 16 * D * 4 B
_ZERO: Final = np.float32(0.0)
_LEAST: Final = np.float32(1e-30)  # of a square: the gradient at equal numbers is 0


def _slope_jit(kernel: Kernel) -> Kernel:
    """Compile a loop whose quotients by roots may be products with refined estimates.

    ``arcp`` and ``afn`` let LLVM take the machine's reciprocal square root and one Newton
    step: .7 ns a modulus instead of 1.2. A NaN stays one.
    """
    fast = {"contract", "nsz", "reassoc", "arcp", "afn"}
    return compile_kernel(kernel, fastmath=fast, _nrt=False)


@lean_fused_jit
def _absolute_sum(query: Floats, candidate: Floats) -> np.float32:
    total = _ZERO
    for k in range(query.size):
        total += abs(query[k] - candidate[k])
    return total


@lean_fused_jit
def _modulus_sum(query: Floats, candidate: Floats) -> np.float32:
    total, half = _ZERO, query.size // 2
    for k in range(half):
        real, imaginary = query[k] - candidate[k], query[half + k] - candidate[half + k]
        total += np.sqrt(real * real + imaginary * imaginary)
    return total


@_slope_jit
def _absolute_slopes(
    query: Floats, candidate: Floats, factor: np.float32, slopes: Floats
) -> None:
    for k in range(query.size):
        apart = query[k] - candidate[k]
        slopes[k] = factor if apart > _ZERO else (-factor if apart < _ZERO else _ZERO)


@_slope_jit
def _modulus_slopes(
    query: Floats, candidate: Floats, factor: np.float32, slopes: Floats
) -> None:
    half = query.size // 2
    for k in range(half):
        real, imaginary = query[k] - candidate[k], query[half + k] - candidate[half + k]
        slope = factor / np.sqrt(real * real + imaginary * imaginary + _LEAST)
        slopes[k], slopes[half + k] = slope * real, slope * imaginary


@_slope_jit
def _move_apart(slopes: Floats, dquery: Floats, dcandidate: Floats) -> None:
    for k in range(slopes.size):
        dquery[k] -= slopes[k]
        dcandidate[k] += slopes[k]


@fused_jit
def _score(
    is_complex: bool, queries: Floats, candidates: Floats, is_paired: bool, out: Floats
) -> None:
    """Score without biases: all queries with all candidates, or each with its own.

    Both are one loop, that is one machine code, so that a pair's score is rounded alike.

    Args:
        is_complex: Whether numbers are complex.
        queries: ``[B, D]``.
        candidates: ``[K, D]``.
        is_paired: Whether query ``i`` is scored with candidate ``i`` alone.
        out: Receives the scores, ``[B, K]``, or ``[B, 1]`` of pairs.
    """
    num_candidates = 1 if is_paired else candidates.shape[0]
    for low in range(0, num_candidates, _BLOCK):
        for i in range(queries.shape[0]):
            first = i if is_paired else 0
            for j in range(low, min(low + _BLOCK, num_candidates)):
                if is_complex:
                    out[i, j] = -_modulus_sum(queries[i], candidates[first + j])
                else:
                    out[i, j] = -_absolute_sum(queries[i], candidates[first + j])


@fused_jit
def _without_bias(rows: Floats, has_bias: bool) -> Floats:
    if not has_bias:
        return rows
    rest = rows.copy()
    rest[:, 0] = _ZERO
    return rest


@jit
def score_absolute(
    is_complex: bool,
    queries: Floats,
    candidates: Floats,
    has_bias: bool,
    is_paired: bool,
    out: Floats,
) -> None:
    """Score every query with every candidate, or each with its own.

    Args:
        is_complex: Whether numbers are complex.
        queries: float32 ``[B, D]``.
        candidates: float32 ``[K, D]``.
        has_bias: Whether the first number of a row is added, not compared.
        is_paired: Whether query ``i`` is scored with candidate ``i`` alone.
        out: Receives the scores, float32 ``[B, K]``, or ``[B, 1]`` of pairs.
    """
    rest, others = _without_bias(queries, has_bias), _without_bias(candidates, has_bias)
    _score(is_complex, rest, others, is_paired, out)
    if has_bias:
        for i in range(out.shape[0]):
            first = i if is_paired else 0
            for j in range(out.shape[1]):
                out[i, j] += queries[i, 0] + candidates[first + j, 0]


@pointed_jit
def rank_absolute(
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
    """Compare by sums, with a bias or without: see the head of ``scores.py``."""
    num_queries, num_candidates = queries.shape[0], candidates.shape[0]
    has_bias = objective.comparator >= L1 + BIASED
    is_complex = objective.comparator % BIASED == COMPLEX_L1 % BIASED
    rest, others = _without_bias(queries, has_bias), _without_bias(candidates, has_bias)
    begin = 0 if use_batch else num_queries
    scores = scratch[: num_queries * num_candidates]
    scores = scores.reshape((num_queries, num_candidates))
    scores[:, :begin] = _ZERO  # of no negatives
    _score(is_complex, rest, others[begin:], False, scores[:, begin:])
    if begin > 0:
        own = np.empty((num_queries, 1), np.float32)
        _score(is_complex, rest, others, True, own)
        for i in range(num_queries):
            scores[i, i] = own[i, 0]
    if has_bias:
        scores += queries[:, :1] + candidates[:, 0]
    total = losses_and_gradients(
        scores, nodes, weights, use_batch, objective, bias, counting
    )
    dqueries[:] = _ZERO
    dcandidates[:] = _ZERO
    _gradients(is_complex, rest, others, scores, dqueries, dcandidates)
    if has_bias:  # which moved no other number: compared as 0, it is as far as its like
        for i in range(num_queries):
            for j in range(num_candidates):
                dqueries[i, 0] += scores[i, j]
                dcandidates[j, 0] += scores[i, j]
    return float(total)


@fused_jit
def _gradients(
    is_complex: bool,
    queries: Floats,
    candidates: Floats,
    factors: Floats,
    dqueries: Floats,
    dcandidates: Floats,
) -> None:
    """Add the gradients through the scores, whose own are ``factors [B, K]``."""
    slopes = np.empty(queries.shape[1], np.float32)
    for low in range(0, candidates.shape[0], _BLOCK):
        for i in range(queries.shape[0]):
            for j in range(low, min(low + _BLOCK, candidates.shape[0])):
                factor = factors[i, j]
                if factor == _ZERO:
                    continue
                if is_complex:
                    _modulus_slopes(queries[i], candidates[j], factor, slopes)
                else:
                    _absolute_slopes(queries[i], candidates[j], factor, slopes)
                _move_apart(slopes, dqueries[i], dcandidates[j])
