"""The most frequent value of a row."""

import numpy as np

from graphsys.kernels.jit import inline_jit

_SMALL = 24


@inline_jit
def row_mode(values, count, keys, tallies):  # type: ignore[no-untyped-def]
    """Return the most frequent of the first ``count`` values, the smallest among equals.

    Args:
        values: Values, integers or floats ``[>= count]``; may be reordered.
        count: How many, at least 1.
        keys: Scratch of the values' dtype; its length is a power of two >= 2 * count.
        tallies: Scratch, int64, as long; zeros in and out.

    Complexity:
        O(count): insertion sort for short rows, else a hash table.
    """
    if count <= _SMALL:
        for i in range(1, count):
            value = values[i]
            j = i - 1
            while j >= 0 and values[j] > value:
                values[j + 1] = values[j]
                j -= 1
            values[j + 1] = value
        best, most, run = values[0], 0, 0
        for i in range(count):
            run = run + 1 if i > 0 and values[i] == values[i - 1] else 1
            if run > most:
                best, most = values[i], run
        return best
    # Only as much of the scratch as this row needs, at most half full.
    mask = 1
    while mask < 2 * count:
        mask *= 2
    mask -= 1
    # A tally of 0 says that a slot is empty: keys need not be cleared.
    best, most = values[0], 0
    for i in range(count):
        value = values[i]
        slot = (
            np.int64(
                (np.uint64(np.int64(value)) * np.uint64(0x9E3779B97F4A7C15))
                >> np.uint64(20)
            )
            & mask
        )
        while tallies[slot] != 0 and keys[slot] != value:
            slot = (slot + 1) & mask
        keys[slot] = value
        tallies[slot] += 1
        # Compared as they grow: a tally passes its final value once, so no second pass is
        # needed.
        tally = tallies[slot]
        if tally > most or (tally == most and value < best):
            best, most = value, tally
    for k in range(mask + 1):
        tallies[k] = 0
    return best
