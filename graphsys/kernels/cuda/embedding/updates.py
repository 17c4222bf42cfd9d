"""Triton kernels: gradients summed per row, row-wise Adagrad, the loss of a batch.

Gradients are summed per distinct row of the batch by segments: the host sorts the
positions by row while the device trains the batch before, and one program sums the
segment of a row, takes the square, and writes the row once. Atomics would be simpler; but
Adagrad needs the whole sum before its square, a bfloat16 row must be rounded once and not
per addend, and the order of atomics differs from run to run.
"""

# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl

from graphsys.kernels.cuda.embedding.rows import VARYING

STABLE = tl.constexpr(1e-10)


@triton.jit(do_not_specialize=VARYING)
def update_rows(
    src_table,
    dst_table,
    src_state,
    dst_state,
    used,
    used_begin,
    members,
    row_gradients,
    flags,
    num_src,
    lr,
    seed,
    batch,
    DIM: tl.constexpr,
    ROUND: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Sum the gradients of every distinct row and take a step of row-wise Adagrad.

    Grid: distinct rows. A row whose gradient is not finite stays, and ``flags[batch]``
    becomes 1.

    Args:
        src_table: Rows of the sources' partition ``[N, DIM]``, float32 or bfloat16.
        dst_table: Rows of the destinations' partition; the same, if it is one.
        src_state: Running sums of mean squares, float32 ``[N]``.
        dst_state: Those of the destinations' partition.
        used: Distinct rows; from ``num_src`` on, of the destinations' partition.
        used_begin: Where the positions of each begin, int32 ``[U + 1]``.
        members: Positions by row, those of side 1 from P on, int32 ``[2 P]``.
        row_gradients: float32 ``[2 P, DIM]``.
        flags: int32, one per batch.
        num_src: Rows of the sources' partition.
        lr: Learning rate.
        seed: Of stochastic rounding.
        batch: Which flag.
        DIM: Length of a row.
        ROUND: Whether rows are bfloat16: rounded up or down at random (Philox), in
            proportion, so that steps below half a unit are not lost on average.
        BLOCK_M: Positions per turn.
        BLOCK_D: A power of 2, at least DIM.
    """
    slot = tl.program_id(0)
    row = tl.load(used + slot).to(tl.int64)
    table = src_table
    state = src_state
    if row >= num_src:
        table = dst_table
        state = dst_state
        row -= num_src
    d = tl.arange(0, BLOCK_D)
    is_dim = d < DIM
    first, last = tl.load(used_begin + slot), tl.load(used_begin + slot + 1)
    g = tl.zeros((BLOCK_D,), tl.float32)
    for begin in range(first, last, BLOCK_M):
        m = begin + tl.arange(0, BLOCK_M)
        member = tl.load(members + m, m < last, 0).to(tl.int64)
        edge = (m < last)[:, None] & is_dim[None, :]
        part = tl.load(row_gradients + member[:, None] * DIM + d[None, :], edge, 0.0)
        g += tl.sum(part, axis=0)
    square = tl.sum(g * g, axis=0) / DIM
    is_finite = square < float("inf")
    # Every such program writes the same 1: no atomic is needed.
    if not is_finite:
        tl.store(flags + batch, 1)
    if is_finite & (square > 0):
        total = tl.load(state + row) + square
        tl.store(state + row, total)
        target = table + row * DIM + d
        new = tl.load(target, is_dim, 0.0).to(tl.float32)
        new -= g * (lr / (tl.sqrt(total) + STABLE))
        if ROUND:
            bits = new.to(tl.uint32, bitcast=True)
            draw = tl.randint(seed, slot * BLOCK_D + d).to(tl.uint32, bitcast=True)
            # The random 16 bits carry with the probability of the bits that are cut off.
            bits = ((bits + (draw & 0xFFFF)) >> 16) << 16
            new = bits.to(tl.float32, bitcast=True)
        tl.store(target, new.to(table.dtype.element_ty), is_dim)


@triton.jit(do_not_specialize=VARYING)
def finish_batch(losses, flags, batch_losses, num_positions, batch, BLOCK: tl.constexpr):
    """Sum the losses of a batch into ``batch_losses[batch]``, float64; NaN if flagged.

    Grid: one program.
    """
    total = tl.zeros((BLOCK,), tl.float64)
    for begin in range(0, 2 * num_positions, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        total += tl.load(losses + i, i < 2 * num_positions, 0.0).to(tl.float64)
    loss = tl.sum(total, axis=0)
    loss = tl.where(tl.load(flags + batch) != 0, float("nan"), loss)
    tl.store(batch_losses + batch, loss)
