"""Parsing of lines of two ids, the most common ones; see parsing.py for what lines are."""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.text.parsing import at_line_end, long_id, next_line, skip_blanks
from graphsys.kernels.jit import jit

_LF, _HASH, _PERCENT, _ZERO = 10, 35, 37, 48

BLANKS = 0
"""Separator that stands for any run of blanks and tabs."""


# long: one state machine over bytes
@jit
def parse_id_pairs(
    data: npt.NDArray[np.uint8],
    separator: int,
    has_comments: bool,
    src: npt.NDArray[np.int64],
    dst: npt.NDArray[np.int64],
    keeps_zeros: bool = False,
) -> tuple[int, int]:
    """Parse lines of two ids.

    Args:
        data: Whole lines, uint8 ``[N]``, the last byte a line feed.
        separator: The separating byte, or BLANKS.
        has_comments: ``#`` and ``%`` begin comments.
        src: Receives the first column, int64, at least as long as there are lines.
        dst: Receives the second column, likewise.
        keeps_zeros: An id with zeros in front is bad.

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
        k = skip_blanks(data, k, separator)
        # Bytes below "0" wrap to above 9: one comparison tells a digit from all else.
        digit = np.uint8(data[k] - zero)
        if digit > nine:
            is_comment = has_comments and (data[k] == _HASH or data[k] == _PERCENT)
            if is_comment or at_line_end(data, k):
                k = next_line(data, k)
                continue
            return row, line
        begin = k
        first = np.uint64(0)
        while digit <= nine:
            first = first * np.uint64(10) + np.uint64(digit)
            k += 1
            digit = np.uint8(data[k] - zero)
        # Up to 18 digits cannot wrap; longer ones are looked at anew, as they are rare.
        if k - begin > 18 and not long_id(data, begin, k):
            return row, line
        if keeps_zeros and data[begin] == zero and k - begin > 1:
            return row, line
        begin = k
        k = skip_blanks(data, k, separator)
        # Blanks around a separator belong to nobody; without one, one blank at least is
        # needed.
        if separator != BLANKS:
            if data[k] != separator:
                return row, line
            k = skip_blanks(data, k + 1, separator)
        elif k == begin:
            return row, line
        begin = k
        digit = np.uint8(data[k] - zero)
        second = np.uint64(0)
        while digit <= nine:
            second = second * np.uint64(10) + np.uint64(digit)
            k += 1
            digit = np.uint8(data[k] - zero)
        if k == begin or (k - begin > 18 and not long_id(data, begin, k)):
            return row, line
        if keeps_zeros and data[begin] == zero and k - begin > 1:
            return row, line
        # Most lines end here; a margin, CR or comment takes the longer way.
        if data[k] == _LF:
            k += 1
        else:
            begin = k
            k = skip_blanks(data, k, separator)
            is_comment = data[k] == _HASH or data[k] == _PERCENT
            is_comment = is_comment and has_comments and k > begin and separator == BLANKS
            if is_comment or at_line_end(data, k):
                k = next_line(data, k)
            else:
                return row, line
        src[row] = np.int64(first)
        dst[row] = np.int64(second)
        row += 1
    return row, -1
