"""Softmax over a row of scores, by whole vectors with masks at the end of the row.

With these the losses of a chunk take half the time of what numba makes of plain loops: it
takes vectors of half the width, keeps the maximum in memory, and walks the end of a row
number by number. Rows are 100 numbers long where chunks are of 50.

The exponential is ``embedding_math.fast_exp``, its numbers and its order of operations.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from graphsys.kernels.cpu.embedding import vector_math
from graphsys.kernels.cpu.embedding.products import LANES
from graphsys.kernels.cpu.embedding.vector_math import Floats
from graphsys.kernels.cpu.pointers import address
from graphsys.kernels.jit import lean_jit

Ints = npt.NDArray[np.int64]

_FLOAT: Final = ir.FloatType()
_INT32: Final = ir.IntType(32)
_VECTOR: Final = ir.VectorType(_FLOAT, LANES)
_WORDS: Final = ir.VectorType(_INT32, LANES)
_LONGS: Final = ir.VectorType(ir.IntType(64), LANES)
_MASKED: Final = ir.Constant(_VECTOR, [float("-inf")] * LANES)
_NAMES: Final = {_VECTOR: f"v{LANES}f32", _LONGS: f"v{LANES}i64"}


def _all(number: np.float32) -> Any:
    return ir.Constant(_VECTOR, [float(number)] * LANES)


def _spread(builder: Any, number: Any, kind: Any) -> Any:
    """Return a vector of a number that is known at run time."""
    start = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(start, number, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(first, start, ir.Constant(_WORDS, [0] * LANES))


def _call(builder: Any, name: str, returns: Any, *args: Any, flags: Any = ()) -> Any:
    kind = ir.FunctionType(returns, [arg.type for arg in args])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}")
    return builder.call(function, args, fastmath=flags)


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return _call(builder, f"fma.v{LANES}f32", _VECTOR, a, b, c)


def _place(builder: Any, base: Any, at: Any, size: int) -> Any:
    place = builder.add(base, builder.mul(at, ir.Constant(at.type, size)))
    return builder.inttoptr(place, _VECTOR.as_pointer())


def _load(builder: Any, base: Any, at: Any, mask: Any, rest: Any) -> Any:
    """Load a vector from element ``at`` on; with a mask, ``rest`` where that is 0."""
    kind = rest.type
    place = _place(builder, base, at, 4 if kind == _VECTOR else 8)
    if mask is None:
        return builder.load(builder.bitcast(place, kind.as_pointer()), align=4)
    align = ir.Constant(_INT32, 4)
    name = f"masked.load.{_NAMES[kind]}.p0"
    return _call(builder, name, kind, place, align, mask, rest)


def _store(builder: Any, x: Any, base: Any, at: Any, mask: Any) -> None:
    place = _place(builder, base, at, 4)
    if mask is None:
        builder.store(x, place, align=4)
        return
    align, name = ir.Constant(_INT32, 4), f"masked.store.{_NAMES[_VECTOR]}.p0"
    _call(builder, name, ir.VoidType(), x, place, align, mask)


def _walk(builder: Any, size: Any, body: Callable[[Any, Any], None]) -> None:
    """Emit ``body(at, mask)`` for every vector of a row, the mask for the last one only.

    A masked store is not forwarded to a load that follows soon.
    """
    begin, step = ir.Constant(size.type, 0), ir.Constant(size.type, LANES)
    whole = builder.and_(size, ir.Constant(size.type, -LANES))
    with cgutils.for_range_slice(builder, begin, whole, step) as (at, _):
        body(at, None)
    left = builder.trunc(builder.sub(size, whole), _INT32)
    with builder.if_then(builder.icmp_signed(">", left, ir.Constant(_INT32, 0))):
        numbers = ir.Constant(_WORDS, list(range(LANES)))
        body(whole, builder.icmp_signed("<", numbers, _spread(builder, left, _WORDS)))


def _exp(builder: Any, x: Any) -> Any:
    """Emit ``fast_exp`` of what is at most 0."""
    number = {name: _all(getattr(vector_math, name)) for name in _CONSTANTS}
    lowest = number["_LOWEST"]
    is_large = builder.fcmp_ordered(">", x, lowest)
    x = builder.select(is_large, x, lowest)
    shifted = _multiply_add(builder, x, number["_LOG2_E"], number["_ROUND"])
    whole = builder.fneg(builder.fsub(shifted, number["_ROUND"]))
    rest = _multiply_add(builder, whole, number["_LN2_HIGH"], x)
    rest = _multiply_add(builder, whole, number["_LN2_LOW"], rest)
    poly = number["_C0"]
    for name in _CONSTANTS[-5:]:
        poly = _multiply_add(builder, poly, rest, number[name])
    poly = _multiply_add(builder, poly, builder.fmul(rest, rest), rest)
    poly = builder.fadd(poly, _all(np.float32(1.0)))
    bits = builder.shl(builder.bitcast(shifted, _WORDS), ir.Constant(_WORDS, [23] * LANES))
    bits = builder.add(bits, ir.Constant(_WORDS, [0x3F800000] * LANES))
    power = builder.fmul(poly, builder.bitcast(bits, _VECTOR))
    return builder.select(is_large, power, _all(np.float32(0.0)))


_CONSTANTS: Final = (
    "_LOWEST",
    "_LOG2_E",
    "_ROUND",
    "_LN2_HIGH",
    "_LN2_LOW",
    "_C0",
    "_C1",
    "_C2",
    "_C3",
    "_C4",
    "_C5",
)


@intrinsic
def _begin(_: Any, row: Any, bias: Any, nodes: Any, own: Any, size: Any) -> Any:
    """Add biases and mask the node ``own``; return the maximum. Arrays by address."""

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        row, bias, nodes, own, size = args
        best = cgutils.alloca_once_value(builder, _MASKED)
        owns = _spread(builder, own, _LONGS)

        def body(at: Any, mask: Any) -> None:
            x = _load(builder, row, at, mask, _MASKED)
            x = builder.fadd(x, _load(builder, bias, at, mask, _all(np.float32(0.0))))
            other = ir.Constant(_LONGS, [0] * LANES)
            other = _load(builder, nodes, at, mask, other)
            x = builder.select(builder.icmp_signed("==", other, owns), _MASKED, x)
            _store(builder, x, row, at, mask)
            kept = builder.load(best)
            larger = builder.fcmp_ordered(">", x, kept)
            builder.store(builder.select(larger, x, kept), best)

        _walk(builder, size, body)
        name = f"vector.reduce.fmax.v{LANES}f32"
        return _call(builder, name, _FLOAT, builder.load(best), flags=("nnan",))

    return types.float32(*[types.intp] * 3, types.int64, types.intp), generate


@intrinsic
def _exponentials(_: Any, row: Any, shift: Any, size: Any) -> Any:
    """Replace every x by exp(x - shift); return their sum. The row by address."""

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        row, shift, size = args
        zero = _all(np.float32(0.0))
        total = cgutils.alloca_once_value(builder, zero)
        shifts = _spread(builder, shift, _VECTOR)

        def body(at: Any, mask: Any) -> None:
            x = builder.fsub(_load(builder, row, at, mask, _MASKED), shifts)
            x = _exp(builder, x)
            _store(builder, x, row, at, mask)
            builder.store(builder.fadd(builder.load(total), x), total)

        _walk(builder, size, body)
        name, zero = f"vector.reduce.fadd.v{LANES}f32", ir.Constant(_FLOAT, 0.0)
        return _call(builder, name, _FLOAT, zero, builder.load(total), flags=("reassoc",))

    return types.float32(types.intp, types.float32, types.intp), generate


@intrinsic
def _scale(_: Any, row: Any, factor: Any, size: Any) -> Any:
    """Multiply every number of a row, which is given by address."""

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        row, factor, size = args
        factors = _spread(builder, factor, _VECTOR)

        def body(at: Any, mask: Any) -> None:
            x = _load(builder, row, at, mask, _all(np.float32(0.0)))
            _store(builder, builder.fmul(x, factors), row, at, mask)

        _walk(builder, size, body)
        return context.get_dummy_value()

    return types.void(types.intp, types.float32, types.intp), generate


@lean_jit
def begin_row(row: Floats, bias: Floats, nodes: Ints, own: int) -> np.float32:
    """Add biases to scores and mask one node.

    Args:
        row: Scores ``[K]``; those of ``own`` become -inf.
        bias: Added to them ``[K]``.
        nodes: Whose they are ``[K]``.
        own: The node.

    Returns:
        The largest score after that, -inf without any; those that are no number are not
        looked at.
    """
    return np.float32(
        _begin(address(row), address(bias), address(nodes), np.int64(own), row.size)
    )


@lean_jit
def exp_shifted(row: Floats, shift: np.float32) -> np.float32:
    """Replace every x of the row by exp(x - shift), which x may not exceed; return the sum.

    What is no number becomes 0.
    """
    return np.float32(_exponentials(address(row), np.float32(shift), row.size))


@lean_jit
def scale(row: Floats, factor: np.float32) -> None:
    """Multiply a row by a number."""
    _scale(address(row), np.float32(factor), row.size)
