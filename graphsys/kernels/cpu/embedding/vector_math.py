"""Vectorized inner loops of the embedding trainer: exp, sums, row norms.

These loops run over contiguous rows that sit in cache, so unlike the gather loops of the
other kernels they gain from relaxed floating point: ``contract`` allows fused
multiply-adds (exp: 3.4 -> 0.4 ns an element), ``reassoc`` allows vector sums. ``nnan`` and
``ninf`` are never given: a NaN must stay one to be found.

The exponential is Cephes' ``expf`` (range reduction by ln 2 in two parts, polynomial of
degree 7), without its branches; relative error below 1e-7.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import compile_kernel, compile_pointed_kernel

Floats = npt.NDArray[np.float32]
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def fused_jit(kernel: Kernel) -> Kernel:
    """Compile a loop whose multiply-adds may be fused."""
    return compile_kernel(kernel, fastmath={"contract", "nsz"})


def uncounted_jit(kernel: Kernel) -> Kernel:
    """Compile like :func:`fused_jit`, without counting references: see ``lean_jit``."""
    return compile_kernel(kernel, fastmath={"contract", "nsz"}, _nrt=False)


def pointed_jit(kernel: Kernel) -> Kernel:
    """Compile like :func:`fused_jit` what kernels call by its address only."""
    return compile_pointed_kernel(kernel, fastmath={"contract", "nsz"})


def reduce_jit(kernel: Kernel) -> Kernel:
    """Compile a reduction whose terms may be added in any (fixed) order."""
    return compile_kernel(kernel, fastmath={"contract", "nsz", "reassoc"})


def lean_fused_jit(kernel: Kernel) -> Kernel:
    """Compile like :func:`reduce_jit`, without counting references: see ``lean_jit``."""
    return compile_kernel(kernel, fastmath={"contract", "nsz", "reassoc"}, _nrt=False)


_LOWEST: Final = np.float32(-60.0)
_HIGHEST: Final = np.float32(88.0)
_LOG2_E: Final = np.float32(1.4426950408889634)
_LN2_HIGH: Final = np.float32(0.693359375)
_LN2_LOW: Final = np.float32(-2.12194440e-4)
_ROUND: Final = np.float32(12582912.0)  # 1.5 * 2**23: adding it rounds to an integer
_C0: Final = np.float32(1.9875691500e-4)
_C1: Final = np.float32(1.3981999507e-3)
_C2: Final = np.float32(8.3334519073e-3)
_C3: Final = np.float32(4.1665795894e-2)
_C4: Final = np.float32(1.6666665459e-1)
_C5: Final = np.float32(5.0000001201e-1)
_ONE: Final = np.float32(1.0)
_ZERO: Final = np.float32(0.0)
_TINY: Final = np.float32(1e-12)


@uncounted_jit
def fast_exp(x: np.float32) -> np.float32:
    """Return exp(x), x clipped to 88; 0 below -60, before products get denormal, and slow.

    NaN gives 0.
    """
    is_large = x > _LOWEST
    x = x if is_large else _LOWEST
    x = x if x < _HIGHEST else _HIGHEST
    shifted = x * _LOG2_E + _ROUND
    whole = shifted - _ROUND
    rest = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    poly = _C0
    poly = poly * rest + _C1
    poly = poly * rest + _C2
    poly = poly * rest + _C3
    poly = poly * rest + _C4
    poly = poly * rest + _C5
    poly = poly * (rest * rest) + rest + _ONE
    bits = np.int32(np.float32(shifted).view(np.int32)) << np.int32(23)
    power = np.int32(np.int32(bits) + np.int32(0x3F800000))
    return np.float32(poly * np.int32(power).view(np.float32)) if is_large else _ZERO


@reduce_jit
def row_sum(row: Floats) -> np.float32:
    """Return the sum of a row."""
    total = _ZERO
    for j in range(row.size):
        total += row[j]
    return np.float32(total)


@reduce_jit
def row_dot(a: Floats, b: Floats) -> np.float32:
    """Return the inner product of two rows."""
    total = _ZERO
    for j in range(a.size):
        total += a[j] * b[j]
    return np.float32(total)


@uncounted_jit
def scale_row(row: Floats, factor: np.float32) -> None:
    """Multiply a row by a number."""
    for j in range(row.size):
        row[j] *= factor


@uncounted_jit
def add_scaled(target: Floats, row: Floats, factor: np.float32) -> None:
    """Add a multiple of a row to another."""
    for j in range(row.size):
        target[j] += row[j] * factor


@uncounted_jit
def add_cubic_gradient(
    x: Floats, gradient: Floats, coefficient: np.float32, is_complex: bool
) -> None:
    """Add the gradient of ``coefficient * sum |x_k|**3`` (N3) to ``gradient``.

    Complex rows hold the real parts in their first half, the imaginary in the second;
    there the modulus takes the place of ``|x_k|``.
    """
    factor = np.float32(3.0) * coefficient
    if is_complex:
        half = x.size // 2
        for k in range(half):
            re, im = x[k], x[half + k]
            modulus = np.sqrt(re * re + im * im) * factor
            gradient[k] += modulus * re
            gradient[half + k] += modulus * im
    else:
        for k in range(x.size):
            gradient[k] += factor * abs(x[k]) * x[k]


@fused_jit
def normalize_rows(rows: Floats, out: Floats, norms: Floats) -> None:
    """Divide every row by its length; a row of zeros stays zero."""
    for i in range(rows.shape[0]):
        norms[i] = max(np.sqrt(row_dot(rows[i], rows[i])), _TINY)
        inverse = _ONE / norms[i]
        for k in range(rows.shape[1]):
            out[i, k] = rows[i, k] * inverse


@fused_jit
def normalize_rows_backward(unit: Floats, norms: Floats, gradient: Floats) -> None:
    """Turn the gradient at unit rows into the one at the rows themselves, in place."""
    for i in range(unit.shape[0]):
        along = row_dot(unit[i], gradient[i])
        inverse = _ONE / norms[i]
        for k in range(unit.shape[1]):
            gradient[i, k] = (gradient[i, k] - along * unit[i, k]) * inverse
