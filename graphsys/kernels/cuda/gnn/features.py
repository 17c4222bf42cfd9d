"""Triton kernel: rows of features from a cache on the device, and those it lacks."""

# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl


@triton.jit(do_not_specialize=("num_rows",))
def combine_rows(
    where,
    table,
    missed,
    out,
    num_rows,
    WIDTH: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_F: tl.constexpr,
):
    """Write every row from where it is.

    Grid: blocks of rows, blocks of features.

    Args:
        where: Place in ``table``, or ``-1 - place`` in ``missed``, int32 ``[n]``.
        table: Cached rows ``[K, WIDTH]``, float32.
        missed: The others ``[m, WIDTH]``.
        out: Receives all ``[n, WIDTH]``.
        num_rows: n.
        WIDTH: Features.
        BLOCK_R: Rows per program.
        BLOCK_F: Features per program.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    f = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
    inside = i < num_rows
    edge = inside[:, None] & (f < WIDTH)[None, :]
    at = tl.load(where + i, inside, 0).to(tl.int64)
    is_cached = (at >= 0)[:, None]
    hot = tl.maximum(at, 0)[:, None] * WIDTH + f[None, :]
    cold = tl.maximum(-1 - at, 0)[:, None] * WIDTH + f[None, :]
    cached = tl.load(table + hot, edge & is_cached, 0.0)
    other = tl.load(missed + cold, edge & (at < 0)[:, None], 0.0)
    target = out + i[:, None] * WIDTH + f[None, :]
    tl.store(target, tl.where(is_cached, cached, other), edge)
