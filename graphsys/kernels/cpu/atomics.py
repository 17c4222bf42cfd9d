"""Atomic operations on array elements, which numba lacks on the CPU.

All are sequentially consistent and work on 32- and 64-bit integers and floats. Indices are
not checked and must not be negative.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from graphsys.kernels.jit import inline_jit

_ORDER = "seq_cst"


def _element(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(
        context, builder, array_type, view, [index], wraparound=False
    )


def _as_bits(builder: Any, dtype: Any, *values: Any) -> list[Any]:
    """Reinterpret floats as the integers of their width; integers pass unchanged."""
    if not isinstance(dtype, types.Float):
        return list(values)
    bits = ir.IntType(dtype.bitwidth)
    return [
        builder.bitcast(
            value,
            bits.as_pointer() if isinstance(value.type, ir.PointerType) else bits,
        )
        for value in values
    ]


@intrinsic
def compare_exchange(typing_context, array, index, expected, new):  # type: ignore[no-untyped-def]
    """Store ``new`` if the element still holds ``expected``'s bits; tell whether it did."""
    signature = types.boolean(array, types.intp, array.dtype, array.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, signature.args[0], args[0], args[1])
        pointer, old, value = _as_bits(
            builder, signature.args[0].dtype, pointer, args[2], args[3]
        )
        # By bits: floats that are equal may differ in them (0.0 and -0.0), and NaN equals
        # nothing.
        pair = builder.cmpxchg(pointer, old, value, _ORDER, _ORDER)
        return builder.zext(builder.extract_value(pair, 1), ir.IntType(1))

    return signature, generate


@intrinsic
def atomic_load(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Return an element that other threads change, read anew each time."""
    signature = array.dtype(array, types.intp)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        pointer = _element(context, builder, array_type, args[0], args[1])
        return builder.load_atomic(pointer, _ORDER, array_type.dtype.bitwidth // 8)

    return signature, generate


@intrinsic
def yield_processor(typing_context):  # type: ignore[no-untyped-def]
    """Let another thread of the machine run for a while: ``sched_yield``."""
    signature = types.int32()

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), ())
        function = cgutils.get_or_insert_function(builder.module, kind, "sched_yield")
        return builder.call(function, ())

    return signature, generate


@intrinsic
def atomic_add(typing_context, array, index, value):  # type: ignore[no-untyped-def]
    """Add ``value`` to the element and return what it held before."""
    signature = array.dtype(array, types.intp, array.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        pointer = _element(context, builder, array_type, args[0], args[1])
        operation = "fadd" if isinstance(array_type.dtype, types.Float) else "add"
        return builder.atomic_rmw(operation, pointer, args[2], _ORDER)

    return signature, generate


@intrinsic
def atomic_or(typing_context, array, index, bits):  # type: ignore[no-untyped-def]
    """Set ``bits`` in an integer element and return what it held before."""
    signature = array.dtype(array, types.intp, array.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, signature.args[0], args[0], args[1])
        return builder.atomic_rmw("or", pointer, args[2], _ORDER)

    return signature, generate


@inline_jit
def atomic_min(array: Any, i: Any, value: Any) -> bool:
    """Lower the element to ``value`` if that is smaller; tell whether it was."""
    old = array[i]
    while value < old:
        if compare_exchange(array, i, old, value):
            return True
        old = array[i]
    return False
