"""Reading mapped files by address, so that one compiled loop serves any number of them.

A store has one file per partition; a tuple or a list of arrays would be compiled anew for
every number of partitions (and a list costs 3 to 4 times as much per element). A table of
addresses costs what one array does. Nothing is checked: callers own the memory and keep
it alive, and indices lie inside it.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


def _loader(bits: Any, result: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], bits.as_pointer())
        return builder.load(builder.gep(pointer, [args[1]]))

    return result(types.uint64, types.int64), generate


@intrinsic
def load_uint32(typing_context, address, index):  # type: ignore[no-untyped-def]
    """Read element ``index`` of the uint32 at ``address``."""
    return _loader(ir.IntType(32), types.uint32)


@intrinsic
def load_int64(typing_context, address, index):  # type: ignore[no-untyped-def]
    """Read element ``index`` of the int64 at ``address``."""
    return _loader(ir.IntType(64), types.int64)


@intrinsic
def load_float32(typing_context, address, index):  # type: ignore[no-untyped-def]
    """Read element ``index`` of the float32 at ``address``."""
    return _loader(ir.FloatType(), types.float32)


@intrinsic
def load_float64(typing_context, address, index):  # type: ignore[no-untyped-def]
    """Read element ``index`` of the float64 at ``address``."""
    return _loader(ir.DoubleType(), types.float64)


@intrinsic
def copy_bytes(typing_context, target, source, num_bytes):  # type: ignore[no-untyped-def]
    """Copy memory from one address to another; they must not overlap."""
    signature = types.void(types.uint64, types.uint64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        to, of = (builder.inttoptr(address, byte) for address in args[:2])
        cgutils.raw_memcpy(builder, to, of, args[2], 1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def address(typing_context, array):  # type: ignore[no-untyped-def]
    """Return where an array begins in memory."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.intp))

    return types.intp(array), generate


def _asker(locality: int) -> Any:
    signature = types.void(types.uint64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read, keep, data = word(0), word(locality), word(1)
        builder.call(function, [builder.inttoptr(args[0], byte), read, keep, data])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def prefetch(typing_context, address):  # type: ignore[no-untyped-def]
    """Ask for the cache line at ``address``; any address will do."""
    return _asker(3)


@intrinsic
def prefetch_far(typing_context, address):  # type: ignore[no-untyped-def]
    """Ask for the cache line at ``address``, but not in the first-level cache."""
    return _asker(2)
