"""Sectors and lines of the requests for rows of values: features, embeddings.

Lanes take the columns of an entry's row of values, then those of the next entry, one after
the other: a request is up to 32 neighboring columns of one or of several rows, and one
load of the index of each lane's entry. A thread that has a row of entries for itself goes
through the columns alone, so that 32 lanes read one column of 32 different rows.

The tallies are those of :mod:`~graphsys.kernels.cpu.simt.sectors`; arrays begin at a
multiple of 128 bytes. Values lie in place ``indices[e] * width + column``.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.simt.sectors import (
    CONFLICTS,
    ENTRIES,
    INDEX_LINES,
    INDEX_SECTORS,
    LANES,
    REQUESTS,
    VALUE_LINES,
    VALUE_SECTORS,
    WARP,
    Array,
    Scratch,
    Tallies,
    is_new,
)
from graphsys.kernels.jit import lean_inline_jit, lean_jit

_SECTOR: Final = 5  # log2 of bytes
_LINE: Final = 7

WIDTH, VALUE_BYTES, INDEX_SHIFT = 0, 1, 2
"""Places in the sizes: columns of a row, bytes of a value, log2 of a sector's indices."""
NUM_SIZES = 3


@lean_inline_jit
def _tally_piece(
    entry: Any,
    node: Any,
    low: Any,
    high: Any,
    sizes: Any,
    scratch: Any,
    stamp: Any,
    tallies: Any,
) -> None:
    """Account for columns ``low`` to ``high`` of an entry's row in a request."""
    tallies[ENTRIES] += 1
    sector = entry >> sizes[INDEX_SHIFT]
    if is_new(scratch, 0, sector, stamp):
        tallies[INDEX_SECTORS] += 1
        if is_new(scratch, 2, sector >> 2, stamp):
            tallies[INDEX_LINES] += 1
    row = node * sizes[WIDTH]
    begin = ((row + low) * sizes[VALUE_BYTES]) >> _SECTOR
    end = ((row + high) * sizes[VALUE_BYTES] - 1) >> _SECTOR
    for sector in range(begin, end + 1):
        if is_new(scratch, 4, sector, stamp):
            tallies[VALUE_SECTORS] += 1
            if is_new(scratch, 6, sector >> 2, stamp):
                tallies[VALUE_LINES] += 1


@lean_jit
def tally_wide_by_groups(
    starts: Array,
    lengths: Array,
    rows: Array,
    lanes: int,
    indices: Array,
    sizes: npt.NDArray[np.int64],
    scratch: Scratch,
    tallies: Tallies,
) -> None:
    """Tally the requests of warps that walk ``32 // lanes`` rows at a time.

    Args:
        starts: Place of each row's first entry ``[n]``.
        lengths: Entries of each row ``[n]``.
        rows: Which of them are walked, in order ``[r]``.
        lanes: Lanes per row: 2, 4, 8, 16 or 32.
        sizes: See :data:`WIDTH`, int64 ``[3]``.
        scratch: int64 ``[TABLES, 64]``, zeros at first.
        tallies: Receives the sums, int64 ``[8]``; zeros at first.
    """
    per_warp, width = WARP // lanes, sizes[WIDTH]
    for first in range(0, len(rows), per_warp):
        last = min(first + per_warp, len(rows))
        longest = np.int64(0)
        for i in range(first, last):
            longest = max(longest, np.int64(lengths[rows[i]]) * width)
        for begin in range(0, longest, lanes):
            stamp = tallies[REQUESTS] + 1
            for i in range(first, last):
                row = rows[i]
                start = np.int64(starts[row])
                k = np.int64(begin)
                end = min(k + lanes, np.int64(lengths[row]) * width)
                if k < end:
                    tallies[LANES] += end - k
                while k < end:
                    entry, low = start + k // width, k % width
                    high = min(low + end - k, width)
                    node = np.int64(indices[entry])
                    _tally_piece(entry, node, low, high, sizes, scratch, stamp, tallies)
                    k += high - low
            tallies[REQUESTS] = stamp


@lean_jit
def tally_wide_by_threads(
    starts: Array,
    lengths: Array,
    rows: Array,
    indices: Array,
    sizes: npt.NDArray[np.int64],
    scratch: Scratch,
    tallies: Tallies,
) -> None:
    """Tally the requests of warps whose lanes walk a row of entries each.

    All lanes are at the same column. Rows of at least a line have different lines there,
    so that one column stands for all. The arguments are those of
    :func:`tally_wide_by_groups`.
    """
    width = sizes[WIDTH]
    is_long = width * sizes[VALUE_BYTES] >= 1 << _LINE
    columns = np.int64(1) if is_long else width
    times = width // columns
    for first in range(0, len(rows), WARP):
        last = min(first + WARP, len(rows))
        longest = np.int64(0)
        for i in range(first, last):
            longest = max(longest, np.int64(lengths[rows[i]]))
        for k in range(longest):
            for column in range(columns):
                before = (
                    tallies[ENTRIES],
                    tallies[INDEX_SECTORS],
                    tallies[INDEX_LINES],
                    tallies[VALUE_SECTORS],
                    tallies[VALUE_LINES],
                )
                stamp, active = tallies[REQUESTS] + 1, 0
                for i in range(first, last):
                    row = rows[i]
                    if k < lengths[row]:
                        entry = np.int64(starts[row]) + k
                        node = np.int64(indices[entry])
                        _tally_piece(
                            entry, node, column, column + 1, sizes, scratch, stamp, tallies
                        )
                        active += 1
                tallies[ENTRIES] += (times - 1) * (tallies[ENTRIES] - before[0])
                tallies[INDEX_SECTORS] += (times - 1) * (tallies[INDEX_SECTORS] - before[1])
                tallies[INDEX_LINES] += (times - 1) * (tallies[INDEX_LINES] - before[2])
                tallies[VALUE_SECTORS] += (times - 1) * (tallies[VALUE_SECTORS] - before[3])
                tallies[VALUE_LINES] += (times - 1) * (tallies[VALUE_LINES] - before[4])
                tallies[REQUESTS] += times
                tallies[LANES] += times * active


@lean_jit
def tally_wide_by_edges(
    starts: Array,
    lengths: Array,
    indices: Array,
    sizes: npt.NDArray[np.int64],
    scratch: Scratch,
    tallies: Tallies,
) -> None:
    """Tally the requests of warps that take 32 columns of the joined rows each.

    Lanes add to the columns of their own row: the conflicts are the most lanes of a
    request with the same column of the same row. The arguments are those of
    :func:`tally_wide_by_groups`.
    """
    width = sizes[WIDTH]
    active, most = np.int64(0), np.int64(0)
    for row in range(len(lengths)):
        start = np.int64(starts[row])
        k, end, in_row = np.int64(0), np.int64(lengths[row]) * width, np.int64(0)
        while k < end:
            entry, low = start + k // width, k % width
            high = min(low + min(end - k, WARP - active), width)
            node, stamp = np.int64(indices[entry]), tallies[REQUESTS] + 1
            _tally_piece(entry, node, low, high, sizes, scratch, stamp, tallies)
            active += high - low
            in_row += high - low
            k += high - low
            most = max(most, (in_row + width - 1) // width)
            if active == WARP:
                tallies[REQUESTS] = stamp
                tallies[LANES] += active
                tallies[CONFLICTS] += most
                active, most, in_row = np.int64(0), np.int64(0), np.int64(0)
    if active > 0:
        tallies[REQUESTS] += 1
        tallies[LANES] += active
        tallies[CONFLICTS] += most
