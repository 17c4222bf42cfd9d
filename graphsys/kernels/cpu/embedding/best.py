"""The best candidates of every query, kept while blocks of candidates pass by."""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.rank import lower_bound
from graphsys.kernels.cpu.embedding.vector_math import Floats
from graphsys.kernels.jit import jit

Ints = npt.NDArray[np.int64]


@jit
def keep_best(
    queries: Floats,
    candidates: Floats,
    biases: Floats,
    first: int,
    out_begin: Ints,
    out_end: Ints,
    left_out: Ints,
    scores: Floats,
    best_scores: Floats,
    best: Ints,
) -> None:
    """Merge a block of candidates into the best so far, equal scores by number.

    Args:
        queries: float32 ``[B, D]``.
        candidates: A block of candidates, float32 ``[K, D]``.
        biases: Subtracted from the scores, float32 ``[K]``.
        first: Number of the block's first candidate; blocks come in ascending order.
        out_begin: Where the candidates to leave out begin in ``left_out`` ``[B]``.
        out_end: Where they end ``[B]``.
        left_out: Numbers of candidates, ascending within each query.
        scores: Scratch, float32 ``[B, K]``.
        best_scores: The best scores so far, descending, -inf where none ``[B, k]``.
        best: Numbers of their candidates, -1 where none ``[B, k]``.
    """
    num, width = candidates.shape[0], best.shape[1]
    np.dot(queries, candidates.T, scores)
    for i in range(queries.shape[0]):
        for j in range(num):
            scores[i, j] -= biases[j]
        for e in range(lower_bound(left_out, out_begin[i], out_end[i], first), out_end[i]):
            if left_out[e] - first >= num:
                break
            scores[i, left_out[e] - first] = -np.inf
        worst = best_scores[i, width - 1]
        for j in range(num):
            score = scores[i, j]
            if score > worst:
                place = width - 1
                while place > 0 and best_scores[i, place - 1] < score:
                    best_scores[i, place] = best_scores[i, place - 1]
                    best[i, place] = best[i, place - 1]
                    place -= 1
                best_scores[i, place] = score
                best[i, place] = first + j
                worst = best_scores[i, width - 1]
