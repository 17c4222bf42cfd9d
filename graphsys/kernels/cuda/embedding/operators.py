"""Triton kernels: gradients and Adagrad steps of the operators' parameters.

Runs, sides and tensors are those of :mod:`graphsys.kernels.cuda.embedding.rows`. The
gradient of a relation's parameters is summed in two steps of a fixed order: over every run
(``sum_runs``), then over the runs of the relation, where the step is taken too
(``update_operators``). Matrices take one step, products over the runs (``update_linear``).
"""

# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl

from graphsys.kernels.cuda.embedding.rows import COMPLEX, DIAGONAL, LINEAR, VARYING
from graphsys.kernels.cuda.embedding.updates import STABLE

IDENTITY = tl.constexpr(0)


@triton.jit
def _step(target, state, g, flag, edge, lr):
    """Take a step of Adagrad, one state per parameter; flag what is not finite."""
    # One bad number must not reach the state, from which no later step would recover.
    is_finite = tl.abs(g) < float("inf")
    bad = tl.sum(tl.where(edge & (is_finite == 0), 1, 0))
    if bad > 0:
        tl.store(flag, 1)
    moving = edge & is_finite & (g != 0)
    total = tl.load(state, moving, 1.0) + g * g
    tl.store(state, total, moving)
    value = tl.load(target, moving, 0.0)
    tl.store(target, value - lr * g / (tl.sqrt(total) + STABLE), moving)


@triton.jit(do_not_specialize=VARYING)
def sum_runs(
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
    partial,
    num_positions,
    num_runs,
    share,
    DIM: tl.constexpr,
    RECIPROCAL: tl.constexpr,
    HAS_N3: tl.constexpr,
    RUN: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Sum what a run adds to the gradient of its operator; not for linear ones.

    Grid: runs, operators per relation, blocks of the dimension. Arguments as of
    ``operate_backward``, and

    Args:
        partial: Receives the sums, float32 ``[1 or 2, R, DIM]``.
        num_runs: R.
        share: Coefficient of N3 for the operator.
    """
    run, side = tl.program_id(0), tl.program_id(1)
    relation = tl.load(run_relation + run)
    if relation < 0:
        return
    code = tl.load(codes + relation)
    if (code == IDENTITY) | (code == LINEAR):
        return
    half: tl.constexpr = DIM // 2
    begin = tl.load(run_begin + run).to(tl.int64)
    i = tl.arange(0, RUN)
    inside = i < tl.load(run_length + run)
    d = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    edge = inside[:, None] & (d < DIM)[None, :]
    # With two operators each side's rows are the queries; the one operator acts on
    # destinations.
    table = src_table
    own = parameters
    if RECIPROCAL:
        tensor = 2 + side
        row_side = side
        if side == 1:
            table = dst_table
            own = back_parameters
    else:
        table = dst_table
        tensor = side + 1
        row_side = side + 1
    place = begin + i
    positions = num_positions.to(tl.int64)
    node = tl.load(nodes + row_side * positions + place, inside, 0).to(tl.int64)
    at = (tensor * positions + place)[:, None] * DIM + d[None, :]
    row = node[:, None] * DIM + d[None, :]
    is_high = d >= half
    step = tl.where(is_high, -half, half)  # to the other part of a complex number
    g = tl.load(gradients + at, edge, 0.0)
    summed = g
    if code == DIAGONAL:
        summed = g * tl.load(table + row, edge, 0.0).to(tl.float32)
    if code == COMPLEX:
        x = tl.load(table + row, edge, 0.0).to(tl.float32)
        x_other = tl.load(table + row + step[None, :], edge, 0.0).to(tl.float32)
        # A complex product mixes both parts, which lie half a row apart.
        g_other = tl.load(gradients + at + step[None, :], edge, 0.0)
        summed = tl.where(
            is_high[None, :], g * x_other - g_other * x, g * x + g_other * x_other
        )
    total = tl.sum(summed, axis=0)
    if HAS_N3:
        weight = tl.sum(tl.load(weights + place, inside, 0.0), axis=0)
        own += tl.load(offsets + relation)
        p = tl.load(own + d, d < DIM, 0.0)
        other = tl.load(own + d + step, (d < DIM) & (code + 0 * d == COMPLEX), 0.0)
        total += 3.0 * share * weight * tl.sqrt(p * p + other * other) * p
    target = partial + (side * num_runs.to(tl.int64) + run) * DIM + d
    tl.store(target, total, d < DIM)


@triton.jit(do_not_specialize=VARYING)
def update_operators(
    touched,
    touched_begin,
    touched_runs,
    codes,
    offsets,
    parameters,
    state,
    back_parameters,
    back_state,
    partial,
    flags,
    num_runs,
    lr,
    batch,
    DIM: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Add up the runs of every relation of the batch and take a step of Adagrad.

    Grid: relations of the batch, operators per relation, blocks of the dimension.

    Args:
        touched: Relations of the batch, int32 ``[T]``.
        touched_begin: Where the runs of each begin, int32 ``[T + 1]``.
        touched_runs: Runs by relation, int32.
        codes: Operator of every relation, int32.
        offsets: Where the parameters of every relation begin, int64.
        parameters: float32, flat.
        state: Running sums of squares of each.
        back_parameters: Of queries from the destination.
        back_state: Their sums.
        partial: From :func:`sum_runs`.
        flags: Receives 1 at ``batch`` for a gradient that is not finite.
        num_runs: R.
        lr: Learning rate of operators.
        batch: Which flag.
        DIM: Length of a row.
        BLOCK_R: Runs per turn.
        BLOCK_D: Columns per program.
    """
    t, side = tl.program_id(0), tl.program_id(1)
    relation = tl.load(touched + t)
    code = tl.load(codes + relation)
    if (code == IDENTITY) | (code == LINEAR):
        return
    d = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
    first, last = tl.load(touched_begin + t), tl.load(touched_begin + t + 1)
    g = tl.zeros((BLOCK_D,), tl.float32)
    for begin in range(first, last, BLOCK_R):
        r = begin + tl.arange(0, BLOCK_R)
        run = side * num_runs.to(tl.int64) + tl.load(touched_runs + r, r < last, 0)
        edge = (r < last)[:, None] & (d < DIM)[None, :]
        g += tl.sum(tl.load(partial + run[:, None] * DIM + d[None, :], edge, 0.0), axis=0)
    target = parameters
    own_state = state
    if side == 1:
        target = back_parameters
        own_state = back_state
    place = tl.load(offsets + relation) + d
    _step(target + place, own_state + place, g, flags + batch, d < DIM, lr)


@triton.jit(do_not_specialize=VARYING)
def update_linear(
    src_table,
    dst_table,
    nodes,
    weights,
    run_begin,
    run_length,
    touched,
    touched_begin,
    touched_runs,
    codes,
    offsets,
    parameters,
    state,
    back_parameters,
    back_state,
    gradients,
    flags,
    num_positions,
    share,
    lr,
    batch,
    DIM: tl.constexpr,
    RECIPROCAL: tl.constexpr,
    PRECISION: tl.constexpr,
    RUN: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Compute the gradients of the linear operators of the batch and take a step.

    Grid: relations of the batch, operators per relation, blocks of ``BLOCK_D`` x
    ``BLOCK_D`` of the matrix. Arguments as of the other kernels.
    """
    t, side = tl.program_id(0), tl.program_id(1)
    relation = tl.load(touched + t)
    if tl.load(codes + relation) != LINEAR:
        return
    blocks: tl.constexpr = (DIM + BLOCK_D - 1) // BLOCK_D
    e = tl.program_id(2) // blocks * BLOCK_D + tl.arange(0, BLOCK_D)
    d = tl.program_id(2) % blocks * BLOCK_D + tl.arange(0, BLOCK_D)
    i = tl.arange(0, RUN)
    # As in `sum_runs`: which rows the operator of this side acts on.
    table = src_table
    own = parameters
    own_state = state
    if RECIPROCAL:
        tensor = 2 + side
        row_side = side
        if side == 1:
            table = dst_table
            own = back_parameters
            own_state = back_state
    else:
        table = dst_table
        tensor = side + 1
        row_side = side + 1
    positions = num_positions.to(tl.int64)
    # Runs in their order, one program a block of the matrix: no atomics, one order of sums.
    total = tl.zeros((BLOCK_D, BLOCK_D), tl.float32)
    weight = 0.0
    for r in range(tl.load(touched_begin + t), tl.load(touched_begin + t + 1)):
        run = tl.load(touched_runs + r)
        place = tl.load(run_begin + run).to(tl.int64) + i
        inside = i < tl.load(run_length + run)
        node = tl.load(nodes + row_side * positions + place, inside, 0).to(tl.int64)
        x = tl.load(
            table + node[:, None] * DIM + d[None, :],
            inside[:, None] & (d < DIM)[None, :],
            0.0,
        ).to(tl.float32)
        g = tl.load(
            gradients + (tensor * positions + place)[None, :] * DIM + e[:, None],
            inside[None, :] & (e < DIM)[:, None],
            0.0,
        )
        total = tl.dot(g, x, total, input_precision=PRECISION)
        weight += tl.sum(tl.load(weights + place, inside, 0.0), axis=0)
    edge = (e < DIM)[:, None] & (d < DIM)[None, :]
    place = tl.load(offsets + relation) + e[:, None] * DIM + d[None, :]
    p = tl.load(own + place, edge, 0.0)
    total += 3.0 * share * weight * tl.abs(p) * p
    _step(own + place, own_state + place, total, flags + batch, edge, lr)
