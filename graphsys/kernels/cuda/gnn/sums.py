"""Triton kernels: sums, means and maxima over the entries of rows, long rows shared out.

A row is cut into *pieces* of at most ``PIECE`` entries. The first piece of every row is
written to the row's own place in the result, the others, the *extras*, to places of their
own, and a second kernel adds them to their rows, in order. So a hub keeps as many programs
busy as it has pieces, nothing is added by atomics, and a result does not differ from run to
run. As there are no more than ``E // PIECE`` extras, the host starts as many programs
without having to know the degrees; those that are too many end at once.

The entries of row ``i`` are ``indptr[i]:indptr[i + 1]``; each names a row of ``x`` (its
place in ``indices``) and, where the rows are the transposed ones, the place of its weight
(in ``entry``). Extra ``e`` belongs to row ``extra_row[e]``, the number of rows if it is one
too many; the extras of row ``i`` are ``extra_begin[i]:extra_begin[i + 1]``.

A method of the kind of Merrill and Garland, "Merge-based parallel sparse matrix-vector
multiplication", SC 2016, cut by rows instead of by merge paths.

Legend: R rows, E entries, S sources, F features of a row of x, all heads together.
"""

# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl

VARYING = ("num_rows",)


@triton.jit
def find_piece(indptr, extra_begin, extra_row, num_rows, PIECE: tl.constexpr):
    """Return the row, the first entry and the end of this program's piece; -1: none."""
    p = tl.program_id(0).to(tl.int64)  # as many rows as 64 bits count
    row = p
    number = p * 0
    if extra_row is not None:  # noqa: SIM102  (known when compiled)
        if p >= num_rows:
            row = tl.load(extra_row + p - num_rows).to(tl.int64)
            if row < num_rows:
                number = 1 + p - num_rows - tl.load(extra_begin + row)
    begin = number
    end = number
    if row < num_rows:
        begin = tl.load(indptr + row) + number * PIECE
        end = tl.minimum(begin + PIECE, tl.load(indptr + row + 1))
    else:
        row = row * 0 - 1
    return row, begin, end


@triton.jit(do_not_specialize=VARYING)
def sum_pieces(
    indptr,
    indices,
    entry,
    weight,
    winner,
    x,
    out,
    parts,
    extra_begin,
    extra_row,
    num_rows,
    WIDTH: tl.constexpr,
    HEADS: tl.constexpr,
    HAS_INDICES: tl.constexpr,
    HAS_ENTRY: tl.constexpr,
    HAS_WEIGHT: tl.constexpr,
    HAS_WINNER: tl.constexpr,
    IS_MEAN: tl.constexpr,
    PIECE: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_F: tl.constexpr,
):
    """Sum the rows of ``x`` that the entries of a piece name, each times its weight.

    Grid: rows and extras, blocks of features.

    Args:
        indptr: Row offsets, int64 ``[R + 1]``.
        indices: Rows of ``x``, int32 ``[E]``; without ``HAS_INDICES`` an entry names its
            own place.
        entry: Place of each entry's weights, int32 ``[E]``; without ``HAS_ENTRY`` in order.
        weight: ``[E, HEADS]``.
        winner: With ``HAS_WINNER`` only entries count whose place it is ``[S, F]``, int32.
        x: ``[S, F]``, of any float type.
        out: Receives the sums of first pieces ``[R, F]``, float32 or float64, in which they
            are made.
        parts: Receives those of extras.
        extra_begin: First extra of every row, int32 ``[R + 1]``.
        extra_row: Row of every extra, int32.
        num_rows: R.
        WIDTH: F.
        HEADS: Heads, which share F evenly.
        HAS_INDICES: See ``indices``.
        HAS_ENTRY: See ``entry``.
        HAS_WEIGHT: Whether there are weights.
        HAS_WINNER: See ``winner``.
        IS_MEAN: Whether to divide by the entries of the row.
        PIECE: Most entries of a piece.
        BLOCK_E: Entries per turn.
        BLOCK_F: Features per program.
    """
    row, begin, end = find_piece(indptr, extra_begin, extra_row, num_rows, PIECE)
    if row >= 0:
        f = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
        is_f = f < WIDTH
        acc = tl.zeros((BLOCK_E, BLOCK_F), out.dtype.element_ty)
        for first in range(begin, end, BLOCK_E):
            k = first + tl.arange(0, BLOCK_E)
            inside = k < end
            edge = inside[:, None] & is_f[None, :]
            source = k.to(tl.int64)
            if HAS_INDICES:
                source = tl.load(indices + k, inside, 0).to(tl.int64)
            place = k.to(tl.int64)
            if HAS_ENTRY:
                place = tl.load(entry + k, inside, 0).to(tl.int64)
            at = source[:, None] * WIDTH + f[None, :]
            if HAS_WINNER:
                edge = edge & (tl.load(winner + at, edge, -1) == place[:, None])
            value = tl.load(x + at, edge, 0.0).to(out.dtype.element_ty)
            if HAS_WEIGHT:
                head = place[:, None] * HEADS + (f // (WIDTH // HEADS))[None, :]
                value *= tl.load(weight + head, edge, 0.0).to(out.dtype.element_ty)
            acc += value
        total = tl.sum(acc, axis=0)
        if IS_MEAN:
            length = tl.load(indptr + row + 1) - tl.load(indptr + row)
            total = total / tl.maximum(length, 1).to(out.dtype.element_ty)
        p = tl.program_id(0).to(tl.int64)
        if p < num_rows:
            tl.store(out + p * WIDTH + f, total, is_f)
        elif parts is not None:
            tl.store(parts + (p - num_rows) * WIDTH + f, total, is_f)


@triton.jit(do_not_specialize=VARYING)
def add_extras(
    out,
    parts,
    extra_begin,
    extra_row,
    num_rows,
    WIDTH: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_F: tl.constexpr,
):
    """Add the sums of extras to those of their rows, in order.

    Grid: extras, blocks of features; the first extra of a row adds all of them. Arguments
    as of :func:`sum_pieces`.
    """
    e = tl.program_id(0)
    row = tl.load(extra_row + e).to(tl.int64)
    if row < num_rows:  # noqa: SIM102  (the second one loads by the first)
        if tl.load(extra_begin + row) == e:
            f = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
            is_f = f < WIDTH
            acc = tl.zeros((BLOCK_E, BLOCK_F), out.dtype.element_ty)
            last = tl.load(extra_begin + row + 1)
            for first in range(e, last, BLOCK_E):
                k = first + tl.arange(0, BLOCK_E)
                edge = (k < last)[:, None] & is_f[None, :]
                at = k.to(tl.int64)[:, None] * WIDTH + f[None, :]
                acc += tl.load(parts + at, edge, 0.0)
            target = out + row * WIDTH + f
            total = tl.load(target, is_f, 0.0) + tl.sum(acc, axis=0)
            tl.store(target, total, is_f)


@triton.jit(do_not_specialize=VARYING)
def max_pieces(
    indptr,
    indices,
    x,
    out,
    winner,
    parts,
    part_winner,
    extra_begin,
    extra_row,
    num_rows,
    WIDTH: tl.constexpr,
    PIECE: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_F: tl.constexpr,
):
    """Find the largest value of each feature in a piece, and the first entry that has it.

    Grid and arguments as of :func:`sum_pieces`; ``winner`` and ``part_winner`` receive
    places of entries, int32, -1 for a row without any, whose maximum is 0.
    """
    row, begin, end = find_piece(indptr, extra_begin, extra_row, num_rows, PIECE)
    if row >= 0:
        f = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
        is_f = f < WIDTH
        best = tl.full((BLOCK_F,), float("-inf"), out.dtype.element_ty)
        at = tl.full((BLOCK_F,), -1, tl.int32)
        for first in range(begin, end, BLOCK_E):
            k = first + tl.arange(0, BLOCK_E)
            inside = k < end
            edge = inside[:, None] & is_f[None, :]
            source = tl.load(indices + k, inside, 0).to(tl.int64)
            place = source[:, None] * WIDTH + f[None, :]
            value = tl.load(x + place, edge, float("-inf")).to(out.dtype.element_ty)
            most, which = tl.max(value, axis=0, return_indices=True)
            is_better = (most > best) | (at < 0)
            best = tl.where(is_better, most, best)
            at = tl.where(is_better, (first + which).to(tl.int32), at)
        best = tl.where(at < 0, 0.0, best)
        p = tl.program_id(0).to(tl.int64)
        if p < num_rows:
            tl.store(out + p * WIDTH + f, best, is_f)
            tl.store(winner + p * WIDTH + f, at, is_f)
        elif parts is not None:
            tl.store(parts + (p - num_rows) * WIDTH + f, best, is_f)
            tl.store(part_winner + (p - num_rows) * WIDTH + f, at, is_f)


@triton.jit(do_not_specialize=VARYING)
def max_extras(
    out,
    winner,
    parts,
    part_winner,
    extra_begin,
    extra_row,
    num_rows,
    WIDTH: tl.constexpr,
    BLOCK_F: tl.constexpr,
):
    """Let the maxima of extras replace smaller ones of their rows, in order.

    Grid and arguments as of :func:`add_extras`.
    """
    e = tl.program_id(0)
    row = tl.load(extra_row + e).to(tl.int64)
    if row < num_rows:  # noqa: SIM102  (the second one loads by the first)
        if tl.load(extra_begin + row) == e:
            f = tl.program_id(1) * BLOCK_F + tl.arange(0, BLOCK_F)
            is_f = f < WIDTH
            target = row * WIDTH + f
            best = tl.load(out + target, is_f, 0.0)
            at = tl.load(winner + target, is_f, -1)
            for k in range(e, tl.load(extra_begin + row + 1)):
                place = (row * 0 + k) * WIDTH + f  # row is int64, k may be Python's
                value = tl.load(parts + place, is_f, 0.0)
                is_better = value > best
                best = tl.where(is_better, value, best)
                at = tl.where(is_better, tl.load(part_winner + place, is_f, -1), at)
            tl.store(out + target, best, is_f)
            tl.store(winner + target, at, is_f)
