"""Caches of a GPU while it walks rows: which sectors each SM's L1, and the L2, still hold.

Every SM has some warps at a time. Turn by turn, each SM lets its next warp take a step, the
SMs one after the other, so that the L2 sees their requests interleaved. A warp's first step
reads where its rows begin and end; each later one the next entry of every lane's row, then
the values at those neighbors. Lanes that touch the same sector make one access. Nothing is
stored of the addresses: they follow from the rows while the simulation goes on.

A cache has sets of ways; the way that was used least recently is given up. A line is found
by its tag, and a sector of it by a bit: a line may be there without the sector.

Sets do not know of each other: those of some lines behave alike whether others are there or
not. ``slots`` says, for the remainder of a line's number by its length (a power of two that
divides the sets of both levels), where its requests are counted, or -1 that they are left
out. A length of 1 leaves nothing out, and requests are counted by SM.

``config`` holds, as int64: see :data:`LANES` and those after it. A cache's state is its
tags (-1: empty), sectors as bits, and stamps, ``[sets, ways]`` each; every SM has an L1.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_inline_jit, lean_jit

WARP: Final = 32
LANES: Final = 0
"""Lanes that share a row: 1 or 32; and so on, by place in ``config``."""
WARPS: Final = 1
"""Warps of a CTA."""
PLACES: Final = 2
"""Warps that an SM holds at once, a multiple of ``WARPS``."""
INDEX_SHIFT: Final = 3
"""log2 of an index's bytes."""
VALUE_SHIFT: Final = 4
OFFSETS: Final = 5
"""Byte at which the rows' offsets begin; at OFFSETS + 1 the indices, + 2 the values."""
HAS_INDICES: Final = 8
"""Whether offsets and indices are read, or addresses computed."""
IS_ATOMIC: Final = 9
"""Whether values are added to, past the L1."""
UNIT: Final = 10
"""log2 of the bytes that the L1 brings at a miss: 5 a sector, 7 a line."""
WIDTH: Final = 11
"""Values of an entry, side by side: lanes take one of them each, then the next entry's."""
NUM_CONFIG: Final = 12

NUM_ARRAYS: Final = 3
ACCESSES: Final = 0
"""Distinct sectors of requests (lines, where the L1 brings them), by array; and so on."""
L1_ASKED: Final = 1
"""Of them, those asked of the L1: all but atomics'."""
L1_HITS: Final = 2
L2_ACCESSES: Final = 3
L2_HITS: Final = 4
NUM_TALLIES: Final = 5

Array = npt.NDArray[Any]


@lean_inline_jit
def _touch(tags: Any, bits: Any, stamps: Any, sector: Any, now: Any, wanted: Any) -> Any:
    """Look a sector up and bring ``wanted`` bits of its line; say if it was there."""
    line = sector >> 2
    row = line % tags.shape[0]
    bit = np.int64(1) << (sector & 3)
    oldest = 0
    for way in range(tags.shape[1]):
        if tags[row, way] == line:
            stamps[row, way] = now
            was_there = (bits[row, way] & bit) != 0
            bits[row, way] |= wanted
            return was_there
        if stamps[row, way] < stamps[row, oldest]:
            oldest = way
    tags[row, oldest], bits[row, oldest], stamps[row, oldest] = line, wanted, now
    return False


@lean_inline_jit
def _access(
    sector: Any,
    kind: Any,
    sm: Any,
    at: Any,
    config: Any,
    l1: Any,
    l2: Any,
    clock: Any,
    tallies: Any,
) -> None:
    """Ask an SM's L1 for a sector, and the L2 for what it lacks; count it ``at``."""
    clock[0] += 1
    now = clock[0]
    tallies[at, ACCESSES, kind] += 1
    skips = kind == 2 and config[IS_ATOMIC] != 0
    is_line = config[UNIT] == 7
    bit = np.int64(1) << (sector & 3)
    # Atomics are done in the L2: the L1 neither answers nor keeps them.
    if not skips:
        tallies[at, L1_ASKED, kind] += 1
        wanted = np.int64(15) if is_line else bit
        if _touch(l1[0, sm], l1[1, sm], l1[2, sm], sector, now, wanted):
            tallies[at, L1_HITS, kind] += 1
            return
    # A line that the L1 brings is four requests of the L2, one for each sector.
    first, last = sector, sector + 1
    if is_line and not skips:
        last = sector + 4
    for it in range(first, last):
        tallies[at, L2_ACCESSES, kind] += 1
        own = np.int64(1) << (it & 3)
        if _touch(l2[0], l2[1], l2[2], it, now, own):
            tallies[at, L2_HITS, kind] += 1


@lean_inline_jit
def _request(
    scratch: Any,
    which: Any,
    size: Any,
    kind: Any,
    sm: Any,
    config: Any,
    slots: Any,
    l1: Any,
    l2: Any,
    clock: Any,
    tallies: Any,
) -> None:
    """Make one access for every distinct sector among the lanes', in their order.

    Where the L1 brings lines it is asked for lines: once for all sectors of one.
    """
    shift = config[UNIT] - 5
    if kind == 2 and config[IS_ATOMIC] != 0:
        shift = np.int64(0)
    for i in range(size):
        sector = scratch[which, i] >> shift << shift
        # 32 lanes at most: looking through them is cheaper than any set.
        is_new = True
        for k in range(i):
            if scratch[which, k] >> shift << shift == sector:
                is_new = False
                break
        if is_new:
            at = sm if len(slots) == 1 else slots[(sector >> 2) & (len(slots) - 1)]
            _access(sector, kind, sm, at, config, l1, l2, clock, tallies)


@lean_inline_jit
def _begin(
    first: Any,
    rows: Any,
    lengths: Any,
    sm: Any,
    config: Any,
    slots: Any,
    l1: Any,
    l2: Any,
    clock: Any,
    tallies: Any,
    scratch: Any,
) -> Any:
    """Read where a warp's rows begin and end; return the steps that it has to go."""
    steps, lanes = np.int64(0), config[LANES]
    last = min(first + WARP // lanes, rows)
    for row in range(first, last):
        steps = max(steps, (np.int64(lengths[row]) + lanes - 1) // lanes)
    if config[HAS_INDICES]:
        # Ends are the begins of the rows behind: two loads, as the kernel's code has them.
        for end in range(2):
            size = 0
            for row in range(first, last):
                sector = (config[OFFSETS] + 8 * (row + end)) >> 5
                if slots[(sector >> 2) & (len(slots) - 1)] >= 0:
                    scratch[0, size] = sector
                    size += 1
            _request(scratch, 0, size, 0, sm, config, slots, l1, l2, clock, tallies)
    return steps


@lean_inline_jit
def _step(
    first: Any,
    at: Any,
    rows: Any,
    starts: Any,
    lengths: Any,
    indices: Any,
    sm: Any,
    config: Any,
    slots: Any,
    l1: Any,
    l2: Any,
    clock: Any,
    tallies: Any,
    scratch: Any,
) -> None:
    """Take a step of a warp's loop: entries, then their values."""
    lanes, width = config[LANES], config[WIDTH]
    mask, size, values = len(slots) - 1, 0, 0
    for row in range(first, min(first + WARP // lanes, rows)):
        for e in range(at * lanes, min((at + 1) * lanes, np.int64(lengths[row]))):
            entry = np.int64(starts[row]) + e // width
            sector = (config[OFFSETS + 1] + (entry << config[INDEX_SHIFT])) >> 5
            if slots[(sector >> 2) & mask] >= 0:
                scratch[0, size] = sector
                size += 1
            column = np.int64(indices[entry]) * width + e % width
            sector = (config[OFFSETS + 2] + (column << config[VALUE_SHIFT])) >> 5
            if slots[(sector >> 2) & mask] >= 0:
                scratch[1, values] = sector
                values += 1
    if config[HAS_INDICES]:
        _request(scratch, 0, size, 1, sm, config, slots, l1, l2, clock, tallies)
    _request(scratch, 1, values, 2, sm, config, slots, l1, l2, clock, tallies)


@lean_inline_jit
def _begin_cta(cta: Any, rows: Any, sm: Any, group: Any, config: Any, state: Any) -> None:
    """Give places of an SM to a CTA: as many warps as it has rows for."""
    per_warp, begun = WARP // config[LANES], 0
    for w in range(config[WARPS]):
        first = (cta * config[WARPS] + w) * per_warp
        if first < rows:
            state[sm, 0, group + w] = first
            state[sm, 1, group + w], state[sm, 2, group + w] = -1, 0
            begun += 1
    state[sm, 3, group] = begun


@lean_jit
def run_caches(
    starts: Array,
    lengths: Array,
    indices: Array,
    config: npt.NDArray[np.int64],
    slots: npt.NDArray[np.int64],
    l1: npt.NDArray[np.int64],
    l2: npt.NDArray[np.int64],
    clock: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
    turns: npt.NDArray[np.int64],
    scratch: npt.NDArray[np.int64],
    stride: int,
    tallies: npt.NDArray[np.int64],
) -> None:
    """Run one launch through the caches.

    Args:
        starts: Place of each row's first entry ``[n]``.
        lengths: Entries visited of each row, times the columns of each ``[n]``.
        config: See above, int64 ``[NUM_CONFIG]``.
        slots: See above, int64; ``[1]`` where nothing is left out.
        l1: Tags, bits and stamps of the SMs that are simulated,
            int64 ``[3, S, sets, ways]``.
        l2: The same of the L2, int64 ``[3, sets, ways]``.
        clock: Accesses so far, int64 ``[1]``.
        state: Scratch, int64 ``[S, 4, P]``: of each place the warp's first row (-1: none),
            its steps, those taken, and the CTA's warps that are not done.
        turns: int64 ``[2, S]``: each SM's first CTA, which goes on to the next; scratch.
        scratch: int64 ``[2, 32]``.
        stride: SMs that there are: an SM's next CTA is so many further on.
        tallies: Receives sums by SM, or by slot, int64 ``[S, NUM_TALLIES, NUM_ARRAYS]``.
    """
    num_sms, places, warps = l1.shape[1], config[PLACES], config[WARPS]
    rows, per_cta = len(lengths), WARP // config[LANES] * warps
    ctas = (rows + per_cta - 1) // per_cta
    for sm in range(num_sms):
        turns[1, sm] = 0
        for p in range(places):
            state[sm, 0, p], state[sm, 3, p] = -1, 0
    is_busy = True
    while is_busy:
        is_busy = False
        for sm in range(num_sms):
            for group in range(0, places, warps):  # a CTA's places are given on together
                if state[sm, 3, group] == 0 and turns[0, sm] < ctas:
                    _begin_cta(turns[0, sm], rows, sm, group, config, state)
                    turns[0, sm] += stride
            for k in range(places):
                # Round robin: the warp behind the last one that took a step comes first.
                p = (turns[1, sm] + k) % places
                first = state[sm, 0, p]
                if first < 0:
                    continue
                is_busy = True
                turns[1, sm] = p + 1
                if state[sm, 1, p] < 0:
                    state[sm, 1, p] = _begin(
                        first,
                        rows,
                        lengths,
                        sm,
                        config,
                        slots,
                        l1,
                        l2,
                        clock,
                        tallies,
                        scratch,
                    )
                else:
                    at = state[sm, 2, p]
                    _step(
                        first,
                        at,
                        rows,
                        starts,
                        lengths,
                        indices,
                        sm,
                        config,
                        slots,
                        l1,
                        l2,
                        clock,
                        tallies,
                        scratch,
                    )
                    state[sm, 2, p] += 1
                if state[sm, 2, p] >= state[sm, 1, p]:
                    state[sm, 0, p] = -1
                    state[sm, 3, p // warps * warps] -= 1
                break
