"""Stable LSD radix sort of 64-bit keys with values, by one or more threads.

 One counting pass finds the digits that vary, so constant bytes
cost nothing; every other digit is one scatter pass of both arrays. Threads own equal
slices of the input; the start of (digit, thread) in the output follows from all counts,
which keeps the sort stable and the threads apart without atomics.

Digits have 8 bits: 256 write streams stay within the first-level TLB, where 2,048 do not.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit

RADIX_BITS = 8
_BUCKETS = 1 << RADIX_BITS
_DIGITS = 64 // RADIX_BITS

Keys = npt.NDArray[np.uint64]


@jit
def count_digits(keys: Keys, counts: npt.NDArray[np.int64]) -> None:
    """Count every digit of every key.

    Args:
        keys: uint64 ``[n]``.
        counts: Receives the counts, int64 ``[8, 256]``, zeroed by the caller.
    """
    for key in keys:
        for digit in range(8):
            counts[digit, (key >> np.uint64(8 * digit)) & np.uint64(255)] += 1


@jit
def count_digit(keys: Keys, shift: int, counts: npt.NDArray[np.int64]) -> None:
    """Count one digit of every key into ``counts``, int64 ``[256]``, zeroed by the caller."""
    for key in keys:
        counts[(key >> np.uint64(shift)) & np.uint64(255)] += 1


@jit
def scatter_pairs(
    keys: Keys,
    values: npt.NDArray[Any],
    shift: int,
    starts: npt.NDArray[np.int64],
    out: Keys,
    values_out: npt.NDArray[Any],
) -> None:
    """Move keys and their values to their places by one digit.

    Args:
        keys: uint64 ``[n]``, this thread's slice.
        values: Any dtype ``[n]``.
        shift: Position of the digit in bits.
        starts: Next place of each digit value, int64 ``[256]``; advanced.
        out: The whole output, uint64.
        values_out: The whole output of the values.
    """
    for k in range(len(keys)):
        digit = (keys[k] >> np.uint64(shift)) & np.uint64(255)
        place = starts[digit]
        out[place] = keys[k]
        values_out[place] = values[k]
        starts[digit] = place + 1


def slices(length: int, num_threads: int) -> list[slice]:
    """Cut ``range(length)`` into equal contiguous slices, one for each thread."""
    bounds = np.linspace(0, length, num_threads + 1).astype(np.int64)
    return [slice(int(a), int(b)) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def varying_digits(counts: npt.NDArray[np.int64]) -> list[int]:
    """Return the digits that take more than one value, given :func:`count_digits`."""
    return [d for d in range(_DIGITS) if np.count_nonzero(counts[d]) > 1]


def digit_starts(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return where each thread puts each digit value, from its counts ``[threads, 256]``."""
    by_digit = counts.T.ravel()
    starts = np.concatenate(([0], np.cumsum(by_digit)[:-1]))
    return np.ascontiguousarray(starts.reshape(counts.shape[1], -1).T)
