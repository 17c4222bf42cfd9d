"""Lines of neighbours (METIS): one node a line, in the order of the nodes.

Returns: the entries of a block of whole lines, each with its line's number among those
of the block that are no comments; blank lines count, they are nodes without neighbours.

Method: one pass over the bytes; a block ends with a line feed, the sentinel of every
inner loop. The first bad line ends the work and is only named by its offset.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.decimal import parse_number
from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import inline_jit, jit

_LF, _CR, _SPACE, _TAB, _PERCENT = 10, 13, 32, 9, 37


@inline_jit
def _is_blank(byte: np.uint8) -> bool:
    return byte in (_SPACE, _TAB, _CR)


@jit
def count_fields(data: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """Count the fields and the lines of ``data``, uint8 ``[N]``."""
    fields = lines = 0
    is_inside = False
    for k in range(len(data)):
        byte = data[k]
        is_visible = not (byte == _LF or _is_blank(byte))
        fields += is_visible and not is_inside
        lines += byte == _LF
        is_inside = is_visible
    return fields, lines


@jit
def parse_neighbours(
    data: npt.NDArray[np.uint8],
    low: int,
    high: int,
    num_leading: int,
    is_weighted: bool,
    leading: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    neighbours: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    slow: npt.NDArray[np.int64],
) -> tuple[int, int, int, int]:
    """Parse lines of neighbours.

    Args:
        data: Whole lines, uint8 ``[N]``, the last byte a line feed.
        low: Least neighbour.
        high: Greatest neighbour, below 10**18.
        num_leading: Integers in front of the neighbours (size and weights of the node).
        is_weighted: A weight follows each neighbour.
        leading: Receives those integers, ``[lines, num_leading]``.
        rows: Receives the line of each entry, ``[fields]``.
        neighbours: Receives the neighbours, ``[fields]``.
        weights: Receives the weights, ``[fields]`` if there are any.
        slow: Receives entry, begin and end of weights that need a full parser,
            ``[fields, 3]``.

    Returns:
        Number of lines, of entries and of ``slow``, and the offset of the first bad line
        or -1.
    """
    end = len(data)
    k = line_number = entry = num_slow = 0
    while k < end:
        line = k
        place = 0
        is_comment = False
        while True:
            while _is_blank(data[k]):
                k += 1
            if data[k] == _LF:
                break
            if place == 0 and data[k] == _PERCENT:
                is_comment = True
                while data[k] != _LF:
                    k += 1
                break
            begin = k
            while data[k] != _LF and not _is_blank(data[k]):
                k += 1
            if is_weighted and place >= num_leading and (place - num_leading) % 2:
                value, is_exact = parse_number(data, begin, k)
                weights[entry - 1] = value
                if not is_exact:
                    slow[num_slow, 0] = entry - 1
                    slow[num_slow, 1] = begin
                    slow[num_slow, 2] = k
                    num_slow += 1
            else:
                number = np.int64(0)
                for j in range(begin, k):
                    digit = np.uint8(data[j] - np.uint8(48))
                    if digit > 9 or number > 10**17:
                        return line_number, entry, num_slow, line
                    number = number * 10 + np.int64(digit)
                if place < num_leading:
                    leading[line_number, place] = number
                else:
                    if number < low or number > high:
                        return line_number, entry, num_slow, line
                    rows[entry] = line_number
                    neighbours[entry] = number
                    entry += 1
            place += 1
        if not is_comment:
            if 0 < place < num_leading:
                return line_number, entry, num_slow, line
            if is_weighted and place > num_leading and (place - num_leading) % 2:
                return line_number, entry, num_slow, line
            line_number += 1
        k += 1
    return line_number, entry, num_slow, -1


@jit
def pair_checksum(
    src: npt.NDArray[np.int64], dst: npt.NDArray[np.int64], weights: npt.NDArray[np.uint64]
) -> np.uint64:
    """Sum the hashes of pairs, which does not depend on their order.

    Args:
        src: int64 ``[E]``.
        dst: int64 ``[E]``.
        weights: Bits of the weights, uint64 ``[E]``, or empty.
    """
    total = np.uint64(0)
    for k in range(len(src)):
        word = mix64(np.uint64(src[k])) + np.uint64(dst[k])
        if len(weights):
            word = mix64(word) + weights[k]
        total += mix64(word)
    return total
