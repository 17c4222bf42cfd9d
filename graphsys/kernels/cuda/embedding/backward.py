"""Triton kernels: gradients at staged rows brought back to the rows of the tables.

Layout: :mod:`graphsys.kernels.cuda.embedding.rows`.
"""

# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl

from graphsys.kernels.cuda.embedding.rows import VARYING, operate


@triton.jit
def _cubic(base, at, inside, d, IS_COMPLEX: tl.constexpr, DIM: tl.constexpr):
    """Return the gradient of N3 without its coefficient, at columns ``d`` of rows."""
    half: tl.constexpr = DIM // 2
    edge = inside[:, None] & (d < DIM)[None, :]
    x = tl.load(base + at[:, None] * DIM + d[None, :], edge, 0.0).to(tl.float32)
    length = tl.abs(x)
    if IS_COMPLEX:
        other = tl.where(d < half, d + half, d - half)
        y = tl.load(base + at[:, None] * DIM + other[None, :], edge, 0.0).to(tl.float32)
        length = tl.sqrt(x * x + y * y)
    return 3.0 * length * x


@triton.jit(do_not_specialize=VARYING)
def unit_backward(
    rows,
    lengths,
    gradients,
    num_positions,
    DIM: tl.constexpr,
    RUN: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Turn gradients at unit rows into those at the rows before, in place.

    Grid: blocks of ``RUN`` positions, tensors.
    """
    i = tl.program_id(0) * RUN + tl.arange(0, RUN)
    inside = i < num_positions
    at = tl.program_id(1) * num_positions.to(tl.int64) + i
    # The part of a gradient along a unit row changes its length alone, and is taken out.
    along = tl.zeros((RUN,), tl.float32)
    for begin in range(0, DIM, BLOCK_D):
        d = begin + tl.arange(0, BLOCK_D)
        edge = inside[:, None] & (d < DIM)[None, :]
        place = at[:, None] * DIM + d[None, :]
        unit = tl.load(rows + place, edge, 0.0).to(tl.float32)
        along += tl.sum(unit * tl.load(gradients + place, edge, 0.0), axis=1)
    length = tl.load(lengths + at, inside, 1.0)
    for begin in range(0, DIM, BLOCK_D):
        d = begin + tl.arange(0, BLOCK_D)
        edge = inside[:, None] & (d < DIM)[None, :]
        place = at[:, None] * DIM + d[None, :]
        unit = tl.load(rows + place, edge, 0.0).to(tl.float32)
        g = tl.load(gradients + place, edge, 0.0) - along[:, None] * unit
        tl.store(gradients + place, g / length[:, None], edge)


@triton.jit(do_not_specialize=VARYING)
def operate_backward(
    src_table,
    dst_table,
    nodes,
    weights,
    run_begin,
    run_length,
    run_relation,
    codes,
    offsets,
    parameters,
    back_parameters,
    gradients,
    row_gradients,
    num_positions,
    n3,
    DIM: tl.constexpr,
    RECIPROCAL: tl.constexpr,
    HAS_LINEAR: tl.constexpr,
    HAS_N3: tl.constexpr,
    IS_COMPLEX: tl.constexpr,
    PRECISION: tl.constexpr,
    RUN: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Bring gradients at staged rows back to the rows of the tables.

    Grid: runs, 2 sides, blocks of the dimension. Arguments as of :func:`stage_rows`, and

    Args:
        weights: Weight of every positive, 0 elsewhere, float32 ``[P]``.
        gradients: At the staged rows, float32 ``[2 or 4, P, DIM]``.
        row_gradients: Receives those at the gathered rows, float32 ``[2, P, DIM]``.
        n3: Coefficient of N3, for one query.
        HAS_N3: Whether it is not 0.
        IS_COMPLEX: Whether N3 takes moduli of complex numbers.
    """
    run, side = tl.program_id(0), tl.program_id(1)
    begin = tl.load(run_begin + run).to(tl.int64)
    i = tl.arange(0, RUN)
    inside = i < tl.load(run_length + run)
    relation = tl.load(run_relation + run)
    place = side * num_positions.to(tl.int64) + begin + i
    table = src_table
    own = parameters
    if side == 1:
        table = dst_table
        if RECIPROCAL:
            own = back_parameters
    d = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    edge = inside[:, None] & (d < DIM)[None, :]
    is_operated = relation >= 0
    if not RECIPROCAL:
        is_operated = is_operated & (side == 1)
    g = tl.zeros((RUN, BLOCK_D), tl.float32)
    # With two operators a row is a candidate as it is, and a query behind its operator.
    if RECIPROCAL or not is_operated:
        g += tl.load(gradients + place[:, None] * DIM + d[None, :], edge, 0.0)
    if is_operated:
        at = place
        if RECIPROCAL:
            at += 2 * num_positions.to(tl.int64)
        g += operate(
            gradients,
            at,
            inside,
            d,
            own + tl.load(offsets + relation),
            tl.load(codes + relation),
            True,
            DIM,
            HAS_LINEAR,
            PRECISION,
            RUN,
            BLOCK_D,
            BLOCK_K,
        )
    if HAS_N3:
        node = tl.load(nodes + place, inside, 0).to(tl.int64)
        weight = tl.load(weights + begin + i, inside, 0.0)
        cubic = _cubic(table, node, inside, d, IS_COMPLEX, DIM)
        g += (2.0 * n3) * weight[:, None] * cubic
    tl.store(row_gradients + place[:, None] * DIM + d[None, :], g, edge)
