"""Triton kernels: scores, losses and gradients of queries against shared candidates.

What :mod:`graphsys.kernels.cpu.embedding.scores` computes, without ever storing the matrix
of scores. ``score_queries`` walks the candidates of a chunk block by block and keeps the
running maximum, sum and weighted sum of rows (Milakov, Gimelshein, "Online normalizer
calculation for softmax", 2018; Dao et al., "FlashAttention", NeurIPS 2022, where keys and
values are the same here), so that one pass gives the loss and the gradient at the query.
``embedding_candidates`` computes the scores again, the other way round, for the gradient at
the candidates. The dimension is cut into blocks of ``BLOCK_D`` for the sums and of
``BLOCK_K`` for the products, so any dimension takes the same registers.

Layout. A batch has ``P`` positions: the pools of its chunks one behind the other, in each
the positives first. ``rows`` holds tensors ``[P, dim]``: 0 the sources, 1 the
destinations; with two operators per relation (reciprocal) 2 and 3 are the operated
queries, and ``first_query`` is 2, else 0. Side 0 asks for destinations, side 1 for
sources; side ``s`` has the queries ``first_query + s`` and the candidates ``1 - s``.
Gradients lie as the rows do. No atomics: the same bits in every run.
"""

# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl

DOT = tl.constexpr(0)
COS = tl.constexpr(1)
SQUARED_L2 = tl.constexpr(2)
SOFTMAX = tl.constexpr(0)
LOGISTIC = tl.constexpr(1)
SMALLEST_SQUARE = tl.constexpr(1e-12)
COUNTS = ("num_positions", "first_query", "blocks_per_chunk")


@triton.jit
def squared_distance(product, own, other):
    """Return squared distances from inner products and squared lengths."""
    square = own + other - 2.0 * product
    return tl.where(square < SMALLEST_SQUARE, SMALLEST_SQUARE, square)


@triton.jit
def score_of(product, own, other, COMPARATOR: tl.constexpr):
    """Turn inner products into scores; ``own`` and ``other`` are squared lengths."""
    if COMPARATOR <= COS:
        score = product
    elif COMPARATOR == SQUARED_L2:
        score = -squared_distance(product, own, other)
    else:
        score = -tl.sqrt(squared_distance(product, own, other))
    return score


@triton.jit
def weight_of_row(score, COMPARATOR: tl.constexpr):
    """Return what a gradient at a score is multiplied by to weigh the other row."""
    if COMPARATOR <= COS:
        factor = tl.full(score.shape, 1.0, tl.float32)
    elif COMPARATOR == SQUARED_L2:
        factor = tl.full(score.shape, 2.0, tl.float32)
    else:
        factor = -1.0 / score
    return factor


@triton.jit
def operands(left, right, NARROW: tl.constexpr):
    """Return the operands of a product in one type; sums are float32 in any case."""
    if NARROW:
        return left.to(tl.bfloat16), right.to(tl.bfloat16)
    else:  # noqa: RET505  (a branch of the compiler's)
        return left.to(tl.float32), right.to(tl.float32)


@triton.jit
def inner_products(
    a,
    b,
    a_at,
    b_at,
    a_mask,
    b_mask,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
    NARROW: tl.constexpr,
):
    """Return the inner products of rows ``a`` and ``b``, float32 ``[ROWS, COLUMNS]``."""
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for begin in range(0, DIM, BLOCK_K):
        k = begin + tl.arange(0, BLOCK_K)
        inside = k < DIM
        left = tl.load(
            a + a_at[:, None] * DIM + k[None, :], a_mask[:, None] & inside[None, :], 0.0
        )
        right = tl.load(
            b + b_at[None, :] * DIM + k[:, None], b_mask[None, :] & inside[:, None], 0.0
        )
        left, right = operands(left, right, NARROW)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    return total


@triton.jit
def softplus(x):
    """Return log(1 + exp(x)) of a score, and its derivative."""
    e = tl.exp(-tl.abs(x))
    return tl.log(1.0 + e) + tl.maximum(x, 0.0), tl.where(x > 0, 1.0, e) / (1.0 + e)


# long: one kernel; Triton inlines what it calls, and registers are shared
@triton.jit(do_not_specialize=COUNTS)
def score_queries(
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
    losses,
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
    """Compute losses and the gradients at queries.

    Grid: blocks of ``BLOCK_Q`` queries of every chunk, 2 sides, blocks of the dimension.

    Args:
        rows: Staged rows ``[2 or 4, P, dim]``, of unit length for cos.
        squares: Squared lengths of the staged rows, float32 ``[2 or 4, P]`` (distances).
        bias: Added to the score of a candidate that is not the positive, ``[2, P]``.
        nodes: Number of the node at every position, int32 ``[2, P]``.
        weights: Weight of every positive, float32 ``[P]``.
        chunk_begin: First position of every chunk, int32 ``[C]``.
        chunk_size: Positives of every chunk.
        chunk_pool: Candidates of every chunk, the positives among them.
        normalizer: Receives log of the sum of exponentials (softmax) or the positive's
            score (ranking), float32 ``[2, P]``.
        own_gradient: Receives the gradient at the positive's score.
        losses: Receives the loss of every query.
        gradients: Receives the gradients at the queries, float32 ``[2 or 4, P, dim]``.
        num_positions: P.
        first_query: Which tensor holds the queries of side 0.
        blocks_per_chunk: Blocks of queries of the longest chunk.
        margin: Of the ranking loss.
        DIM: Length of a row.
        COMPARATOR: Code of the comparator.
        LOSS: Code of the loss.
        USE_BATCH: Whether the other positives of a chunk are candidates.
        PRECISION: Of float32 products on tensor cores.
        NARROW: Whether the operands of products are bfloat16, else float32.
        BLOCK_Q: Queries per program.
        BLOCK_C: Candidates per turn.
        BLOCK_K: Part of the dimension per product.
        BLOCK_D: Part of the dimension whose gradient a program sums.
    """
    chunk = tl.program_id(0) // blocks_per_chunk
    block = tl.program_id(0) % blocks_per_chunk
    side = tl.program_id(1)
    begin = tl.load(chunk_begin + chunk).to(tl.int64)
    size, pool = tl.load(chunk_size + chunk), tl.load(chunk_pool + chunk)
    if block * BLOCK_Q >= size:
        return
    query_base = (first_query + side) * num_positions.to(tl.int64) + begin
    other_base = (1 - side) * num_positions.to(tl.int64) + begin
    q_rows, c_rows = rows + query_base * DIM, rows + other_base * DIM
    q = block * BLOCK_Q + tl.arange(0, BLOCK_Q)
    is_query = q < size
    d = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    is_dim = d < DIM
    weight = tl.load(weights + begin + q, is_query, 0.0)
    own_node = tl.load(nodes + other_base + q, is_query, -1)

    positive = tl.zeros((BLOCK_Q,), tl.float32)
    for k_begin in range(0, DIM, BLOCK_K):
        k = k_begin + tl.arange(0, BLOCK_K)
        inside = is_query[:, None] & (k < DIM)[None, :]
        at = q[:, None] * DIM + k[None, :]
        left = tl.load(q_rows + at, inside, 0.0).to(tl.float32)
        right = tl.load(c_rows + at, inside, 0.0).to(tl.float32)
        positive += tl.sum(left * right, axis=1)
    own_square = tl.zeros((BLOCK_Q,), tl.float32)
    if COMPARATOR > COS:
        own_square = tl.load(squares + query_base + q, is_query, 1.0)
        positive = score_of(
            positive,
            own_square,
            tl.load(squares + other_base + q, is_query, 1.0),
            COMPARATOR,
        )
    own_factor = weight_of_row(positive, COMPARATOR)
    edge = is_query[:, None] & is_dim[None, :]
    own_place = q[:, None] * DIM + d[None, :]

    total = tl.zeros((BLOCK_Q, BLOCK_D), tl.float32)
    factors = tl.zeros((BLOCK_Q,), tl.float32)
    summed = tl.zeros((BLOCK_Q,), tl.float32)
    violations = tl.zeros((BLOCK_Q,), tl.float32)
    highest = positive
    if LOSS == SOFTMAX:  # the positive is a column like the others, seen first
        own_row = tl.load(c_rows + own_place, edge, 0.0).to(tl.float32)
        total += own_factor[:, None] * own_row
        factors += own_factor
        summed += 1.0
    # Without in-batch negatives the blocks that hold positives only are skipped.
    first = 0 if USE_BATCH else size // BLOCK_C * BLOCK_C
    for c_begin in range(first, pool, BLOCK_C):
        c = c_begin + tl.arange(0, BLOCK_C)
        is_candidate = c < pool
        score = inner_products(
            q_rows,
            c_rows,
            q,
            c,
            is_query,
            is_candidate,
            DIM,
            BLOCK_Q,
            BLOCK_C,
            BLOCK_K,
            PRECISION,
            NARROW,
        )
        square = tl.zeros((BLOCK_C,), tl.float32)
        if COMPARATOR > COS:
            square = tl.load(squares + other_base + c, is_candidate, 1.0)
        score = score_of(score, own_square[:, None], square[None, :], COMPARATOR)
        factor = weight_of_row(score, COMPARATOR)
        score += tl.load(bias + other_base + c, is_candidate, 0.0)[None, :]
        node = tl.load(nodes + other_base + c, is_candidate, -1)
        allowed = is_candidate if USE_BATCH else is_candidate & (c >= size)
        used = allowed[None, :] & (node[None, :] != own_node[:, None])
        if LOSS == SOFTMAX:
            score = tl.where(used, score, float("-inf"))
            # The running sums are of exponentials less the maximum so far: a higher one
            # shrinks them.
            higher = tl.maximum(highest, tl.max(score, axis=1))
            shrink = tl.exp(highest - higher)
            part = tl.exp(score - higher[:, None])
            highest = higher
            summed = summed * shrink + tl.sum(part, axis=1)
            total *= shrink[:, None]
            factors *= shrink
        elif LOSS == LOGISTIC:
            loss, part = softplus(score)
            part = tl.where(used, part, 0.0)
            summed += tl.sum(tl.where(used, loss, 0.0), axis=1)
        else:
            excess = margin + score - positive[:, None]
            part = tl.where(used & (excess > 0), 1.0, 0.0)
            violations += tl.sum(part, axis=1)
            summed += tl.sum(tl.where(used & (excess > 0), excess, 0.0), axis=1)
        part *= factor
        factors += tl.sum(part, axis=1)
        inside = is_candidate[:, None] & is_dim[None, :]
        row = tl.load(c_rows + c[:, None] * DIM + d[None, :], inside, 0.0)
        part, row = operands(part, row, NARROW)
        total = tl.dot(part, row, total, input_precision=PRECISION)

    own_row = tl.load(c_rows + own_place, edge, 0.0).to(tl.float32)  # again: registers
    if LOSS == SOFTMAX:
        kept = highest + tl.log(summed)
        loss = weight * (kept - positive)
        own = weight * (tl.exp(positive - kept) - 1.0)
        total = weight[:, None] * (total / summed[:, None] - own_factor[:, None] * own_row)
        factors = weight * (factors / summed - own_factor)
    elif LOSS == LOGISTIC:
        share = weight / tl.maximum(pool if USE_BATCH else pool - size, 1).to(tl.float32)
        own_loss, slope = softplus(-positive)
        loss = share * summed + weight * own_loss
        own = -weight * slope
        kept = positive
        total = share[:, None] * total + (own * own_factor)[:, None] * own_row
        factors = share * factors + own * own_factor
    else:
        loss = tl.where(positive == positive, weight * summed, positive)
        own = -weight * violations
        kept = positive
        total = weight[:, None] * total + (own * own_factor)[:, None] * own_row
        factors = weight * factors + own * own_factor
    if COMPARATOR > COS:
        row = tl.load(q_rows + q[:, None] * DIM + d[None, :], edge, 0.0).to(tl.float32)
        total -= factors[:, None] * row
    tl.store(gradients + (query_base + q[:, None]) * DIM + d[None, :], total, edge)
    # Programs of one query differ in their columns alone: one of them writes what all
    # found.
    if tl.program_id(2) == 0:
        stat = side * num_positions.to(tl.int64) + begin + q
        tl.store(normalizer + stat, kept, is_query)
        tl.store(own_gradient + stat, own, is_query)
        tl.store(losses + stat, loss, is_query)
