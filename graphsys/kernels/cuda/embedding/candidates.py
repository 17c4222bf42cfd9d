"""Triton kernel: the gradients at candidates, from scores computed once more.

Layout and method: :mod:`graphsys.kernels.cuda.embedding.scores`.
"""

# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl

from graphsys.kernels.cuda.embedding.scores import (
    COS,
    COUNTS,
    LOGISTIC,
    SOFTMAX,
    inner_products,
    operands,
    score_of,
    softplus,
    weight_of_row,
)


# long: one kernel; Triton inlines what it calls, and registers are shared
@triton.jit(do_not_specialize=COUNTS)
def score_candidates(
    rows,
    squares,
    bias,
    nodes,
    weights,
    chunk_begin,
    chunk_size,
    chunk_pool,
    normalizer,
    own_gradient,
    gradients,
    num_positions,
    first_query,
    blocks_per_chunk,
    margin,
    DIM: tl.constexpr,
    COMPARATOR: tl.constexpr,
    LOSS: tl.constexpr,
    USE_BATCH: tl.constexpr,
    PRECISION: tl.constexpr,
    NARROW: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Compute the gradients at candidates; arguments as of :func:`score_queries`.

    Grid: blocks of ``BLOCK_C`` candidates of every chunk, 2 sides, blocks of the
    dimension. Where queries and candidates are the same tensors (``first_query`` 0), adds
    to the gradients that :func:`score_queries` left at the positives.
    """
    chunk = tl.program_id(0) // blocks_per_chunk
    block = tl.program_id(0) % blocks_per_chunk
    side = tl.program_id(1)
    begin = tl.load(chunk_begin + chunk).to(tl.int64)
    size, pool = tl.load(chunk_size + chunk), tl.load(chunk_pool + chunk)
    if block * BLOCK_C >= pool:
        return
    # In 64 bits: positions times the dimension pass 2**31 in large batches.
    query_base = (first_query + side) * num_positions.to(tl.int64) + begin
    other_base = (1 - side) * num_positions.to(tl.int64) + begin
    stat_base = side * num_positions.to(tl.int64) + begin
    q_rows, c_rows = rows + query_base * DIM, rows + other_base * DIM
    c = block * BLOCK_C + tl.arange(0, BLOCK_C)
    is_candidate = c < pool
    d = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    is_dim = d < DIM
    node = tl.load(nodes + other_base + c, is_candidate, -1)
    shift = tl.load(bias + other_base + c, is_candidate, 0.0)
    square = tl.zeros((BLOCK_C,), tl.float32)
    if COMPARATOR > COS:
        square = tl.load(squares + other_base + c, is_candidate, 1.0)
    allowed = is_candidate if USE_BATCH else is_candidate & (c >= size)

    total = tl.zeros((BLOCK_C, BLOCK_D), tl.float32)
    factors = tl.zeros((BLOCK_C,), tl.float32)
    for q_begin in range(0, size, BLOCK_Q):
        q = q_begin + tl.arange(0, BLOCK_Q)
        is_query = q < size
        # Computed once more, so that no array of all pairs is ever written.
        product = inner_products(
            c_rows,
            q_rows,
            c,
            q,
            is_candidate,
            is_query,
            DIM,
            BLOCK_C,
            BLOCK_Q,
            BLOCK_K,
            PRECISION,
            NARROW,
        )
        own_square = tl.zeros((BLOCK_Q,), tl.float32)
        if COMPARATOR > COS:
            own_square = tl.load(squares + query_base + q, is_query, 1.0)
        score = score_of(product, own_square[None, :], square[:, None], COMPARATOR)
        factor = weight_of_row(score, COMPARATOR)
        score += shift[:, None]
        weight = tl.load(weights + begin + q, is_query, 0.0)
        kept = tl.load(normalizer + stat_base + q, is_query, 0.0)
        own = tl.load(own_gradient + stat_base + q, is_query, 0.0)
        # A candidate that is the positive's own node is no negative.
        own_node = tl.load(nodes + other_base + q, is_query, -1)
        used = allowed[:, None] & is_query[None, :] & (node[:, None] != own_node[None, :])
        if LOSS == SOFTMAX:
            part = tl.exp(tl.where(used, score - kept[None, :], float("-inf")))
        elif LOSS == LOGISTIC:
            _, part = softplus(score)
            part = tl.where(used, part, 0.0)
            weight /= tl.maximum(pool if USE_BATCH else pool - size, 1).to(tl.float32)
        else:
            part = tl.where(used & (margin + score - kept[None, :] > 0), 1.0, 0.0)
        part *= weight[None, :]
        # Candidate q of the chunk is the positive of query q; its gradient is known
        # already.
        part = tl.where(c[:, None] == q[None, :], own[None, :], part) * factor
        factors += tl.sum(part, axis=1)
        inside = is_query[:, None] & is_dim[None, :]
        row = tl.load(q_rows + q[:, None] * DIM + d[None, :], inside, 0.0)
        part, row = operands(part, row, NARROW)
        total = tl.dot(part, row, total, input_precision=PRECISION)

    edge = is_candidate[:, None] & is_dim[None, :]
    if COMPARATOR > COS:
        row = tl.load(c_rows + c[:, None] * DIM + d[None, :], edge, 0.0).to(tl.float32)
        total -= factors[:, None] * row
    at = (other_base + c[:, None]) * DIM + d[None, :]
    # Queries and candidates are the same rows here: what score_queries left is added to.
    if first_query == 0:
        total += tl.load(gradients + at, edge & (c < size)[:, None], 0.0)
    tl.store(gradients + at, total, edge)
