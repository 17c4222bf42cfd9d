"""Matrix products of a chunk: small, on rows at any stride, with no call of BLAS.

A product of 50 x 100 x 100 is too small for BLAS: checks, dispatch and packing cost almost
as much as the arithmetic. Here the operands stay where they are. A tile of the result, a
few rows by a few vectors, is held in registers while the depth is walked (Goto and van de
Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 2008); the left operand
is read number by number at any strides, so that a transposed view costs nothing. Depth is
walked in blocks, so that a panel of the right operand stays in the first-level cache.

Columns are cut into vectors; if they do not come out even, the last vector overlaps the one
before, and both hold the same numbers: no masks, no padding.
"""

from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from graphsys.kernels.cpu.embedding.vector_math import Floats
from graphsys.kernels.cpu.pointers import address
from graphsys.kernels.jit import compile_callback, lean_jit

_IS_WIDE: Final = bool(llvm.get_host_cpu_features().get("avx512f"))
LANES: Final = 16 if _IS_WIDE else 8
"""Floats in a vector."""

_ROWS: Final = 6 if _IS_WIDE else 4  # of a tile; 6 x 4 vectors take 24 of 32 registers,
_VECTORS: Final = 4 if _IS_WIDE else 3  # 4 x 3 take 12 of 16
_DEPTH: Final = 128  # rows of a panel: 128 * 64 * 4 B = 32 KiB

_FLOAT: Final = ir.FloatType()
_INT32: Final = ir.IntType(32)
_BYTES: Final = ir.IntType(8).as_pointer()
_LINE: Final = 64  # bytes
_VECTOR: Final = ir.VectorType(_FLOAT, LANES)
_SHUFFLE: Final = ir.VectorType(_INT32, LANES)
_ZERO: Final = ir.Constant(_VECTOR, [0.0] * LANES)


def _at(builder: Any, base: Any, offset: Any, kind: Any = _VECTOR) -> Any:
    return builder.inttoptr(builder.add(base, offset), kind.as_pointer())


def _row(builder: Any, base: Any, stride: Any, row: int) -> Any:
    return builder.add(base, builder.mul(stride, ir.Constant(stride.type, row)))


def _ask_for_next(builder: Any, place: Any) -> None:
    """Ask for the next line: the next rows of a transposed operand, each depth's own.

    They are as far apart as the rows of the original, too many streams for the processor's
    own guesses. For other operands it costs nothing to speak of.
    """
    kind = ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
    ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    where = builder.inttoptr(builder.add(place, ir.Constant(place.type, _LINE)), _BYTES)
    builder.call(ask, [where, *(ir.Constant(_INT32, x) for x in (0, 3, 1))])


def _emit_tile(builder: Any, rows: int, vectors: int, args: Any) -> None:
    """Emit ``c = a b``, or ``c += a b``, for a tile of ``rows`` by ``vectors``."""
    a, a_row, a_depth, b, b_row, c, c_row, last, depth, is_added = args
    multiply_add = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fma.v{LANES}f32"
    )
    # The last vector may overlap the one before, where columns do not come out even.
    offsets = [ir.Constant(a.type, 4 * v * LANES) for v in range(vectors - 1)] + [last]
    cells = [(r, v) for r in range(rows) for v in range(vectors)]
    # LLVM turns these into registers: a tile has no more cells than the machine has.
    sums = {cell: cgutils.alloca_once(builder, _VECTOR) for cell in cells}
    for cell in cells:
        builder.store(_ZERO, sums[cell])
    lefts = [_row(builder, a, a_row, r) for r in range(rows)]
    outs = [_row(builder, c, c_row, r) for r in range(rows)]
    with cgutils.for_range(builder, depth) as loop:
        right = builder.add(b, builder.mul(b_row, loop.index))
        left = builder.mul(a_depth, loop.index)
        panel = [builder.load(_at(builder, right, o), align=4) for o in offsets]
        _ask_for_next(builder, builder.add(lefts[0], left))
        for r in range(rows):
            x = builder.load(_at(builder, lefts[r], left, _FLOAT))
            x = builder.insert_element(_ZERO, x, ir.Constant(_INT32, 0))
            x = builder.shuffle_vector(x, _ZERO, ir.Constant(_SHUFFLE, [0] * LANES))
            for v in range(vectors):
                total = builder.call(multiply_add, [x, panel[v], builder.load(sums[r, v])])
                builder.store(total, sums[r, v])
    with builder.if_then(is_added):  # all are read before any is written: see the overlap
        for r, v in cells:
            old = builder.load(_at(builder, outs[r], offsets[v]), align=4)
            builder.store(builder.fadd(old, builder.load(sums[r, v])), sums[r, v])
    for r, v in cells:
        builder.store(builder.load(sums[r, v]), _at(builder, outs[r], offsets[v]), align=4)


def _emit_transpose(builder: Any, args: Any) -> None:
    """Emit the transpose of a square of LANES x LANES."""
    source, source_row, target, target_row = args
    zero = ir.Constant(source.type, 0)
    rows = [
        builder.load(_at(builder, _row(builder, source, source_row, r), zero), align=4)
        for r in range(LANES)
    ]
    step = 1
    while step < LANES:  # exchange the off-diagonal squares of this size
        upper = [k if not k & step else LANES + k - step for k in range(LANES)]
        lower = [k + step if not k & step else LANES + k for k in range(LANES)]
        for r in (r for r in range(LANES) if not r & step):
            x, y = rows[r], rows[r + step]
            rows[r] = builder.shuffle_vector(x, y, ir.Constant(_SHUFFLE, upper))
            rows[r + step] = builder.shuffle_vector(x, y, ir.Constant(_SHUFFLE, lower))
        step *= 2
    for r in range(LANES):
        place = _at(builder, _row(builder, target, target_row, r), zero)
        builder.store(rows[r], place, align=4)


@intrinsic
def _tile(
    _: Any,
    rows: Any,
    vectors: Any,
    a: Any,
    a_row: Any,
    a_depth: Any,
    b: Any,
    b_row: Any,
    c: Any,
    c_row: Any,
    last: Any,
    depth: Any,
    is_added: Any,
) -> Any:
    """Multiply one tile; addresses and strides in bytes, ``last`` of the last vector."""

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        num_rows, num_vectors, *rest = args
        for r in (_ROWS, 2, 1):
            wanted = ir.Constant(num_rows.type, r)
            with builder.if_then(builder.icmp_signed("==", num_rows, wanted)):
                for v in range(1, _VECTORS + 1):
                    wanted = ir.Constant(num_vectors.type, v)
                    with builder.if_then(builder.icmp_signed("==", num_vectors, wanted)):
                        _emit_tile(builder, r, v, rest)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 11, types.boolean), generate


@intrinsic
def _transpose_square(
    _: Any, source: Any, source_row: Any, target: Any, target_row: Any
) -> Any:
    """Transpose LANES x LANES floats; addresses and strides in bytes."""

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        _emit_transpose(builder, args)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 4), generate


@compile_callback(types.void(*[types.intp] * 11))
def _multiply_at(
    a: int,
    a_row: int,
    a_depth: int,
    b: int,
    b_row: int,
    c: int,
    c_row: int,
    num_rows: int,
    num_columns: int,
    depth: int,
    is_added: int,
) -> None:
    """Do :func:`multiply` for addresses and strides in bytes, of ``LANES`` columns on."""
    num_vectors = -(-num_columns // LANES)
    num_panels = -(-num_vectors // _VECTORS)
    for panel in range(num_panels):  # of even width: none is a lone vector that overlaps
        first = panel * num_vectors // num_panels
        vectors = (panel + 1) * num_vectors // num_panels - first
        column = 4 * first * LANES
        last = min(4 * (vectors - 1) * LANES, 4 * (num_columns - LANES) - column)
        for k in range(0, depth, _DEPTH):
            i = 0
            while i < num_rows:
                left = num_rows - i
                # Three sizes of tiles are compiled; what a full one leaves is done by two
                # rows or one.
                rows = _ROWS if left >= _ROWS else min(left, 2)
                _tile(
                    rows,
                    vectors,
                    a + i * a_row + k * a_depth,
                    a_row,
                    a_depth,
                    b + k * b_row + column,
                    b_row,
                    c + i * c_row + column,
                    c_row,
                    last,
                    min(_DEPTH, depth - k),
                    is_added != 0 or k > 0,
                )
                i += rows


@compile_callback(types.void(*[types.intp] * 6))
def _transpose_at(
    source: int,
    source_row: int,
    target: int,
    target_row: int,
    num_rows: int,
    num_columns: int,
) -> None:
    """Do :func:`transpose` for addresses and strides in bytes, of whole squares."""
    for row in range(0, num_rows, LANES):
        i = min(row, num_rows - LANES)  # the last squares overlap
        for column in range(0, num_columns, LANES):
            j = min(column, num_columns - LANES)
            _transpose_square(
                source + i * source_row + 4 * j,
                source_row,
                target + j * target_row + 4 * i,
                target_row,
            )


def _named(function: Any, name: str, count: int) -> Any:
    """Give compiled code a name that kernels call it by.

    A kernel contains all that it calls: with these two inside, each of the many kernels
    that multiply took 10 s to compile.
    """
    llvm.add_symbol(name, function.address)
    return types.ExternalFunction(name, types.void(*[types.intp] * count))


_multiply = _named(_multiply_at, "graphsys_multiply", 11)
_transpose = _named(_transpose_at, "graphsys_transpose", 6)


@lean_jit
def multiply(a: Floats, b: Floats, out: Floats, is_added: bool) -> None:
    """Write the product of two matrices, or add it.

    Args:
        a: Left operand ``[M, L]``, with any strides.
        b: Right operand ``[L, N]``, numbers of a row side by side.
        out: Receives the product ``[M, N]``, numbers of a row side by side.
        is_added: Whether it is added to what ``out`` holds.
    """
    num_rows, num_columns = out.shape
    depth = a.shape[1]
    if num_columns >= LANES and depth > 0:
        _multiply(
            address(a),
            a.strides[0],
            a.strides[1],
            address(b),
            b.strides[0],
            address(out),
            out.strides[0],
            num_rows,
            num_columns,
            depth,
            1 if is_added else 0,
        )
        return
    for i in range(num_rows):
        for j in range(num_columns):
            total = out[i, j] if is_added else np.float32(0.0)
            for k in range(depth):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@lean_jit
def transpose(a: Floats, out: Floats) -> None:
    """Write a matrix ``[M, N]`` transposed to ``[N, M]``, rows of both side by side."""
    num_rows, num_columns = a.shape
    if num_rows >= LANES and num_columns >= LANES:
        _transpose(
            address(a), a.strides[0], address(out), out.strides[0], num_rows, num_columns
        )
        return
    for i in range(num_rows):
        for j in range(num_columns):
            out[j, i] = a[i, j]


@lean_jit
def multiply_by_rows(a: Floats, b: Floats, packed: Floats, out: Floats) -> None:
    """Write the inner products of the rows of two matrices.

    Args:
        a: Rows ``[M, D]``.
        b: Rows ``[N, D]``.
        packed: Scratch for the rows of ``b``, transposed: at least ``N * D``, flat.
        out: Receives the products ``[M, N]``.
    """
    columns = packed[: b.size].reshape((b.shape[1], b.shape[0]))
    transpose(b, columns)
    multiply(a, columns, out, False)
