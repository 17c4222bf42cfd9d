"""Rows in 16 or 8 bits: read as float32, rounded at random when they are written.

A table is float32, or uint16 with the bits of bfloat16 or float16, or int8. A step of
training is often smaller than the distance of two stored numbers, and rounding to the
nearest would lose it; rounded up with the probability of the rest, it is right on average
(Gupta et al., "Deep Learning with Limited Numerical Precision", ICML 2015). The draws are a
function of a key and the column, so a rerun rounds alike.

A row of int8 is ``D`` whole numbers from -127 to 127 and, in its last two bytes, what they
are multiplied by: the largest modulus over 127, rounded up to exponent and 8 bits of a
float32, as this has neither sign nor reason for more. It follows the largest number at each
update. Means of 20 seeds, MRR of UMLS: .950, and .956 with rows of float32; scales of four
bytes had .953, those that change only when they have to .949, and powers of two, as in
MXINT8 (OCP Microscaling Formats, 2023), .946: their steps are up to twice as wide.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba.core import types
from numba.extending import overload

from graphsys.kernels.cpu.embedding.vector_math import Floats, lean_fused_jit

Table = npt.NDArray[Any]
"""float32 or uint16 ``[N, D]``, or int8 ``[N, D + 2]``."""

_REBIAS: Final = np.uint32(112 << 23)  # between the exponents of float16 and float32
_INFINITE: Final = np.uint32(0x7C00)  # as float16
_SMALLEST: Final = np.float32(2.0**-14)  # normal float16
_QUANTUM: Final = np.float32(2.0**-24)  # of float16 below that
_QUANTA: Final = np.float32(2.0**24)
_STEPS: Final = np.float32(2.0**16)
_MOST: Final = np.float32(127.0)
_SMALLEST_SCALE: Final = np.uint32(0x100)  # 2 ** -126, whose inverse is finite
_NOT_FINITE: Final = np.uint32(0xFF00)


@lean_fused_jit
def noise(key: np.uint64, column: int) -> np.uint32:
    """Return 16 random bits: the finaliser of MurmurHash3, which loops can vectorize."""
    word = np.uint32(key) + np.uint32(column) * np.uint32(0x9E3779B9)
    word = np.uint32(word ^ (word >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    word = np.uint32(word)
    word = np.uint32(word ^ (word >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return np.uint32(np.uint32(word) >> np.uint32(16))


@lean_fused_jit
def widen_bfloat(bits: np.uint16) -> np.float32:
    """Return the number that a bfloat16 stands for."""
    return np.float32(np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32))


@lean_fused_jit
def narrow_bfloat(x: np.float32, draw: np.uint32) -> np.uint16:
    """Round to one of the two bfloat16 next to ``x``."""
    bits = np.uint32(np.float32(x).view(np.uint32))
    return np.uint16(np.uint32(bits + draw) >> np.uint32(16))


@lean_fused_jit
def widen_half(bits: np.uint16) -> np.float32:
    """Return the number that a float16 stands for."""
    word = np.uint32(bits)
    size = np.uint32(word & np.uint32(0x7FFF))
    whole = np.uint32(np.uint32(size << np.uint32(13)) + _REBIAS)
    # infinities and what is not a number keep the largest exponent
    whole = np.uint32(whole | np.uint32(0x7F800000)) if size >= _INFINITE else whole
    small = np.float32(np.int32(size)) * _QUANTUM
    x = small if size < np.uint32(0x400) else np.uint32(whole).view(np.float32)
    return np.float32(-x if word >= np.uint32(0x8000) else x)


@lean_fused_jit
def narrow_half(x: np.float32, draw: np.uint32) -> np.uint16:
    """Round to one of the two float16 next to ``x``; too large is infinite."""
    size = np.float32(abs(x))
    bits = np.uint32(np.float32(size).view(np.uint32))
    low = np.uint32(draw & np.uint32(0x1FFF))
    whole = np.uint32(np.uint32(bits + low - _REBIAS) >> np.uint32(13))
    scaled = size * _QUANTA if size < _SMALLEST else np.float32(0.0)
    small = np.uint32(np.int32(scaled))
    rest = np.uint32(np.int32((scaled - np.float32(small)) * _STEPS))
    small = np.uint32(small + (np.uint32(rest + draw) >> np.uint32(16)))
    result = small if size < _SMALLEST else whole
    result = result if result < _INFINITE else _INFINITE
    result = result if x == x else np.uint32(0x7E00)
    sign = np.uint32(np.uint32(np.float32(x).view(np.uint32)) >> np.uint32(16))
    return np.uint16(result | np.uint32(sign & np.uint32(0x8000)))


@lean_fused_jit
def _scale(table: Table, v: int) -> np.float32:
    """Return what the numbers of a row of int8 are multiplied by."""
    at = table.shape[1] - 2
    low, high = np.uint32(np.uint8(table[v, at])), np.uint32(np.uint8(table[v, at + 1]))
    code = np.uint32(low | np.uint32(high << np.uint32(8)))
    return np.float32(np.uint32(code << np.uint32(15)).view(np.float32))


@lean_fused_jit
def _scale_code(largest: np.float32) -> np.uint32:
    """Return the least scale, as 16 bits, by which 127 reach the largest modulus."""
    bits = np.uint32(np.float32(largest / _MOST).view(np.uint32))
    code = np.uint32(np.uint32(bits + np.uint32(0x7FFF)) >> np.uint32(15))
    return np.uint32(min(max(code, _SMALLEST_SCALE), _NOT_FINITE))


@lean_fused_jit
def narrow_byte(x: np.float32, draw: np.uint32) -> np.int8:
    """Round to one of the two whole numbers next to ``x``, at most 127 from 0."""
    whole = np.floor(np.float32(x + np.float32(np.int32(draw)) / _STEPS))
    return np.int8(min(max(whole, -_MOST), _MOST))


def row_size(table: Table) -> int:
    """Return how many numbers a row has; for kernels."""
    raise NotImplementedError


def load_row(table: Table, v: int, is_half: bool, out: Floats, i: int) -> None:
    """Write row ``v`` of a table to row ``i`` of ``out``; for kernels."""
    raise NotImplementedError


def add_row(
    table: Table, v: int | np.int64, is_half: bool, out: Floats, i: int, by: np.float32
) -> None:
    """Multiply row ``i`` of ``out`` and add row ``v`` of a table; for kernels."""
    raise NotImplementedError


def store_row(
    row: Floats,
    i: int,
    scale: np.float32,
    table: Table,
    v: int,
    is_half: bool,
    key: np.uint64,
) -> None:
    """Write row ``i`` of ``row``, scaled, to row ``v`` of a table; for kernels."""
    raise NotImplementedError


def move_row(
    table: Table,
    v: int,
    is_half: bool,
    step: Floats,
    i: int,
    by: np.float32,
    key: np.uint64,
) -> None:
    """Add row ``i`` of ``step``, multiplied, to row ``v`` of a table; for kernels.

    ``step`` is scratch: it may be changed.
    """
    raise NotImplementedError


@lean_fused_jit
def _load_floats(table: Table, v: int, is_half: bool, out: Floats, i: int) -> None:
    for k in range(table.shape[1]):
        out[i, k] = table[v, k]


@lean_fused_jit
def _load_bits(table: Table, v: int, is_half: bool, out: Floats, i: int) -> None:
    if is_half:
        for k in range(table.shape[1]):
            out[i, k] = widen_half(table[v, k])
    else:
        for k in range(table.shape[1]):
            out[i, k] = widen_bfloat(table[v, k])


@lean_fused_jit
def _add_floats(
    table: Table, v: int, is_half: bool, out: Floats, i: int, by: np.float32
) -> None:
    for k in range(table.shape[1]):
        out[i, k] = table[v, k] + out[i, k] * by


@lean_fused_jit
def _add_bits(
    table: Table, v: int, is_half: bool, out: Floats, i: int, by: np.float32
) -> None:
    if is_half:
        for k in range(table.shape[1]):
            out[i, k] = widen_half(table[v, k]) + out[i, k] * by
    else:
        for k in range(table.shape[1]):
            out[i, k] = widen_bfloat(table[v, k]) + out[i, k] * by


@lean_fused_jit
def _store_floats(
    row: Floats,
    i: int,
    scale: np.float32,
    table: Table,
    v: int,
    is_half: bool,
    key: np.uint64,
) -> None:
    for k in range(table.shape[1]):
        table[v, k] = row[i, k] * scale


@lean_fused_jit
def _store_bits(
    row: Floats,
    i: int,
    scale: np.float32,
    table: Table,
    v: int,
    is_half: bool,
    key: np.uint64,
) -> None:
    if is_half:
        for k in range(table.shape[1]):
            table[v, k] = narrow_half(row[i, k] * scale, noise(key, k))
    else:
        for k in range(table.shape[1]):
            table[v, k] = narrow_bfloat(row[i, k] * scale, noise(key, k))


@lean_fused_jit
def _move_floats(
    table: Table,
    v: int,
    is_half: bool,
    step: Floats,
    i: int,
    by: np.float32,
    key: np.uint64,
) -> None:
    for k in range(table.shape[1]):
        table[v, k] += step[i, k] * by


@lean_fused_jit
def _move_bits(
    table: Table,
    v: int,
    is_half: bool,
    step: Floats,
    i: int,
    by: np.float32,
    key: np.uint64,
) -> None:
    if is_half:
        for k in range(table.shape[1]):
            moved = widen_half(table[v, k]) + step[i, k] * by
            table[v, k] = narrow_half(moved, noise(key, k))
    else:
        for k in range(table.shape[1]):
            moved = widen_bfloat(table[v, k]) + step[i, k] * by
            table[v, k] = narrow_bfloat(moved, noise(key, k))


@lean_fused_jit
def _load_bytes(table: Table, v: int, is_half: bool, out: Floats, i: int) -> None:
    scale = _scale(table, v)
    for k in range(table.shape[1] - 2):
        out[i, k] = np.float32(table[v, k]) * scale


@lean_fused_jit
def _add_bytes(
    table: Table, v: int, is_half: bool, out: Floats, i: int, by: np.float32
) -> None:
    scale = _scale(table, v)
    for k in range(table.shape[1] - 2):
        out[i, k] = np.float32(table[v, k]) * scale + out[i, k] * by


@lean_fused_jit
def _store_bytes(
    row: Floats,
    i: int,
    scale: np.float32,
    table: Table,
    v: int,
    is_half: bool,
    key: np.uint64,
) -> None:
    size = table.shape[1] - 2
    largest = np.uint32(0)  # as bits, which are in order, and last what is no number
    for k in range(size):
        x = np.float32(abs(row[i, k] * scale))
        largest = max(largest, np.uint32(x.view(np.uint32)))
    code = _scale_code(np.float32(np.uint32(largest).view(np.float32)))
    table[v, size] = np.int8(np.uint8(code))
    table[v, size + 1] = np.int8(np.uint8(code >> np.uint32(8)))
    # The scale says it all: any number times it is no number, when the row is read.
    if code == _NOT_FINITE:
        for k in range(size):
            table[v, k] = np.int8(1)
        return
    factor = np.float32(scale / _scale(table, v))
    for k in range(size):
        table[v, k] = narrow_byte(row[i, k] * factor, noise(key, k))


@lean_fused_jit
def _move_bytes(
    table: Table,
    v: int,
    is_half: bool,
    step: Floats,
    i: int,
    by: np.float32,
    key: np.uint64,
) -> None:
    _add_bytes(table, v, is_half, step, i, by)
    _store_bytes(step, i, np.float32(1.0), table, v, is_half, key)


def _choose(table: Any, floats: Any, bits: Any, int8: Any) -> Any:
    if table.dtype == types.float32:
        return floats
    return int8 if table.dtype == types.int8 else bits


# numba wants the very same parameters as in what is returned, which has no annotations
@overload(row_size)
def _choose_size(table):  # type: ignore[no-untyped-def]
    extra = 2 * int(table.dtype == types.int8)
    return lambda table: table.shape[1] - extra


@overload(load_row)
def _choose_load(table, v, is_half, out, i):  # type: ignore[no-untyped-def]
    load = _choose(table, _load_floats, _load_bits, _load_bytes)
    return lambda table, v, is_half, out, i: load(table, v, is_half, out, i)


@overload(add_row)
def _choose_add(table, v, is_half, out, i, by):  # type: ignore[no-untyped-def]
    add = _choose(table, _add_floats, _add_bits, _add_bytes)
    return lambda table, v, is_half, out, i, by: add(table, v, is_half, out, i, by)


@overload(store_row)
def _choose_store(row, i, scale, table, v, is_half, key):  # type: ignore[no-untyped-def]
    store = _choose(table, _store_floats, _store_bits, _store_bytes)
    return lambda row, i, scale, table, v, is_half, key: store(
        row, i, scale, table, v, is_half, key
    )


@overload(move_row)
def _choose_move(table, v, is_half, step, i, by, key):  # type: ignore[no-untyped-def]
    move = _choose(table, _move_floats, _move_bits, _move_bytes)
    return lambda table, v, is_half, step, i, by, key: move(
        table, v, is_half, step, i, by, key
    )
