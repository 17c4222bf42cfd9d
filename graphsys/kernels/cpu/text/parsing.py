"""Parsing of text lines of numbers and words, one block of whole lines at a time.

Method: one pass over the bytes, no table of tokens. A block ends with a line feed, which
serves as the sentinel of every inner loop. The fast path (two integers a line, in
id_pairs.py) and the general path (any columns) accept the same lines: blanks around
fields, CR before LF, blank lines, lines whose first visible byte is ``#`` or ``%``, and
such a comment behind the last column.

Errors are not described here: a kernel stops at the first line that it does not
understand and returns where that line begins; the reader then looks at that one line.

Encoding of columns (``kinds``): SKIP, ID (integer 0 .. 2**63 - 1), NUMBER (float64),
WORD (bytes, by start and length), INTEGER (signed 64 bits); MAYBE is a NUMBER and LABEL
a WORD that may be empty; MARK is the letter ``a`` (of DIMACS), not stored. Quoted fields
(CSV) are taken without their quotes; a word in which a quote is doubled gets a negative
length.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.text.decimal import parse_number
from graphsys.kernels.jit import inline_jit, jit

SKIP, ID, NUMBER, WORD, INTEGER, MAYBE, LABEL, MARK = 0, 1, 2, 3, 4, 5, 6, 7

_LF, _CR, _SPACE, _TAB, _HASH, _PERCENT, _QUOTE = 10, 13, 32, 9, 35, 37, 34
_ZERO, _MINUS, _PLUS, _DOT, _LETTER_A = 48, 45, 43, 46, 97
_MAX_ID = np.uint64(2**63 - 1)
_EXACT_DIGITS = 15  # fewer than 2**53, and a power of ten that is exact
_TENS = np.array([10.0**power for power in range(_EXACT_DIGITS + 1)])

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
def at_line_end(data: npt.NDArray[np.uint8], k: int) -> bool:
    """Tell whether a line ends here."""
    byte = data[k]
    return bool(byte == _LF or (byte == _CR and data[k + 1] == _LF))


@inline_jit
def skip_blanks(data: npt.NDArray[np.uint8], k: int, separator: int) -> int:
    """Step over blanks, and over tabs unless the tab separates."""
    while data[k] == _SPACE or (data[k] == _TAB and separator != _TAB):
        k += 1
    return k


@inline_jit
def next_line(data: npt.NDArray[np.uint8], k: int) -> int:
    """Return where the line behind this one begins."""
    while data[k] != _LF:
        k += 1
    return k + 1


@inline_jit
def long_id(data: npt.NDArray[np.uint8], begin: int, end: int) -> bool:
    """Tell whether digits of any length, zeros in front allowed, fit in 63 bits."""
    while begin < end - 1 and data[begin] == _ZERO:
        begin += 1
    # 2**63 - 1 has 19 digits, and 19 nines fit in 64 bits: the value cannot wrap.
    if end - begin > 19:
        return False
    value = np.uint64(0)
    for k in range(begin, end):
        value = value * np.uint64(10) + np.uint64(data[k] - _ZERO)
    return bool(value <= _MAX_ID)


@inline_jit
def _parse_id(data: npt.NDArray[np.uint8], begin: int, end: int) -> np.int64:
    """Return the id, or -1."""
    value = np.uint64(0)
    for k in range(begin, end):
        digit = np.uint8(data[k] - np.uint8(_ZERO))
        if digit > 9:
            return np.int64(-1)
        value = value * np.uint64(10) + np.uint64(digit)
    # The value may have wrapped, but not within 18 digits: only longer ones are counted
    # anew.
    if end - begin > 18 and not long_id(data, begin, end):
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
def _is_plain_end(byte: int, separator: int) -> bool:
    """Tell whether a plain field may end here."""
    if separator == BLANKS:
        return bool((byte == _SPACE) | (byte == _TAB) | (byte == _LF))
    return bool((byte == separator) | (byte == _LF))


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
    # Bytes below "0" wrap to above 9, so that one comparison tells digits from all else.
    digit = np.uint8(data[k] - np.uint8(_ZERO))
    while digit <= 9:
        value = value * np.uint64(10) + np.uint64(digit)
        k += 1
        digit = np.uint8(data[k] - np.uint8(_ZERO))
    if not _is_plain_end(data[k], separator) or k == begin or k - begin > 18:
        return np.int64(-1), begin
    return np.int64(value), k


@inline_jit
def _parse_plain_number(
    data: npt.NDArray[np.uint8], begin: int, separator: int
) -> tuple[float, int]:
    """Parse digits with a point, few enough to be exact, that end as a plain id does.

    Both mantissa and power of ten are exact, so that their quotient is rounded rightly.

    Returns:
        The number and where it ends; or 0 and ``begin`` where a closer look is needed.
    """
    is_negative = data[begin] == _MINUS
    first = k = begin + int(is_negative)
    mantissa = np.int64(0)
    digit = np.uint8(data[k] - np.uint8(_ZERO))
    while digit <= 9:
        mantissa = mantissa * 10 + np.int64(digit)
        k += 1
        digit = np.uint8(data[k] - np.uint8(_ZERO))
    digits, places = k - first, 0
    if data[k] == _DOT:
        k += 1
        first = k
        digit = np.uint8(data[k] - np.uint8(_ZERO))
        while digit <= 9:
            mantissa = mantissa * 10 + np.int64(digit)
            k += 1
            digit = np.uint8(data[k] - np.uint8(_ZERO))
        places = k - first
        digits += places
    is_short = 0 < digits <= _EXACT_DIGITS
    if not is_short or not _is_plain_end(data[k], separator):
        return 0.0, begin
    value = np.float64(mantissa)
    if places:
        value /= _TENS[places]
    return (-value if is_negative else value), k


@inline_jit
def _field_end(data: npt.NDArray[np.uint8], k: int, separator: int) -> int:
    """Return where a field that is not quoted ends, trailing blanks included.

    No call inside the loops: numba counts references to an array around each of them.
    """
    byte = data[k]
    if separator == BLANKS:
        # Nearly all bytes are above the blank: one comparison keeps the loop going.
        while byte > _SPACE or not (
            (byte == _SPACE)
            | (byte == _TAB)
            | (byte == _LF)
            | (byte == _CR and data[k + 1] == _LF)
        ):
            k += 1
            byte = data[k]
    else:
        while byte != separator and byte != _LF:
            if byte == _CR and data[k + 1] == _LF:
                break
            k += 1
            byte = data[k]
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


# long: one state machine over bytes
@jit
def parse_columns(
    data: npt.NDArray[np.uint8],
    separator: int,
    kinds: npt.NDArray[np.int64],
    has_comments: bool,
    has_quotes: bool,
    row: int,
    integers: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.float64],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int32],
    slow: npt.NDArray[np.int64],
    keeps_zeros: bool = False,
) -> tuple[int, int, int]:
    """Parse lines of ``C`` columns.

    Args:
        data: Whole lines, uint8 ``[N]``, the last byte a line feed.
        separator: The separating byte, or BLANKS.
        kinds: Kind of every column, ``[C]``.
        has_comments: ``#`` and ``%`` begin comments.
        has_quotes: Fields may be quoted; not with BLANKS.
        row: Rows that are there already.
        integers: Receives ID and INTEGER columns, ``[columns of the kind, lines]``.
        numbers: Receives NUMBER columns, ``[columns of the kind, lines]``.
        starts: Receives where words begin, ``[columns of the kind, lines]``.
        lengths: Receives how long words are, likewise.
        slow: Receives the numbers left to a full parser: column among the numbers, row,
            start and end of each, ``[S, 4]``; S is large enough for all numbers.
        keeps_zeros: An ID with zeros in front is bad.

    Returns:
        Number of rows, offset of the first bad line or -1, and length of ``slow``.
    """
    end = len(data)
    num_columns = len(kinds)
    k = 0
    num_slow = 0
    while k < end:
        line = k
        k = skip_blanks(data, k, separator)
        is_comment = has_comments and (data[k] == _HASH or data[k] == _PERCENT)
        if is_comment or at_line_end(data, k):
            k = next_line(data, k)
            continue
        integer = number = word = 0
        for column in range(num_columns):
            k = skip_blanks(data, k, separator)
            kind = kinds[column]
            begin = k
            # most columns: digits up to a blank, a separator or the end, in one go
            if kind in (ID, INTEGER):
                value, k = _parse_plain_id(data, k, separator)
                if k > begin:
                    integers[integer, row] = value
                    integer += 1
            elif kind in (NUMBER, MAYBE):
                fraction, k = _parse_plain_number(data, k, separator)
                if k > begin:
                    numbers[number, row] = fraction
                    number += 1
            elif kind == MARK:
                k += int(data[k] == _LETTER_A and _is_plain_end(data[k + 1], separator))
                if k == begin:
                    return row, line, num_slow
            # 007 and 7 would be one id: where that matters, the reader takes ids as words.
            if keeps_zeros and kind == ID and k - begin > 1 and data[begin] == _ZERO:
                return row, line, num_slow
            if k > begin:
                if separator != BLANKS and column < num_columns - 1:
                    if data[k] != separator:
                        return row, line, num_slow
                    k += 1
                continue
            # What follows is rare: quotes, long ids, exponents, margins and empty fields.
            sign = 1
            if has_quotes and data[k] == _QUOTE:
                begin = k + 1
                stop, sign = _quoted_end(data, begin)
                if stop < 0:
                    return row, line, num_slow
                k = stop + 1
                if separator != _SPACE:
                    k = skip_blanks(data, k, separator)
            else:
                begin = k
                k = _field_end(data, k, separator)
                stop = k
                # Blanks in front of a separator belong to nobody.
                while stop > begin and (data[stop - 1] == _SPACE or data[stop - 1] == _TAB):
                    stop -= 1
            may_be_empty = separator != BLANKS and kind in (SKIP, MAYBE, LABEL)
            if stop == begin and not may_be_empty:
                return row, line, num_slow
            if kind == ID:
                value = _parse_id(data, begin, stop)
                has_zeros = keeps_zeros and data[begin] == _ZERO and stop - begin > 1
                if value < 0 or has_zeros:
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
                # The number stands as rounded; a full parser replaces it after the block.
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
        # Most lines end right behind the last field.
        if data[k] == _LF:
            k += 1
            row += 1
            continue
        k = skip_blanks(data, k, separator)
        if not at_line_end(data, k):
            is_comment = has_comments and (data[k] == _HASH or data[k] == _PERCENT)
            # With other separators a mark may be text, so that only a margin may follow.
            if separator != BLANKS or not is_comment:
                return row, line, num_slow
        k = next_line(data, k)
        row += 1
    return row, -1, num_slow
