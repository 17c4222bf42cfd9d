"""Triton kernels: both ends of every entry combined, and GATv2's gradients.

Programs take blocks of entries, however long the rows are, so nothing has to be balanced;
the gradient by row goes over pieces of rows as in :mod:`graphsys.kernels.cuda.gnn.sums`,
whose letters and arguments these are. ``row_of`` is the row of every entry, int32 ``[E]``.
"""

# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl

from graphsys.kernels.cuda.gnn.sums import find_piece

VARYING = ("num_edges", "num_rows", "slope", "share")


@triton.jit(do_not_specialize=VARYING)
def dot_ends(
    row_of,
    indices,
    x,
    y,
    out,
    num_edges,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_F: tl.constexpr,
):
    """Multiply both ends of every entry, head by head: ``out[E, HEADS]``.

    Grid: blocks of entries, heads.

    Args:
        row_of: Row of every entry, int32 ``[E]``.
        indices: Sources, int32 ``[E]``.
        x: Of the sources ``[S, HEADS, SIZE]``.
        y: Of the rows ``[R, HEADS, SIZE]``.
        out: Receives the inner products, float32 or float64.
        num_edges: E.
        HEADS: Heads.
        SIZE: Features of a head.
        BLOCK_E: Entries per program.
        BLOCK_F: Features per turn.
    """
    k = tl.program_id(0).to(tl.int64) * BLOCK_E + tl.arange(0, BLOCK_E)
    inside = k < num_edges
    head = tl.program_id(1)
    source = tl.load(indices + k, inside, 0).to(tl.int64) * HEADS + head
    row = tl.load(row_of + k, inside, 0).to(tl.int64) * HEADS + head
    acc = tl.zeros((BLOCK_E, BLOCK_F), out.dtype.element_ty)
    for begin in range(0, SIZE, BLOCK_F):
        f = begin + tl.arange(0, BLOCK_F)
        edge = inside[:, None] & (f < SIZE)[None, :]
        a = tl.load(x + source[:, None] * SIZE + f[None, :], edge, 0.0)
        b = tl.load(y + row[:, None] * SIZE + f[None, :], edge, 0.0)
        acc += a.to(out.dtype.element_ty) * b.to(out.dtype.element_ty)
    tl.store(out + k * HEADS + head, tl.sum(acc, axis=1), inside)


@triton.jit(do_not_specialize=VARYING)
def add_ends(
    row_of, indices, x, y, out, num_edges, HEADS: tl.constexpr, BLOCK: tl.constexpr
):
    """Add a number of the source and one of the row: ``out[E, HEADS]``.

    Grid: blocks of ``BLOCK`` numbers. Arguments as of :func:`dot_ends`, one feature a head.
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    k = at // HEADS
    head = at % HEADS
    inside = k < num_edges
    source = tl.load(indices + k, inside, 0).to(tl.int64)
    row = tl.load(row_of + k, inside, 0).to(tl.int64)
    a = tl.load(x + source * HEADS + head, inside, 0.0).to(out.dtype.element_ty)
    b = tl.load(y + row * HEADS + head, inside, 0.0).to(out.dtype.element_ty)
    tl.store(out + at, a + b, inside)


@triton.jit(do_not_specialize=VARYING)
def attend_ends(
    row_of,
    indices,
    x,
    y,
    attention,
    out,
    slope,
    num_edges,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_F: tl.constexpr,
):
    """Compute GATv2's scores, ``attention . leaky_relu(x + y)``: ``out[E, HEADS]``.

    Grid and arguments as of :func:`dot_ends`; ``attention`` is ``[HEADS, SIZE]``, ``slope``
    that of the leaky ReLU below 0.
    """
    k = tl.program_id(0).to(tl.int64) * BLOCK_E + tl.arange(0, BLOCK_E)
    inside = k < num_edges
    head = tl.program_id(1)
    source = tl.load(indices + k, inside, 0).to(tl.int64) * HEADS + head
    row = tl.load(row_of + k, inside, 0).to(tl.int64) * HEADS + head
    acc = tl.zeros((BLOCK_E, BLOCK_F), out.dtype.element_ty)
    for begin in range(0, SIZE, BLOCK_F):
        f = begin + tl.arange(0, BLOCK_F)
        is_f = f < SIZE
        edge = inside[:, None] & is_f[None, :]
        a = tl.load(x + source[:, None] * SIZE + f[None, :], edge, 0.0)
        b = tl.load(y + row[:, None] * SIZE + f[None, :], edge, 0.0)
        value = a.to(out.dtype.element_ty) + b.to(out.dtype.element_ty)
        value = tl.where(value > 0, value, value * slope)
        c = tl.load(attention + head * SIZE + f, is_f, 0.0).to(out.dtype.element_ty)
        acc += c[None, :] * value
    tl.store(out + k * HEADS + head, tl.sum(acc, axis=1), inside)


@triton.jit(do_not_specialize=VARYING)
def attend_pieces(
    indptr,
    indices,
    entry,
    x,
    y,
    attention,
    grad,
    out,
    parts,
    extra_begin,
    extra_row,
    slope,
    num_rows,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    HAS_ENTRY: tl.constexpr,
    PIECE: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_F: tl.constexpr,
):
    """Sum the gradient of ``y`` over a piece; on transposed rows, x and y exchanged, of x.

    Grid and arguments as of :func:`graphsys.kernels.cuda.gnn.sums.sum_pieces`; ``grad`` is
    that of the scores ``[E, HEADS]``.
    """
    row, begin, end = find_piece(indptr, extra_begin, extra_row, num_rows, PIECE)
    if row >= 0:
        WIDTH: tl.constexpr = HEADS * SIZE
        f = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
        is_f = f < WIDTH
        own = tl.load(y + row.to(tl.int64) * WIDTH + f, is_f, 0.0)
        own = own.to(out.dtype.element_ty)
        acc = tl.zeros((BLOCK_E, BLOCK_F), out.dtype.element_ty)
        for first in range(begin, end, BLOCK_E):
            k = first + tl.arange(0, BLOCK_E)
            inside = k < end
            edge = inside[:, None] & is_f[None, :]
            source = tl.load(indices + k, inside, 0).to(tl.int64)
            place = k.to(tl.int64)
            if HAS_ENTRY:
                place = tl.load(entry + k, inside, 0).to(tl.int64)
            g = tl.load(grad + place[:, None] * HEADS + (f // SIZE)[None, :], edge, 0.0)
            g = g.to(out.dtype.element_ty)
            value = tl.load(x + source[:, None] * WIDTH + f[None, :], edge, 0.0)
            value = value.to(out.dtype.element_ty) + own[None, :]
            acc += tl.where(value > 0, g, g * slope)
        c = tl.load(attention + f, is_f, 0.0).to(out.dtype.element_ty)
        total = tl.sum(acc, axis=0) * c
        p = tl.program_id(0).to(tl.int64)
        if p < num_rows:
            tl.store(out + p * WIDTH + f, total, is_f)
        elif parts is not None:
            tl.store(parts + (p - num_rows) * WIDTH + f, total, is_f)


@triton.jit(do_not_specialize=VARYING)
def attend_vector(
    row_of,
    indices,
    x,
    y,
    grad,
    out,
    slope,
    num_edges,
    share,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_F: tl.constexpr,
):
    """Sum the gradient of ``attention`` over a share of all entries: ``out[shares, F]``.

    Grid: shares of ``share`` entries, blocks of features. Arguments as of
    :func:`attend_ends`.
    """
    WIDTH: tl.constexpr = HEADS * SIZE
    begin = tl.program_id(0).to(tl.int64) * share
    end = tl.minimum(begin + share, num_edges)
    f = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
    is_f = f < WIDTH
    acc = tl.zeros((BLOCK_E, BLOCK_F), out.dtype.element_ty)
    for first in range(begin, end, BLOCK_E):
        k = first + tl.arange(0, BLOCK_E)
        inside = k < end
        edge = inside[:, None] & is_f[None, :]
        source = tl.load(indices + k, inside, 0).to(tl.int64)
        row = tl.load(row_of + k, inside, 0).to(tl.int64)
        g = tl.load(grad + k[:, None] * HEADS + (f // SIZE)[None, :], edge, 0.0)
        a = tl.load(x + source[:, None] * WIDTH + f[None, :], edge, 0.0)
        b = tl.load(y + row[:, None] * WIDTH + f[None, :], edge, 0.0)
        value = a.to(out.dtype.element_ty) + b.to(out.dtype.element_ty)
        value = tl.where(value > 0, value, value * slope)
        acc += g.to(out.dtype.element_ty) * value
    target = out + tl.program_id(0).to(tl.int64) * WIDTH + f
    tl.store(target, tl.sum(acc, axis=0), is_f)
