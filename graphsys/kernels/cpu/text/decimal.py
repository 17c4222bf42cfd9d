"""Decimal numbers in text as the nearest float64.

Returns: the number that ``float()`` gives, or that it is left to a full parser (more
than 19 digits, subnormal or infinite results, NaN, and rare ties).

Method: Clinger's fast path (PLDI 1990) where mantissa and power of ten are exact; else
Eisel and Lemire ("Number parsing at a gigabyte per second", Software: Practice and
Experience 51, 2021; laid out as in Go's strconv): the 64-bit mantissa times a 128-bit
approximation, cut not rounded, of the power of ten, which decides all 53 bits but for
rare cases that it recognizes.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import inline_jit

_MINUS, _PLUS, _DOT, _E = 45, 43, 46, 101
_MAX_DIGITS = 19
_EXACT_MANTISSA = np.uint64(2**53)
_BEYOND = 2.0**64
_EXACT_POWER = 22
_LOW_POWER, _HIGH_POWER = -342, 308


def _powers_of_ten() -> npt.NDArray[np.uint64]:
    """Return high and low 64 bits of 10**e, scaled to 128 bits and cut, for each e."""
    rows = []
    for power in range(_LOW_POWER, _HIGH_POWER + 1):
        # 2**1500 is enough for 128 bits of 10**-342.
        value = (1 << 1500) * 10**power if power >= 0 else (1 << 1500) // 10**-power
        value = (value << 128) >> value.bit_length()
        rows.append((value >> 64, value & (2**64 - 1)))
    return np.array(rows, dtype=np.uint64)


_TENS = _powers_of_ten()
_EXACT_TENS = np.array([10.0**power for power in range(_EXACT_POWER + 1)])
_TWOS = np.array([2.0 ** max(exponent - 1075, -1074) for exponent in range(2047)])


@inline_jit
def _multiply(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return high and low 64 bits of a product."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    first = a0 * b0
    middle = a1 * b0 + (first >> half)
    other = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> half) + (other >> half), a * b


@inline_jit
def _leading_zeros(word: np.uint64) -> int:
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(64 - step) == 0:
            zeros += step
            word <<= np.uint64(step)
    return zeros


@inline_jit
def _eisel_lemire(mantissa: np.uint64, power: int) -> tuple[float, bool]:
    """Return mantissa * 10**power, and whether it is certain."""
    if mantissa == 0:
        return 0.0, True
    if power < _LOW_POWER or power > _HIGH_POWER:
        return 0.0, False
    one, mask = np.uint64(1), np.uint64(0x1FF)
    zeros = _leading_zeros(mantissa)
    mantissa <<= np.uint64(zeros)
    # 217706 / 2**16 is log2(10), exact enough for all powers of the table.
    exponent = ((217706 * power) >> 16) + 64 + 1023 - zeros
    high, low = _multiply(mantissa, _TENS[power - _LOW_POWER, 0])
    # The power was cut: where a carry could reach the bits that count, its low half joins.
    if (high & mask) == mask and low + mantissa < mantissa:
        more, least = _multiply(mantissa, _TENS[power - _LOW_POWER, 1])
        merged = low + more
        if merged < low:
            high += one
        low = merged
        if (high & mask) == mask and low + one == 0 and least + mantissa < mantissa:
            return 0.0, False
    top = high >> np.uint64(63)
    bits = high >> (top + np.uint64(9))
    exponent -= 1 - int(top)
    # Exactly between two numbers, perhaps: the cut digits would decide which is nearer.
    if low == 0 and (high & mask) == 0 and (bits & np.uint64(3)) == 1:
        return 0.0, False
    # One bit more than needed, to round by; where that overflows the exponent grows.
    bits = (bits + (bits & one)) >> one
    if bits >> np.uint64(53):
        bits >>= one
        exponent += 1
    if exponent < 1 or exponent > 2046:
        return 0.0, False
    return np.float64(bits) * _TWOS[exponent], True


@inline_jit
def parse_number(data: npt.NDArray[np.uint8], begin: int, end: int) -> tuple[float, bool]:
    """Parse the number in ``data[begin:end]``.

    Returns:
        The nearest float64, and whether it is that (and equal, to an integer); if not, a
        full parser decides, also on whether there is a number at all.
    """
    k = begin
    is_negative = data[k] == _MINUS
    if is_negative or data[k] == _PLUS:
        k += 1
    first = k
    mantissa = np.uint64(0)
    digits = 0  # without zeros in front
    power = 0
    is_fraction = False
    while k < end:
        digit = np.uint8(data[k] - np.uint8(48))
        if digit <= 9:
            mantissa = mantissa * np.uint64(10) + np.uint64(digit)
            digits += bool(digits > 0 or digit > 0)
            power -= int(is_fraction)
        elif data[k] == _DOT and not is_fraction:
            is_fraction = True
        else:
            break
        k += 1
    has_digits = k > first + int(is_fraction)
    if k < end and has_digits and (data[k] | 32) == _E:
        k += 1
        is_small = data[k] == _MINUS
        if is_small or data[k] == _PLUS:
            k += 1
        start, written = k, 0
        # Six digits of an exponent are beyond any float64, and cannot overflow.
        while k < end and np.uint8(data[k] - np.uint8(48)) <= 9 and k - start < 6:
            written = written * 10 + int(data[k] - np.uint8(48))
            k += 1
        if k == start:
            return 0.0, False
        power += -written if is_small else written
    if k != end or not has_digits or digits > _MAX_DIGITS:
        return 0.0, False
    if mantissa <= _EXACT_MANTISSA and -_EXACT_POWER <= power <= _EXACT_POWER:
        exact = float(mantissa)
        exact = exact * _EXACT_TENS[power] if power >= 0 else exact / _EXACT_TENS[-power]
        return (-exact if is_negative else exact), True
    value, is_certain = _eisel_lemire(mantissa, power)
    if power == 0 and not is_fraction:  # an integer, which may not be rounded in silence
        is_certain = is_certain and value < _BEYOND and np.uint64(value) == mantissa
    return (-value if is_negative else value), is_certain
