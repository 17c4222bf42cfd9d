"""Both directions of a chunk at once, where one operator serves both.

Without reciprocal operators the scores of sources against destinations are the same
numbers in both directions, so the block of positives against positives is computed once,
and its two gradients meet in one product each. With as many batch as other negatives that
is a quarter less arithmetic than asking twice:

    tails = P [P'; U']'     sources of the positives against all destinations
    heads = [tails[:, :n]', P' U']     destinations of the positives against all sources
    dP = T [P'; U']         with T the gradient at tails, plus that of the shared block
    d[P'; U'] = T' P  (+ H U at P')     with H the gradient at heads[:, n:]
    dU = H' P'
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.calls import Objective
from graphsys.kernels.cpu.embedding.candidate_weights import CandidateWeights
from graphsys.kernels.cpu.embedding.products import multiply, multiply_by_rows, transpose
from graphsys.kernels.cpu.embedding.scores import losses_and_gradients
from graphsys.kernels.cpu.embedding.vector_math import (
    Floats,
    normalize_rows,
    normalize_rows_backward,
    pointed_jit,
)

Ints = npt.NDArray[np.int64]


@pointed_jit
def rank_product_pairs(
    src: Floats,
    dst: Floats,
    src_nodes: Ints,
    dst_nodes: Ints,
    weights: Floats,
    objective: Objective,
    src_bias: Floats,
    dst_bias: Floats,
    src_counting: CandidateWeights,
    dst_counting: CandidateWeights,
    scratch: Floats,
    packed: Floats,
    dsrc: Floats,
    ddst: Floats,
) -> float:
    """Ask for the destinations and for the sources, by inner products.

    Args:
        src: Sources ``[K, D]``: those of the ``B`` positives, then negatives.
        dst: Destinations after the operator ``[K, D]``, in the same order.
        src_nodes: Numbers of the sources ``[K]``.
        dst_nodes: Numbers of the destinations ``[K]``.
        weights: Weight of every positive ``[B]``.
        objective: The kernels of the loss, margin.
        src_bias: Added to the score of a source where it is a negative ``[K]``.
        dst_bias: The same for destinations.
        src_counting: Which sources do not count, or not equally.
        dst_counting: The same for destinations.
        scratch: At least ``2 * B * K`` floats, flat.
        packed: At least ``max(K * D, B * B)`` floats, flat.
        dsrc: Receives the gradient at the sources ``[K, D]``.
        ddst: Receives the gradient at the destinations ``[K, D]``.

    Returns:
        The summed loss.
    """
    n, k = weights.size, src.shape[0]
    tails = scratch[: n * k].reshape((n, k))
    heads = scratch[n * k : 2 * n * k].reshape((n, k))
    multiply_by_rows(src[:n], dst, packed, tails)
    transpose(tails[:, :n], heads[:, :n])
    multiply_by_rows(dst[:n], src[n:], packed, heads[:, n:])
    total = losses_and_gradients(
        tails, dst_nodes, weights, True, objective, dst_bias, dst_counting
    )
    total += losses_and_gradients(
        heads, src_nodes, weights, True, objective, src_bias, src_counting
    )
    shared = packed[: n * n].reshape((n, n))
    transpose(heads[:, :n], shared)
    for i in range(n):
        for j in range(n):
            tails[i, j] += shared[i, j]
    multiply(tails, dst, dsrc[:n], False)
    multiply(tails.T, src[:n], ddst, False)
    multiply(heads[:, n:], src[n:], ddst[:n], True)
    multiply(heads[:, n:].T, dst[:n], dsrc[n:], False)
    return total


@pointed_jit
def rank_cosine_pairs(
    src: Floats,
    dst: Floats,
    src_nodes: Ints,
    dst_nodes: Ints,
    weights: Floats,
    objective: Objective,
    src_bias: Floats,
    dst_bias: Floats,
    src_counting: CandidateWeights,
    dst_counting: CandidateWeights,
    scratch: Floats,
    packed: Floats,
    dsrc: Floats,
    ddst: Floats,
) -> float:
    """Do :func:`rank_product_pairs` by cosines."""
    unit_src, src_norms = np.empty_like(src), np.empty(src.shape[0], np.float32)
    unit_dst, dst_norms = np.empty_like(dst), np.empty(dst.shape[0], np.float32)
    normalize_rows(src, unit_src, src_norms)
    normalize_rows(dst, unit_dst, dst_norms)
    total = rank_product_pairs(
        unit_src,
        unit_dst,
        src_nodes,
        dst_nodes,
        weights,
        objective,
        src_bias,
        dst_bias,
        src_counting,
        dst_counting,
        scratch,
        packed,
        dsrc,
        ddst,
    )
    normalize_rows_backward(unit_src, src_norms, dsrc)
    normalize_rows_backward(unit_dst, dst_norms, ddst)
    return total
