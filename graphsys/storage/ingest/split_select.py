"""The largest keys of a stream of edges, found without keeping the stream."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Keys: TypeAlias = npt.NDArray[np.uint64]
Stream: TypeAlias = Callable[[], Iterator[tuple[Keys, npt.NDArray[np.int64]]]]
"""Yields keys ``[n]`` and the group of each, int64 ``[n]``; the same each time."""

_CELLS = 1 << 19
_KEY_BITS = 64


def thresholds(
    stream: Stream, totals: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]
) -> tuple[Keys, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Find the keys from which on each group has about the wanted number of keys.

    Radix selection: one pass over the stream for each digit, 4 MiB a wanted number.
    Equal keys stay together, on the side that comes nearer to the number.

    Args:
        stream: The keys.
        totals: Keys in each group ``[G]``.
        wanted: How many of the largest, ``[T, G]``, at most ``totals``.

    Returns:
        The lowest key of the largest ones, whether there are any, and how many there
        are, ``[T, G]`` each.
    """
    num_groups = len(totals)
    bits = max(1, min(16, (_CELLS // num_groups).bit_length() - 1))
    place: npt.NDArray[Any] = (
        totals[None, :] - wanted
    )  # ascending, from 0; equal to totals: none wanted
    prefix = np.zeros(wanted.shape, dtype=np.uint64)
    above = np.zeros(wanted.shape, dtype=np.int64)
    equal = np.zeros(wanted.shape, dtype=np.int64)
    left = _KEY_BITS
    while left:
        step = min(bits, left)
        left -= step
        counts = _histograms(stream, prefix, left, step, num_groups)
        ends = counts.cumsum(axis=2)
        digit = (ends <= place[:, :, None]).sum(axis=2)
        digit = np.minimum(digit, (1 << step) - 1)
        at = digit[:, :, None]
        equal = np.take_along_axis(counts, at, axis=2)[:, :, 0]
        end = np.take_along_axis(ends, at, axis=2)[:, :, 0]
        above += ends[:, :, -1] - end
        place = place - (end - equal)
        prefix = (prefix << np.uint64(step)) | digit.astype(np.uint64)
    takes_equal = (above + equal - wanted <= wanted - above) | (above == 0)
    lowest = np.where(takes_equal, prefix, prefix + np.uint64(1))
    is_any = wanted > 0
    return lowest, is_any, np.where(is_any, above + equal * takes_equal, 0)


def _histograms(
    stream: Stream, prefix: Keys, left: int, step: int, num_groups: int
) -> npt.NDArray[np.int64]:
    """Count the next digit of the keys that begin with a prefix, ``[T, G, 2**step]``."""
    counts = np.zeros((len(prefix), num_groups << step), dtype=np.int64)
    for keys, groups in stream():
        rest = keys >> np.uint64(left)
        cells = (groups << step) + (rest & np.uint64((1 << step) - 1)).astype(np.int64)
        heads = rest >> np.uint64(step) if left + step < _KEY_BITS else None
        for k in range(len(prefix)):
            held = cells if heads is None else cells[heads == prefix[k][groups]]
            counts[k] += np.bincount(held, minlength=counts.shape[1])
    return counts.reshape(len(prefix), num_groups, 1 << step)
