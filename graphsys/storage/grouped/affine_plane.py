"""Affine planes: points that meet in lines, every two of them in exactly one.

A plane of order ``q`` has ``q * q`` points and ``q + 1`` classes of ``q`` parallel lines of
``q`` points each. Points are pairs (x, y) of a field's elements; the lines of a class are
``y = m * x + b`` with one slope m, or ``x = b``. There is a field of ``q`` elements for
every prime and every power of one; here are primes and powers of two (Lidl and
Niederreiter, "Introduction to finite fields and their applications", 1986).
"""

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
_POWERS: Final = {4: 0b111, 8: 0b1011, 16: 0b10011, 32: 0b100101}
"""Powers of two, and the irreducible polynomial by which their products are reduced."""

ORDERS: Final = tuple(sorted((*_PRIMES, *_POWERS)))
"""Orders of the planes that there are, up to 32."""


@cache
def parallel_classes(order: int) -> npt.NDArray[np.int64]:
    """Return the points of every line, class by class, int64 ``[q + 1, q, q]``.

    Args:
        order: q, one of :data:`ORDERS`. Point (x, y) has the number ``x * q + y``.

    Examples:
        >>> parallel_classes(2).tolist()
        [[[0, 2], [1, 3]], [[0, 3], [1, 2]], [[0, 1], [2, 3]]]
    """
    x, y = np.divmod(np.arange(order * order), order)
    is_power = order in _POWERS
    lines = []
    for slope in range(order):
        moved = _products(slope, x, order)
        lines.append(y ^ moved if is_power else (y - moved) % order)
    lines.append(x)
    of = np.argsort(np.stack(lines), axis=1, kind="stable")
    return of.reshape(order + 1, order, order)


def _products(a: int, b: npt.NDArray[np.int64], order: int) -> npt.NDArray[np.int64]:
    """Multiply an element of a field with others."""
    if order not in _POWERS:
        return a * b % order
    product, shifted = np.zeros_like(b), b.copy()
    while a:
        if a & 1:
            product ^= shifted
        a >>= 1
        shifted = shifted << 1
        shifted = np.where(shifted >= order, shifted ^ _POWERS[order], shifted)
    return product
