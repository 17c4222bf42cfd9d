"""Triton kernels: rows gathered, and operators applied to them.

Positions, tensors and sides are those of :mod:`graphsys.kernels.cuda.embedding.scores`.
Positions are cut into *runs*: up to ``RUN`` positions of one chunk, side by side, of one
relation, or of none (-1), which means that no operator acts on them. With two operators
per relation (``RECIPROCAL``) that of side ``s`` acts on the positives of side ``s``; else
the one operator acts on side 1.
"""

# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl

TRANSLATION = tl.constexpr(1)
DIAGONAL = tl.constexpr(2)
LINEAR = tl.constexpr(3)
COMPLEX = tl.constexpr(4)
TINY = tl.constexpr(1e-12)
VARYING = ("num_positions", "num_runs", "num_src", "seed", "batch")


@triton.jit
def operate(
    base,
    at,
    inside,
    d,
    parameters,
    code,
    TRANSPOSED: tl.constexpr,
    DIM: tl.constexpr,
    HAS_LINEAR: tl.constexpr,
    PRECISION: tl.constexpr,
    RUN: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Return columns ``d`` of the operated rows ``base[at]``, float32.

    ``TRANSPOSED`` applies the operator's transpose, for gradients.
    """
    half: tl.constexpr = DIM // 2
    is_dim = d < DIM
    is_low = d < half
    edge = inside[:, None] & is_dim[None, :]
    code_at = code + 0 * d  # the interpreter cannot mask by a scalar
    is_complex = code_at == COMPLEX
    other = tl.where(is_low, d + half, d - half)
    own_at = tl.where(is_complex & (d >= half), d - half, d)
    has_own = is_dim & ((code_at == DIAGONAL) | is_complex)
    scale = tl.load(parameters + own_at, has_own, 1.0)
    turn = tl.load(parameters + tl.where(is_low, d + half, d), is_dim & is_complex, 0.0)
    sign = tl.where(is_low, -1.0, 1.0)
    if TRANSPOSED:
        sign = -sign
    y = tl.load(base + at[:, None] * DIM + d[None, :], edge, 0.0).to(tl.float32)
    y *= scale[None, :]
    partner = tl.load(
        base + at[:, None] * DIM + other[None, :], edge & is_complex[None, :], 0.0
    )
    y += partner.to(tl.float32) * (sign * turn)[None, :]
    if not TRANSPOSED:
        shift = tl.load(parameters + d, is_dim & (code_at == TRANSLATION), 0.0)
        y += shift[None, :]
    if HAS_LINEAR:  # noqa: SIM102  (known when compiled)
        if code == LINEAR:
            y = tl.zeros((RUN, BLOCK_D), tl.float32)
            for begin in range(0, DIM, BLOCK_K):
                k = begin + tl.arange(0, BLOCK_K)
                is_k = k < DIM
                x = tl.load(
                    base + at[:, None] * DIM + k[None, :],
                    inside[:, None] & is_k[None, :],
                    0.0,
                )
                if TRANSPOSED:
                    place = k[:, None] * DIM + d[None, :]
                else:
                    place = d[None, :] * DIM + k[:, None]
                p = tl.load(parameters + place, is_k[:, None] & is_dim[None, :], 0.0)
                y = tl.dot(x.to(tl.float32), p, y, input_precision=PRECISION)
    return y


@triton.jit(do_not_specialize=VARYING)
def stage_rows(
    src_table,
    dst_table,
    nodes,
    run_begin,
    run_length,
    run_relation,
    codes,
    offsets,
    parameters,
    back_parameters,
    rows,
    losses,
    num_positions,
    DIM: tl.constexpr,
    RECIPROCAL: tl.constexpr,
    HAS_LINEAR: tl.constexpr,
    PRECISION: tl.constexpr,
    RUN: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Gather the rows of all positions and apply operators.

    Grid: runs, 2 sides, blocks of the dimension.

    Args:
        src_table: Rows of the sources' partition ``[N, DIM]``, float32 or bfloat16.
        dst_table: Rows of the destinations' partition.
        nodes: Row at every position, int32 ``[2, P]``.
        run_begin: First position of every run, int32 ``[R]``.
        run_length: Positions of every run.
        run_relation: Relation of every run, -1 for none.
        codes: Operator of every relation, int32.
        offsets: Where the parameters of every relation begin, int64.
        parameters: The operators' parameters, float32, flat.
        back_parameters: Those of queries from the destination.
        rows: Receives the rows, ``[2 or 4, P, DIM]``.
        losses: Receives zeros, float32 ``[2, P]``.
        num_positions: P.
        DIM: Length of a row.
        RECIPROCAL: Whether relations have two operators.
        HAS_LINEAR: Whether an operator may be linear.
        PRECISION: Of float32 products on tensor cores.
        RUN: Most positions of a run, at least 16.
        BLOCK_D: Columns per program.
        BLOCK_K: Columns per product.
    """
    run, side = tl.program_id(0), tl.program_id(1)
    begin = tl.load(run_begin + run).to(tl.int64)
    i = tl.arange(0, RUN)
    inside = i < tl.load(run_length + run)
    relation = tl.load(run_relation + run)
    place = side * num_positions.to(tl.int64) + begin + i
    at = tl.load(nodes + place, inside, 0).to(tl.int64)
    table = src_table
    own = parameters
    if side == 1:
        table = dst_table
        if RECIPROCAL:
            own = back_parameters
    d = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    edge = inside[:, None] & (d < DIM)[None, :]
    # Queries alone get a loss, but all positions are summed: the others must be zero.
    if tl.program_id(2) == 0:
        tl.store(losses + place, tl.zeros((RUN,), tl.float32), inside)
    is_operated = relation >= 0
    if not RECIPROCAL:
        is_operated = is_operated & (side == 1)
    target = rows + place[:, None] * DIM + d[None, :]
    if RECIPROCAL or not is_operated:
        x = tl.load(table + at[:, None] * DIM + d[None, :], edge, 0.0)
        tl.store(target, x, edge)
    if is_operated:
        y = operate(
            table,
            at,
            inside,
            d,
            own + tl.load(offsets + relation),
            tl.load(codes + relation),
            False,
            DIM,
            HAS_LINEAR,
            PRECISION,
            RUN,
            BLOCK_D,
            BLOCK_K,
        )
        if RECIPROCAL:
            # The operated rows are queries and lie behind the plain ones, which stay
            # candidates.
            target += 2 * num_positions.to(tl.int64) * DIM
        tl.store(target, y, edge)


@triton.jit(do_not_specialize=VARYING)
def measure_rows(
    rows,
    lengths,
    num_positions,
    DIM: tl.constexpr,
    UNIT: tl.constexpr,
    RUN: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Compute squared lengths of staged rows; with ``UNIT``, lengths, and divide by them.

    Grid: blocks of ``RUN`` positions, tensors. ``lengths`` is float32 ``[2 or 4, P]``.
    """
    i = tl.program_id(0) * RUN + tl.arange(0, RUN)
    inside = i < num_positions
    at = tl.program_id(1) * num_positions.to(tl.int64) + i
    square = tl.zeros((RUN,), tl.float32)
    for begin in range(0, DIM, BLOCK_D):
        d = begin + tl.arange(0, BLOCK_D)
        edge = inside[:, None] & (d < DIM)[None, :]
        x = tl.load(rows + at[:, None] * DIM + d[None, :], edge, 0.0).to(tl.float32)
        square += tl.sum(x * x, axis=1)
    if UNIT:
        square = tl.maximum(tl.sqrt(square), TINY)
        for begin in range(0, DIM, BLOCK_D):
            d = begin + tl.arange(0, BLOCK_D)
            edge = inside[:, None] & (d < DIM)[None, :]
            target = rows + at[:, None] * DIM + d[None, :]
            x = tl.load(target, edge, 0.0).to(tl.float32)
            tl.store(target, x / square[:, None], edge)
    tl.store(lengths + at, square, inside)
