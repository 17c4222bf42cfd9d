"""Lines of neighbors (METIS): one node a line, in the order of the nodes.

Returns: the entries of a block of whole lines, and where those of each line end; lines that
are comments are not counted, blank ones are: they are nodes without neighbors.

Method: one pass over the bytes; a block ends with a line feed, the sentinel of every
inner loop. The first bad line ends the work and is only named by its offset.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.text.decimal import parse_number
from graphsys.kernels.jit import inline_jit, jit

_LF, _CR, _SPACE, _TAB, _PERCENT = 10, 13, 32, 9, 37


@inline_jit
def _is_blank(byte: np.uint8) -> bool:
    return byte in (_SPACE, _TAB, _CR)


@jit
def parse_neighbors(
    data: npt.NDArray[np.uint8],
    low: int,
    high: int,
    num_leading: int,
    is_weighted: bool,
    leading: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    neighbors: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    slow: npt.NDArray[np.int64],
) -> tuple[int, int, int, int]:
    """Parse lines of neighbors.

    Args:
        data: Whole lines, uint8 ``[N]``, the last byte a line feed.
        low: Least neighbor.
        high: Greatest neighbor, below 10**18.
        num_leading: Integers in front of the neighbors (size and weights of the node).
        is_weighted: A weight follows each neighbor.
        leading: Receives those integers, ``[lines, num_leading]``.
        ends: Receives where the entries of each line end, ``[lines]``.
        neighbors: Receives the neighbors, ``[fields]``.
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
            number = np.int64(0)
            digit = np.uint8(data[k] - np.uint8(48))
            while digit <= 9:
                number = number * 10 + np.int64(digit)
                k += 1
                digit = np.uint8(data[k] - np.uint8(48))
            # Weights pass through here too, and may be what is no integer: judged further
            # down.
            is_plain = 0 < k - begin <= 18 and (data[k] == _LF or _is_blank(data[k]))
            while data[k] != _LF and not _is_blank(data[k]):
                k += 1
            if is_weighted and place >= num_leading and (place - num_leading) % 2:
                value, is_exact = parse_number(data, begin, k)
                # The neighbor that it belongs to came just before.
                weights[entry - 1] = value
                if not is_exact:
                    slow[num_slow, 0] = entry - 1
                    slow[num_slow, 1] = begin
                    slow[num_slow, 2] = k
                    num_slow += 1
            else:
                if not is_plain:
                    return line_number, entry, num_slow, line
                if place < num_leading:
                    leading[line_number, place] = number
                else:
                    if number < low or number > high:
                        return line_number, entry, num_slow, line
                    neighbors[entry] = number
                    entry += 1
            place += 1
        if not is_comment:
            # A line cut short, in front of the neighbors or between one and its weight.
            if 0 < place < num_leading:
                return line_number, entry, num_slow, line
            if is_weighted and place > num_leading and (place - num_leading) % 2:
                return line_number, entry, num_slow, line
            ends[line_number] = entry
            line_number += 1
        k += 1
    return line_number, entry, num_slow, -1


@jit
def fold_directions(
    ends: npt.NDArray[np.int64],
    first: int,
    neighbors: npt.NDArray[np.int64],
    weights: npt.NDArray[np.uint64],
    src: npt.NDArray[np.int64],
    dst: npt.NDArray[np.int64],
    kept: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
    sums: npt.NDArray[np.uint64],
) -> int:
    """Keep the entries whose neighbor is not less than their node; tally both kinds.

    Args:
        ends: Where the entries of each line of the block end, ``[lines]``.
        first: Node of line 0.
        neighbors: ``[E]``.
        weights: Bits of the weights, ``[E]``, or empty.
        src: Receives the nodes of entries kept, ``[E]``.
        dst: Receives their neighbors, ``[E]``.
        kept: Receives their weights, as long as ``weights``.
        counts: Adds up entries with greater, smaller and equal neighbors, ``[3]``.
        sums: Adds up hashes of pairs and weights, which do not depend on the order: of
            entries with greater neighbors, and of those with smaller ones, ``[2]``.

    Returns:
        Number of entries kept.
    """
    num_kept = 0
    has_weights = len(weights) > 0
    k = 0
    for line in range(len(ends)):
        u = np.int64(line + first)
        while k < ends[line]:
            v = neighbors[k]
            if u == v:
                counts[2] += 1
            else:
                is_lower = np.int64(v < u)
                # Both directions hash alike, and sums do not depend on the order: equal
                # sums say that each edge stands in both rows with one weight, without a
                # table of edges.
                low, high = min(u, v), max(u, v)
                word = mix64((np.uint64(low) << np.uint64(32)) ^ np.uint64(high))
                if has_weights:
                    word = mix64(word + weights[k])
                counts[is_lower] += 1
                sums[is_lower] += word
            if v >= u:
                src[num_kept] = u
                dst[num_kept] = v
                if has_weights:
                    kept[num_kept] = weights[k]
                num_kept += 1
            k += 1
    return num_kept
