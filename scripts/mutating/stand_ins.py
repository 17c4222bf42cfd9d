"""What kernels call that is no Python, in Python: numba's intrinsics, calls by address.

With NUMBA_DISABLE_JIT=1 a kernel is a plain function, and a mutant of it needs no compiler;
but an intrinsic refuses to be called. Here each does what its instructions do.
"""

import ctypes
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np


def install() -> None:
    """Have intrinsics work in plain Python, in this process."""
    import numba
    from numba.core import ccallback, extending

    extending._Intrinsic.__call__ = _call
    addresses: dict[int, Callable[..., Any]] = {}

    def pointer_call(returns: Any, *arguments: Any) -> Any:
        def call(address: int, *values: Any) -> Any:
            return addresses[int(address)](*values)

        return call

    def address_of(kernel: Callable[..., Any], call: Any) -> int:
        addresses[id(kernel)] = kernel
        return id(kernel)

    stub = types.ModuleType("graphsys.kernels.pointers")
    stub.pointer_call, stub.address_of = pointer_call, address_of  # type: ignore[attr-defined]
    sys.modules["graphsys.kernels.pointers"] = stub
    numbas = extending.overload

    def overload(stub: Any, *arguments: Any, **settings: Any) -> Any:
        if str(getattr(stub, "__module__", "")).startswith("graphsys."):
            return _overload(stub)
        # numba's own, where it compiles after all
        return numbas(stub, *arguments, **settings)

    extending.overload = numba.extending.overload = overload
    numbas_njit = numba.njit

    def njit(*arguments: Any, **settings: Any) -> Any:
        return numbas_njit(*arguments, **settings) if arguments else _uncompiled

    numba.njit = njit
    ccallback.CFunc = lambda *arguments: _Compiled()
    numba.core.types.ExternalFunction.__call__ = lambda function, *arguments: EXTERNALS[
        function.symbol
    ](*arguments)


def _call(intrinsic: Any, *arguments: Any) -> Any:
    name = intrinsic._defn.__name__
    if name not in STAND_INS:
        raise NotImplementedError(f"<intrinsic {name}> has no stand-in")
    return STAND_INS[name](*arguments)


def _load(kind: Any, result: Any) -> Callable[[Any, Any], Any]:
    size = ctypes.sizeof(kind)

    def load(address: Any, index: Any) -> Any:
        return result(kind.from_address(int(address) + size * int(index)).value)

    return load


def _compare_exchange(array: Any, index: Any, expected: Any, new: Any) -> bool:
    if array[index] != expected:
        return False
    array[index] = new
    return True


def _atomic_add(array: Any, index: Any, value: Any) -> Any:
    old = array[index]
    array[index] = old + value
    return old


def _atomic_or(array: Any, index: Any, bits: Any) -> Any:
    old = array[index]
    array[index] = old | bits
    return old


def _claimed_rows(bounds: Any, counter: Any) -> Any:
    for chunk in _claimed_range(0, len(bounds) - 1, 1, counter):
        yield from range(bounds[chunk], bounds[chunk + 1])


def _claimed_words(bounds: Any, counter: Any) -> Any:
    for chunk in _claimed_range(0, len(bounds) - 1, 1, counter):
        yield from range(bounds[chunk] >> 6, (bounds[chunk + 1] + 63) >> 6)


def _claimed_range(first: Any, stop: Any, block: Any, counter: Any) -> Any:
    while (begin := first + int(_atomic_add(counter, 0, block))) < stop:
        yield from range(begin, min(begin + block, stop))


def _copy_bytes(target: Any, source: Any, num_bytes: Any) -> None:
    ctypes.memmove(int(target), int(source), int(num_bytes))


def _nothing(*arguments: Any) -> None: ...


def _floats(address: Any, size: Any) -> Any:
    kind = ctypes.c_float * int(size)
    return np.frombuffer(kind.from_address(int(address)), dtype=np.float32)


def _begin(row: Any, bias: Any, nodes: Any, own: Any, size: Any) -> Any:
    if not size:
        return np.float32(-np.inf)
    kind = ctypes.c_int64 * int(size)
    numbers = np.frombuffer(kind.from_address(int(nodes)), dtype=np.int64)
    scores = _floats(row, size)
    scores += _floats(bias, size)
    scores[numbers == own] = -np.inf
    return np.fmax.reduce(scores, initial=np.float32(-np.inf))


def _exponentials(row: Any, shift: Any, size: Any) -> Any:
    if not size:
        return np.float32(0)
    scores = _floats(row, size)
    scores[:] = np.exp(scores - shift)
    scores[np.isnan(scores)] = 0
    return scores.sum(dtype=np.float32)


def _scale(row: Any, factor: Any, size: Any) -> None:
    if size:
        _floats(row, size)[:] *= factor


def _uncompiled(function: Any) -> Any:
    function.py_func = function
    return function


def _overload(stub: Any) -> Callable[[Any], Any]:
    """Have a stub choose by its arguments' types what to call."""
    import numba

    def decorate(choose: Any) -> Any:
        def call(*arguments: Any) -> Any:
            return choose(*map(numba.typeof, arguments))(*arguments)

        setattr(sys.modules[stub.__module__], stub.__name__, call)
        return choose

    return decorate


class _Compiled:
    """Stands for a function that is called by its symbol's name."""

    address = 0

    def compile(self) -> None: ...


def _matrix(address: Any, shape: tuple[int, int], strides: tuple[int, int]) -> Any:
    size = sum((n - 1) * abs(step) for n, step in zip(shape, strides, strict=True)) + 4
    memory = np.frombuffer((ctypes.c_byte * size).from_address(int(address)), np.uint8)
    return np.ndarray(shape, np.float32, memory, strides=strides)


def _multiply(
    a: Any,
    a_row: Any,
    a_depth: Any,
    b: Any,
    b_row: Any,
    c: Any,
    c_row: Any,
    num_rows: Any,
    num_columns: Any,
    depth: Any,
    is_added: Any,
) -> None:
    if not num_rows:
        return
    left = _matrix(a, (num_rows, depth), (a_row, a_depth))
    right = _matrix(b, (depth, num_columns), (b_row, 4))
    out = _matrix(c, (num_rows, num_columns), (c_row, 4))
    out[:] = (out if is_added else 0) + left @ right


def _transpose(
    a: Any, a_row: Any, out: Any, out_row: Any, num_rows: Any, num_columns: Any
) -> None:
    found = _matrix(a, (num_rows, num_columns), (a_row, 4))
    _matrix(out, (num_columns, num_rows), (out_row, 4))[:] = found.T


EXTERNALS: dict[str, Callable[..., Any]] = {
    "graphsys_multiply": _multiply,
    "graphsys_transpose": _transpose,
}
STAND_INS: dict[str, Callable[..., Any]] = {
    "load_uint32": _load(ctypes.c_uint32, int),
    "load_int64": _load(ctypes.c_int64, int),
    "load_float32": _load(ctypes.c_float, np.float32),
    "load_float64": _load(ctypes.c_double, np.float64),
    "copy_bytes": _copy_bytes,
    "address": lambda array: array.ctypes.data,
    "prefetch": _nothing,
    "prefetch_far": _nothing,
    "compare_exchange": _compare_exchange,
    "atomic_load": lambda array, index: array[index],
    "yield_processor": lambda: 0,
    "atomic_add": _atomic_add,
    "atomic_or": _atomic_or,
    "claimed_rows": _claimed_rows,
    "claimed_words": _claimed_words,
    "claimed_range": _claimed_range,
    "lowest_bit": lambda word: (int(word) & -int(word)).bit_length() - 1,
    "num_bits": lambda word: int(word).bit_count(),
    "_begin": _begin,
    "_exponentials": _exponentials,
    "_scale": _scale,
}
