"""Asking for rows of a table before they are needed, which numba has no word for."""

from typing import Any, Final

import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from graphsys.kernels.cpu.pointers import address
from graphsys.kernels.jit import lean_inline_jit

_LINE: Final = 64  # bytes
_INT32: Final = ir.IntType(32)
_BYTES: Final = ir.IntType(8).as_pointer()


@intrinsic
def _prefetch_lines(_: Any, begin: Any, end: Any) -> Any:
    """Ask for the lines from one address to another, before they are needed."""

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
        prefetch = cgutils.get_or_insert_function(
            builder.module, kind, "llvm.prefetch.p0i8"
        )
        step = ir.Constant(args[0].type, _LINE)
        with cgutils.for_range_slice(builder, args[0], args[1], step) as (place, _):
            where = builder.inttoptr(place, _BYTES)
            # to be read and written, kept in all levels, data
            builder.call(prefetch, [where, *(ir.Constant(_INT32, x) for x in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


@lean_inline_jit
def prefetch_row(table: npt.NDArray[Any], row: int) -> None:
    """Ask for a row of a table, whose rows lie side by side, before it is needed."""
    begin = address(table) + row * table.strides[0]
    _prefetch_lines(begin, begin + table.strides[0])
