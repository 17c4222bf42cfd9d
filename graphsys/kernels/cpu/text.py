"""Parsing of text lines of numbers and words, one block of whole lines at a time.

Method: one pass over the bytes, no table of tokens. A block ends with a line feed, which
serves as the sentinel of every inner loop. The fast path (two integers a line) and the
general path (any columns) accept the same lines: blanks around fields, CR before LF,
blank lines, lines whose first visible byte is ``#`` or ``%``, and such a comment behind
the last column.

Errors are not described here: a kernel stops at the first line that it does not
understand and returns where that line begins; the reader then looks at that one line.

Encoding of columns (``kinds``): SKIP, ID (integer 0 .. 2**63 - 1), NUMBER (float64),
WORD (bytes, by start and length), INTEGER (signed 64 bits); MAYBE is a NUMBER and LABEL
a WORD that may be empty. Quoted fields (CSV) are taken without their quotes; a word in
which a quote is doubled gets a negative length.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.decimal import parse_number
from graphsys.kernels.jit import inline_jit, jit

SKIP, ID, NUMBER, WORD, INTEGER, MAYBE, LABEL = 0, 1, 2, 3, 4, 5, 6

_LF, _CR, _SPACE, _TAB, _HASH, _PERCENT, _QUOTE = 10, 13, 32, 9, 35, 37, 34
_ZERO, _MINUS, _PLUS = 48, 45, 43
_MAX_ID = np.uint64(2**63 - 1)

BLANKS = 0
"""Separator that stands for any run of blanks and tabs."""


@jit
def count_lines(data: npt.NDArray[np.uint8]) -> int:
    """Count the line feeds of ``data``, uint8 ``[N]``."""
    lines = 0
    for k in range(len(data)):
        lines += data[k] == _LF
    return lines


@inline_jit
def _at_line_end(data: npt.NDArray[np.uint8], k: int) -> bool:
    byte = data[k]
    return bool(byte == _LF or (byte == _CR and data[k + 1] == _LF))


@inline_jit
def _skip_blanks(data: npt.NDArray[np.uint8], k: int, separator: int) -> int:
    """Step over blanks, and over tabs unless the tab separates."""
    while data[k] == _SPACE or (data[k] == _TAB and separator != _TAB):
        k += 1
    return k


@inline_jit
def _next_line(data: npt.NDArray[np.uint8], k: int) -> int:
    while data[k] != _LF:
        k += 1
    return k + 1


@inline_jit
def _long_id(data: npt.NDArray[np.uint8], begin: int, end: int) -> bool:
    """Tell whether digits of any length, zeros in front allowed, fit in 63 bits."""
    while begin < end - 1 and data[begin] == _ZERO:
        begin += 1
    if end - begin > 19:
        return False
    value = np.uint64(0)
    for k in range(begin, end):
        value = value * np.uint64(10) + np.uint64(data[k] - _ZERO)
    return bool(value <= _MAX_ID)


@jit
def parse_id_pairs(
    data: npt.NDArray[np.uint8],
    separator: int,
    src: npt.NDArray[np.int64],
    dst: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Parse lines of two ids.

    Args:
        data: Whole lines, uint8 ``[N]``, the last byte a line feed.
        separator: The separating byte, or BLANKS.
        src: Receives the first column, int64, at least as long as there are lines.
        dst: Receives the second column, likewise.

    Returns:
        Number of edges, and the offset of the first line that is not two ids, or -1.
    """
    end = len(data)
    nine = np.uint8(9)
    zero = np.uint8(_ZERO)
    k = 0
    row = 0
    while k < end:
        line = k
        k = _skip_blanks(data, k, separator)
        digit = np.uint8(data[k] - zero)
        if digit > nine:
            if _at_line_end(data, k) or data[k] == _HASH or data[k] == _PERCENT:
                k = _next_line(data, k)
                continue
            return row, line
        begin = k
        first = np.uint64(0)
        while digit <= nine:
            first = first * np.uint64(10) + np.uint64(digit)
            k += 1
            digit = np.uint8(data[k] - zero)
        if k - begin > 18 and not _long_id(data, begin, k):
            return row, line
        begin = k
        k = _skip_blanks(data, k, separator)
        if separator != BLANKS:
            if data[k] != separator:
                return row, line
            k = _skip_blanks(data, k + 1, separator)
        elif k == begin:
            return row, line
        begin = k
        digit = np.uint8(data[k] - zero)
        second = np.uint64(0)
        while digit <= nine:
            second = second * np.uint64(10) + np.uint64(digit)
            k += 1
            digit = np.uint8(data[k] - zero)
        if k == begin or (k - begin > 18 and not _long_id(data, begin, k)):
            return row, line
        if data[k] == _LF:
            k += 1
        else:
            begin = k
            k = _skip_blanks(data, k, separator)
            is_comment = data[k] == _HASH or data[k] == _PERCENT
            is_comment = is_comment and k > begin and separator == BLANKS
            if is_comment or _at_line_end(data, k):
                k = _next_line(data, k)
            else:
                return row, line
        src[row] = np.int64(first)
        dst[row] = np.int64(second)
        row += 1
    return row, -1


@inline_jit
def _parse_id(data: npt.NDArray[np.uint8], begin: int, end: int) -> np.int64:
    """Return the id, or -1."""
    value = np.uint64(0)
    for k in range(begin, end):
        digit = np.uint8(data[k] - np.uint8(_ZERO))
        if digit > 9:
            return np.int64(-1)
        value = value * np.uint64(10) + np.uint64(digit)
    if end - begin > 18 and not _long_id(data, begin, end):
        return np.int64(-1)
    return np.int64(value) if end > begin else np.int64(-1)


@inline_jit
def _parse_integer(
    data: npt.NDArray[np.uint8], begin: int, end: int
) -> tuple[np.int64, bool]:
    """Return a signed integer of at most 63 bits, and whether it is one."""
    is_negative = begin < end and data[begin] == _MINUS
    if begin < end and (is_negative or data[begin] == _PLUS):
        begin += 1
    value = _parse_id(data, begin, end)
    return (-value if is_negative else value), bool(value >= 0)


@inline_jit
def _parse_plain_id(
    data: npt.NDArray[np.uint8], begin: int, separator: int
) -> tuple[np.int64, int]:
    """Parse up to 18 digits that end at a blank, the separator or a line feed.

    Returns:
        The id and where it ends; or -1 and ``begin`` where a closer look is needed.
    """
    k = begin
    value = np.uint64(0)
    digit = np.uint8(data[k] - np.uint8(_ZERO))
    while digit <= 9:
        value = value * np.uint64(10) + np.uint64(digit)
        k += 1
        digit = np.uint8(data[k] - np.uint8(_ZERO))
    is_end = data[k] == separator
    if separator == BLANKS:
        is_end = data[k] == _SPACE or data[k] == _TAB or data[k] == _LF
    if not is_end or k == begin or k - begin > 18:
        return np.int64(-1), begin
    return np.int64(value), k


@inline_jit
def _field_end(data: npt.NDArray[np.uint8], k: int, separator: int) -> int:
    """Return where a field that is not quoted ends, trailing blanks included."""
    if separator == BLANKS:
        while data[k] > _SPACE or not (
            data[k] == _SPACE or data[k] == _TAB or _at_line_end(data, k)
        ):
            k += 1
    else:
        while data[k] != separator and not _at_line_end(data, k):
            k += 1
    return k


@inline_jit
def _quoted_end(data: npt.NDArray[np.uint8], k: int) -> tuple[int, int]:
    """Return the place of the closing quote or -1, and -1 if quotes are doubled inside."""
    sign = 1
    while data[k] != _LF:
        if data[k] == _QUOTE:
            if data[k + 1] != _QUOTE:
                return k, sign
            sign = -1
            k += 1
        k += 1
    return -1, sign


@jit
def parse_columns(
    data: npt.NDArray[np.uint8],
    separator: int,
    kinds: npt.NDArray[np.int64],
    has_comments: bool,
    has_quotes: bool,
    integers: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.float64],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int32],
    slow: npt.NDArray[np.int64],
) -> tuple[int, int, int]:
    """Parse lines of ``C`` columns.

    Args:
        data: Whole lines, uint8 ``[N]``, the last byte a line feed.
        separator: The separating byte, or BLANKS.
        kinds: Kind of every column, ``[C]``.
        has_comments: ``#`` and ``%`` begin comments.
        has_quotes: Fields may be quoted; not with BLANKS.
        integers: Receives ID and INTEGER columns, ``[columns of the kind, lines]``.
        numbers: Receives NUMBER columns, ``[columns of the kind, lines]``.
        starts: Receives where words begin, ``[columns of the kind, lines]``.
        lengths: Receives how long words are, likewise.
        slow: Receives the numbers left to a full parser: column among the numbers, row,
            start and end of each, ``[S, 4]``; S is large enough for all numbers.

    Returns:
        Number of rows, offset of the first bad line or -1, and length of ``slow``.
    """
    end = len(data)
    num_columns = len(kinds)
    k = 0
    row = 0
    num_slow = 0
    while k < end:
        line = k
        k = _skip_blanks(data, k, separator)
        is_comment = has_comments and (data[k] == _HASH or data[k] == _PERCENT)
        if is_comment or _at_line_end(data, k):
            k = _next_line(data, k)
            continue
        integer = number = word = 0
        for column in range(num_columns):
            k = _skip_blanks(data, k, separator)
            kind = kinds[column]
            if kind == ID:  # most columns: digits up to a blank or separator, in one go
                value, k = _parse_plain_id(data, k, separator)
                if value >= 0:
                    integers[integer, row] = value
                    integer += 1
                    if separator != BLANKS and column < num_columns - 1:
                        k += 1
                    continue
            sign = 1
            if has_quotes and data[k] == _QUOTE:
                begin = k + 1
                stop, sign = _quoted_end(data, begin)
                if stop < 0:
                    return row, line, num_slow
                k = _skip_blanks(data, stop + 1, separator)
            else:
                begin = k
                k = _field_end(data, k, separator)
                stop = k
                while stop > begin and (data[stop - 1] == _SPACE or data[stop - 1] == _TAB):
                    stop -= 1
            may_be_empty = separator != BLANKS and kind in (SKIP, MAYBE, LABEL)
            if stop == begin and not may_be_empty:
                return row, line, num_slow
            if kind == ID:
                value = _parse_id(data, begin, stop)
                if value < 0:
                    return row, line, num_slow
                integers[integer, row] = value
                integer += 1
            elif kind in (WORD, LABEL):
                starts[word, row] = begin
                lengths[word, row] = sign * (stop - begin)
                word += 1
            elif kind in (NUMBER, MAYBE):
                fraction, is_exact = parse_number(data, begin, stop)
                numbers[number, row] = fraction
                if not is_exact:
                    slow[num_slow, 0] = number
                    slow[num_slow, 1] = row
                    slow[num_slow, 2] = begin
                    slow[num_slow, 3] = stop
                    num_slow += 1
                number += 1
            elif kind == INTEGER:
                signed, is_integer = _parse_integer(data, begin, stop)
                if not is_integer:
                    return row, line, num_slow
                integers[integer, row] = signed
                integer += 1
            if separator != BLANKS and column < num_columns - 1:
                if data[k] != separator:
                    return row, line, num_slow
                k += 1
        k = _skip_blanks(data, k, separator)
        if not _at_line_end(data, k):
            is_comment = has_comments and (data[k] == _HASH or data[k] == _PERCENT)
            if separator != BLANKS or not is_comment:
                return row, line, num_slow
        k = _next_line(data, k)
        row += 1
    return row, -1, num_slow
