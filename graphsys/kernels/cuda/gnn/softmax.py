"""Triton kernels: softmax within rows, whose sums go over pieces of rows.

Pieces, extras and letters are those of :mod:`graphsys.kernels.cuda.gnn.sums`. A pass over
pieces finds the largest score and the sum of exponentials at once (online softmax: Milakov
and Gimelshein, "Online normalizer calculation for softmax", 2018); a pass over entries
divides.
"""

# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl

from graphsys.kernels.cuda.gnn.sums import find_piece

VARYING = ("num_edges", "num_rows")


@triton.jit(do_not_specialize=VARYING)
def softmax_pieces(
    indptr,
    scores,
    highest,
    total,
    parts,
    extra_begin,
    extra_row,
    num_rows,
    HEADS: tl.constexpr,
    PIECE: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """Find the largest score of a piece, and the sum of exponentials relative to it.

    Grid: rows and extras, blocks of heads.

    Args:
        indptr: Row offsets, int64 ``[R + 1]``.
        scores: ``[E, HEADS]``.
        highest: Receives the largest ``[R, HEADS]``, float32 or float64.
        total: Receives the sums ``[R, HEADS]``.
        parts: Receives both of the extras ``[X, 2, HEADS]``.
        extra_begin: First extra of every row, int32 ``[R + 1]``.
        extra_row: Row of every extra, int32.
        num_rows: R.
        HEADS: Heads.
        PIECE: Most entries of a piece.
        BLOCK_E: Entries per turn.
        BLOCK_H: Heads per program.
    """
    row, begin, end = find_piece(indptr, extra_begin, extra_row, num_rows, PIECE)
    if row >= 0:
        h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
        is_h = h < HEADS
        most = tl.full((BLOCK_H,), float("-inf"), highest.dtype.element_ty)
        acc = tl.zeros((BLOCK_H,), highest.dtype.element_ty)
        for first in range(begin, end, BLOCK_E):
            k = (first + tl.arange(0, BLOCK_E)).to(tl.int64)
            inside = k < end
            # heads that are too many hold 0, so that nothing is made of two infinities
            value = tl.load(
                scores + k[:, None] * HEADS + h[None, :],
                inside[:, None] & is_h[None, :],
                0.0,
            ).to(highest.dtype.element_ty)
            value = tl.where(inside[:, None], value, float("-inf"))
            new = tl.maximum(most, tl.max(value, axis=0))
            acc = acc * tl.exp(most - new) + tl.sum(tl.exp(value - new[None, :]), axis=0)
            most = new
        p = tl.program_id(0).to(tl.int64)
        if p < num_rows:
            tl.store(highest + p * HEADS + h, most, is_h)
            tl.store(total + p * HEADS + h, acc, is_h)
        elif parts is not None:
            target = parts + 2 * (p - num_rows) * HEADS + h
            tl.store(target, most, is_h)
            tl.store(target + HEADS, acc, is_h)


@triton.jit(do_not_specialize=VARYING)
def softmax_extras(
    highest,
    total,
    parts,
    extra_begin,
    extra_row,
    num_rows,
    HEADS: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """Merge what extras found into their rows, in order.

    Grid: extras, blocks of heads; the first extra of a row merges all of them.
    """
    e = tl.program_id(0)
    row = tl.load(extra_row + e).to(tl.int64)
    if row < num_rows:  # noqa: SIM102  (the second one loads by the first)
        if tl.load(extra_begin + row) == e:
            h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
            is_h = h < HEADS
            most = tl.load(highest + row * HEADS + h, is_h, 0.0)
            acc = tl.load(total + row * HEADS + h, is_h, 0.0)
            for k in range(e, tl.load(extra_begin + row + 1)):
                source = parts + (row * 0 + k) * 2 * HEADS + h  # row is int64
                other = tl.load(source, is_h, 0.0)
                added = tl.load(source + HEADS, is_h, 0.0)
                new = tl.maximum(most, other)
                acc = acc * tl.exp(most - new) + added * tl.exp(other - new)
                most = new
            tl.store(highest + row * HEADS + h, most, is_h)
            tl.store(total + row * HEADS + h, acc, is_h)


@triton.jit(do_not_specialize=VARYING)
def softmax_entries(
    row_of,
    scores,
    highest,
    total,
    out,
    num_edges,
    HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the share of every entry in its row ``[E, HEADS]``; grid: blocks of numbers."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    k = at // HEADS
    inside = k < num_edges
    place = tl.load(row_of + k, inside, 0).to(tl.int64) * HEADS + at % HEADS
    score = tl.load(scores + at, inside, 0.0).to(out.dtype.element_ty)
    share = tl.exp(score - tl.load(highest + place, inside, 0.0))
    tl.store(out + at, share / tl.load(total + place, inside, 1.0), inside)


@triton.jit(do_not_specialize=VARYING)
def softmax_gradient(
    row_of, shares, grad, total, out, num_edges, HEADS: tl.constexpr, BLOCK: tl.constexpr
):
    """Write ``share * (grad - total)``, total being the row's sum of ``share * grad``.

    Grid: blocks of numbers.
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    k = at // HEADS
    inside = k < num_edges
    place = tl.load(row_of + k, inside, 0).to(tl.int64) * HEADS + at % HEADS
    share = tl.load(shares + at, inside, 0.0)
    g = tl.load(grad + at, inside, 0.0).to(out.dtype.element_ty)
    value = share * (g - tl.load(total + place, inside, 0.0))
    tl.store(out + at, value, inside)
