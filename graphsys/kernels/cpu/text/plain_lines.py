"""The plainest lines of three or four columns, parsed in one loop without dispatch.

Two ids and an id or a number, perhaps behind the letter ``a`` (DIMACS's arcs). Whatever is
not plain (signs of ids, exponents, comments, blank lines, CR, margins, more than 18 digits)
ends the loop, and the caller goes on there with :func:`text.parse_columns`, which accepts
the same lines and more. A block ends with a line feed, the sentinel of every inner loop.
No calls inside loops: numba counts references to an array around each of them.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit

_LF, _SPACE, _TAB, _ZERO, _MINUS, _DOT, _LETTER_A = 10, 32, 9, 48, 45, 46, 97
_ID_DIGITS = 18
_EXACT_DIGITS = 15  # fewer than 2**53, and a power of ten that is exact
_TENS = np.array([10.0**power for power in range(_EXACT_DIGITS + 1)])

BLANKS = 0
"""Separator that stands for any run of blanks and tabs."""


# long: one state machine over bytes
@jit
def parse_plain_lines(
    data: npt.NDArray[np.uint8],
    separator: int,
    has_mark: bool,
    is_number: bool,
    ids: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.float64],
    keeps_zeros: bool = False,
) -> tuple[int, int]:
    """Parse lines ``[a] ID ID ID`` or ``[a] ID ID NUMBER`` while they are plain.

    Args:
        data: Whole lines, uint8 ``[N]``, the last byte a line feed.
        separator: The separating byte, or BLANKS.
        has_mark: Lines begin with the letter ``a``.
        is_number: The last column holds numbers.
        ids: Receives the columns of ids, ``[2 or 3, lines]``.
        numbers: Receives the numbers, ``[0 or 1, lines]``.
        keeps_zeros: An id with zeros in front is not plain.

    Returns:
        Number of rows, and where the first line begins that is not plain; ``N`` if all are.
    """
    end = len(data)
    nine, zero = np.uint8(9), np.uint8(_ZERO)
    is_blank = separator == BLANKS
    num_ids = 2 if is_number else 3
    k = row = 0
    while k < end:
        line = k
        if has_mark:
            if data[k] != _LETTER_A:
                return row, line
            k += 1
        for column in range(3):
            if column > 0 or has_mark:
                byte = data[k]
                if is_blank:
                    if byte != _SPACE and byte != _TAB:
                        return row, line
                    while (byte == _SPACE) | (byte == _TAB):
                        k += 1
                        byte = data[k]
                else:
                    if byte != separator:
                        return row, line
                    k += 1
            if column < num_ids:
                begin = k
                value = np.int64(0)
                # Bytes below "0" wrap to above 9: one comparison finds the end.
                digit = np.uint8(data[k] - zero)
                while digit <= nine:
                    value = value * 10 + np.int64(digit)
                    k += 1
                    digit = np.uint8(data[k] - zero)
                # Too many digits may have wrapped; the value is dropped with the line.
                if k == begin or k - begin > _ID_DIGITS:
                    return row, line
                if keeps_zeros and data[begin] == zero and k - begin > 1:
                    return row, line
                ids[column, row] = value
        if is_number:
            is_negative = data[k] == _MINUS
            k += int(is_negative)
            begin = k
            value = np.int64(0)
            places = 0
            digit = np.uint8(data[k] - zero)
            while digit <= nine:
                value = value * 10 + np.int64(digit)
                k += 1
                digit = np.uint8(data[k] - zero)
            digits = k - begin
            if data[k] == _DOT:
                k += 1
                begin = k
                digit = np.uint8(data[k] - zero)
                while digit <= nine:
                    value = value * 10 + np.int64(digit)
                    k += 1
                    digit = np.uint8(data[k] - zero)
                places = k - begin
                digits += places
            if digits == 0 or digits > _EXACT_DIGITS:
                return row, line
            fraction = np.float64(value)
            if places:
                fraction /= _TENS[places]  # both are exact: rounded once, rightly
            numbers[0, row] = -fraction if is_negative else fraction
        if data[k] != _LF:
            return row, line
        k += 1
        row += 1
    return row, end
