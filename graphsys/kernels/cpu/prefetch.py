"""Asking the memory for what will be needed soon, which numba lacks."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_READ, _KEEP, _DATA = 0, 3, 1  # of LLVM's intrinsic: read, keep in all caches, no code


@intrinsic
def prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Bring an element's cache line near, without waiting for it.

    It changes nothing else, and an index behind the end does no harm.
    """
    signature = types.void(array, types.intp)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        view = context.make_array(array_type)(context, builder, args[0])
        pointer = cgutils.get_item_pointer(
            context, builder, array_type, view, [args[1]], wraparound=False
        )
        flag, place = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [place, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        flags = [flag(value) for value in (_READ, _KEEP, _DATA)]
        builder.call(function, [builder.bitcast(pointer, place), *flags])
        return context.get_dummy_value()

    return signature, generate
