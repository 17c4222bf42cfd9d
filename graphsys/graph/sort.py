"""Sorting by 64-bit keys with threads: the driver of the radix kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import num_cores, run_parallel
from graphsys.kernels.cpu import radix

Allocate = Callable[[int, Any], npt.NDArray[Any]]
"""Makes an uninitialised array of a length and a dtype; may be backed by a file."""

_SMALL = 1 << 15


def sort_keys(
    keys: npt.NDArray[np.uint64],
    values: npt.NDArray[Any] | None = None,
    *,
    allocate: Allocate = np.empty,
    num_threads: int | None = None,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[Any] | None]:
    """Sort keys, stably, and carry values along.

    Keys alone go to numpy, whose vectorised sort is several times faster than a radix
    sort; with values, our own radix sort beats ``argsort`` and a gather.

    Args:
        keys: uint64 ``[n]``; **overwritten**.
        values: Any dtype ``[n]``, or None; **overwritten**.
        allocate: Where the second copies come from.
        num_threads: Threads; all processors by default.

    Returns:
        Sorted keys and the values in their order (each one of the two copies).

    Complexity:
        O(n) per byte in which the keys differ.
    """
    if values is None:
        keys.sort()
        return keys, None
    length = len(keys)
    threads = 1 if length < _SMALL else num_threads or num_cores()
    parts = radix.slices(length, threads)
    digits = _find_digits(keys, parts, threads)
    if not digits:
        return keys, values
    other = allocate(length, np.uint64)
    other_values = allocate(length, values.dtype)
    for digit in digits:
        _pass(keys, values, other, other_values, parts, 8 * digit, threads)
        keys, other = other, keys
        values, other_values = other_values, values
    return keys, values


def _find_digits(
    keys: npt.NDArray[np.uint64], parts: list[slice], threads: int
) -> list[int]:
    counts = np.zeros((len(parts), 8, 256), dtype=np.int64)
    run_parallel(
        lambda t: radix.count_digits(keys[parts[t]], counts[t]), range(threads), threads
    )
    return radix.varying_digits(counts.sum(axis=0))


def _pass(
    keys: npt.NDArray[np.uint64],
    values: npt.NDArray[Any],
    out: npt.NDArray[np.uint64],
    values_out: npt.NDArray[Any],
    parts: list[slice],
    shift: int,
    threads: int,
) -> None:
    counts = np.zeros((threads, 256), dtype=np.int64)
    run_parallel(
        lambda t: radix.count_digit(keys[parts[t]], shift, counts[t]),
        range(threads),
        threads,
    )
    starts = radix.digit_starts(counts)

    def scatter(t: int) -> None:
        part = parts[t]
        radix.scatter_pairs(keys[part], values[part], shift, starts[t], out, values_out)

    run_parallel(scatter, range(threads), threads)
