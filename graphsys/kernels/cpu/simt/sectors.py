"""Sectors, lines and conflicts of the memory requests that warps would make, exactly.

A warp's load is served in sectors of 32 bytes, four to a line of 128. For each step of each
warp the entries that its lanes visit are known, and with them the addresses of two loads:
``indices[e]``, and ``x[indices[e]]``. A request costs as many sectors as its active lanes
touch; arrays are taken to begin at a multiple of 128 bytes, as CUDA aligns them.
Where lanes add to ``x[indices[e]]``, the largest number of them at one address is how
often the hardware must serialize the request.

Distinct sectors are counted with tables of 64 places: an entry is valid if its stamp is the
request's number, so nothing is cleared between requests.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_inline_jit, lean_jit

WARP = 32
REQUESTS = 0
"""Requests of warps for ``indices``, and as many for ``x``."""
LANES = 1
"""Lanes active in them."""
INDEX_SECTORS = 2
INDEX_LINES = 3
VALUE_SECTORS = 4
VALUE_LINES = 5
CONFLICTS = 6
"""Sum over requests of the most lanes at one address."""
ENTRIES = 7
"""Sum over requests of the indices they want, where several lanes may want the same one."""
NUM_TALLIES = 8

_PLACES = 64
TABLES = 10
"""Rows of the scratch: keys and stamps of four tables, multiplicities, lanes' entries."""
_LANES_OF, _TIMES = 8, 9

Array = npt.NDArray[Any]
Tallies = npt.NDArray[np.int64]
Scratch = npt.NDArray[np.int64]


@lean_inline_jit
def _find(scratch: Any, table: Any, key: Any, stamp: Any) -> Any:
    """Return the place of a key in a table, or where it belongs if its stamp is older."""
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58))
    while scratch[table + 1, slot] == stamp and scratch[table, slot] != key:
        slot = (slot + 1) & (_PLACES - 1)
    return slot


@lean_inline_jit
def is_new(scratch: Any, table: Any, key: Any, stamp: Any) -> bool:
    """Put a key into a table; return whether it was not there since the stamp."""
    slot = _find(scratch, table, key, stamp)
    if scratch[table + 1, slot] == stamp:
        return False
    scratch[table, slot], scratch[table + 1, slot] = key, stamp
    return True


@lean_inline_jit
def _tally(
    size: Any, indices: Any, shifts: Any, scatters: Any, scratch: Any, tallies: Any
) -> None:
    """Account for one request of ``size`` lanes, whose entries stand in the scratch."""
    stamp = tallies[REQUESTS] + 1
    most = np.int64(0)
    index_shift, value_shift = shifts[0], shifts[1]
    for lane in range(size):
        entry = scratch[_LANES_OF, lane]
        sector = entry >> index_shift
        if is_new(scratch, 0, sector, stamp):
            tallies[INDEX_SECTORS] += 1
            if is_new(scratch, 2, sector >> 2, stamp):
                tallies[INDEX_LINES] += 1
        node = np.int64(indices[entry])
        sector = node >> value_shift
        if is_new(scratch, 4, sector, stamp):
            tallies[VALUE_SECTORS] += 1
            if is_new(scratch, 6, sector >> 2, stamp):
                tallies[VALUE_LINES] += 1
    if scatters:
        # a second stamp, so that the first table can serve the nodes as well
        for lane in range(size):
            node = np.int64(indices[scratch[_LANES_OF, lane]])
            slot = _find(scratch, 0, node, -stamp)
            if scratch[1, slot] != -stamp:
                scratch[0, slot], scratch[1, slot] = node, -stamp
                scratch[_TIMES, slot] = 0
            scratch[_TIMES, slot] += 1
            most = max(most, scratch[_TIMES, slot])
    tallies[REQUESTS] = stamp
    tallies[LANES] += size
    tallies[CONFLICTS] += most


@lean_jit
def tally_by_groups(
    starts: Array,
    lengths: Array,
    rows: Array,
    lanes: int,
    indices: Array,
    shifts: npt.NDArray[np.int64],
    scatters: bool,
    order: npt.NDArray[np.int64],
    scratch: Scratch,
    tallies: Tallies,
) -> None:
    """Tally the requests of warps that walk ``32 // lanes`` rows at a time.

    Args:
        starts: Place of each row's first entry ``[n]``.
        lengths: Entries visited of each row ``[n]``.
        rows: Which of them are walked, in order ``[r]``.
        lanes: Lanes per row: 1, 2, 4, 8, 16 or 32.
        shifts: log2 of how many ``indices``, and how many values, a sector holds.
        scatters: Whether lanes add to the neighbors, so that they can collide.
        order: int64 ``[32]``, scratch.
        scratch: int64 ``[TABLES, 64]``, zeros at first.
        tallies: Receives the sums, int64 ``[8]``; zeros at first.
    """
    per_warp = WARP // lanes
    for first in range(0, len(rows), per_warp):
        size = min(per_warp, len(rows) - first)
        for i in range(size):  # ascending by length: those still active are at the end
            row = rows[first + i]
            k = i
            while k > 0 and lengths[order[k - 1]] > lengths[row]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = row
        low, begin = 0, np.int64(0)
        while True:
            # Rows that have ended are in front: each is left behind once.
            while low < size and lengths[order[low]] <= begin:
                low += 1
            if low == size:
                break
            active = 0
            for i in range(low, size):
                row = order[i]
                start = np.int64(starts[row])
                for e in range(begin, min(begin + lanes, np.int64(lengths[row]))):
                    scratch[_LANES_OF, active] = start + e
                    active += 1
            _tally(active, indices, shifts, scatters, scratch, tallies)
            begin += lanes


@lean_jit
def tally_by_edges(
    starts: Array,
    lengths: Array,
    indices: Array,
    shifts: npt.NDArray[np.int64],
    scatters: bool,
    scratch: Scratch,
    tallies: Tallies,
) -> None:
    """Tally the requests of warps that take 32 entries of the joined rows each.

    Lanes that do not scatter to the neighbors add to their own row: then the conflicts
    are the most lanes of a request with the same row. The arguments are those of
    :func:`tally_by_groups`.
    """
    active = 0
    most, in_row = np.int64(0), np.int64(0)
    for row in range(len(lengths)):
        start = np.int64(starts[row])
        in_row = np.int64(0)
        for e in range(np.int64(lengths[row])):
            scratch[_LANES_OF, active] = start + e
            active += 1
            in_row += 1
            most = max(most, in_row)
            if active == WARP:
                _tally(active, indices, shifts, scatters, scratch, tallies)
                if not scatters:
                    tallies[CONFLICTS] += most
                active, most, in_row = 0, np.int64(0), np.int64(0)
    if active > 0:
        _tally(active, indices, shifts, scatters, scratch, tallies)
        if not scatters:
            tallies[CONFLICTS] += most
