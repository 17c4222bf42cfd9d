"""The last step of an argsort by packed keys."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def sort_runs(
    prefixes: npt.NDArray[np.uint64],
    shift: int,
    keys: npt.NDArray[np.uint64],
    order: npt.NDArray[Any],
    longest: int,
) -> bool:
    """Sort every run of equal prefixes by (key, position), by insertion.

    Args:
        prefixes: Sorted words; the prefix is what is left after ``shift``, ``[n]``.
        shift: Bits below the prefix.
        keys: Whole keys by position, uint64 ``[n]``.
        order: Positions sorted by prefix, then position ``[n]``; completed in place.
        longest: Give up at a run of more elements than this.

    Returns:
        Whether all runs were short enough; if not, ``order`` is incomplete.
    """
    begin = 0
    length = len(order)
    while begin < length:
        prefix = prefixes[begin] >> np.uint64(shift)
        end = begin + 1
        while end < length and prefixes[end] >> np.uint64(shift) == prefix:
            end += 1
        if end - begin > 1:
            is_sorted = True
            for k in range(begin + 1, end):
                if keys[order[k]] < keys[order[k - 1]]:
                    is_sorted = False
                    break
            if not is_sorted:
                if end - begin > longest:
                    return False
                for k in range(begin + 1, end):
                    moved = order[k]
                    key = keys[moved]
                    place = k
                    while place > begin and keys[order[place - 1]] > key:
                        order[place] = order[place - 1]
                        place -= 1
                    order[place] = moved
        begin = end
    return True


@jit
def pack_positions(
    keys: npt.NDArray[np.uint64],
    lowest: np.uint64,
    shift: int,
    position_bits: int,
    words: npt.NDArray[np.uint64],
) -> None:
    """Write ``(key - lowest) >> shift << position_bits | position`` for every key."""
    for k in range(len(keys)):
        word = (keys[k] - lowest) >> np.uint64(shift)
        words[k] = (word << np.uint64(position_bits)) | np.uint64(k)


@jit
def unpack_positions(
    words: npt.NDArray[np.uint64], position_bits: int, order: npt.NDArray[Any]
) -> None:
    """Write the low ``position_bits`` bits of every word."""
    mask = (np.uint64(1) << np.uint64(position_bits)) - np.uint64(1)
    for k in range(len(words)):
        order[k] = words[k] & mask


@jit
def number_keys(
    parts: npt.NDArray[np.uint32],
    degrees: npt.NDArray[np.uint32],
    largest: int,
    bits: int,
    by_rank: npt.NDArray[Any],
    keys: npt.NDArray[np.uint64],
) -> None:
    """Write what sorts nodes by partition, then by falling degree.

    Args:
        parts: Partition by code, uint32 ``[N]``.
        degrees: Degree by code, uint32 ``[N]``; empty to leave it out.
        largest: The largest degree.
        bits: Its bits.
        by_rank: Codes in the order that breaks ties ``[N]``; empty for 0, 1, 2 ...
        keys: Receives a key for every entry of ``by_rank``, uint64 ``[N]``.
    """
    for k in range(len(keys)):
        code = np.int64(by_rank[k]) if len(by_rank) else k
        key = np.uint64(parts[code])
        if len(degrees):
            key = (key << np.uint64(bits)) | np.uint64(largest - np.int64(degrees[code]))
        keys[k] = key


@jit
def invert(order: npt.NDArray[Any], places: npt.NDArray[Any]) -> None:
    """Write the place of every entry: ``places[order[k]] = k``."""
    for k in range(len(order)):
        places[order[k]] = k
