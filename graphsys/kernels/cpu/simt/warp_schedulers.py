"""One warp scheduler of an SM, simulated cycle by cycle: who issues next.

Every warp runs bursts of instructions; the last of a burst is a load, and the next burst
waits for it. Each cycle one ready warp issues one instruction; cycles in which none is
ready are skipped. Loads go through a pipe that takes some cycles for each, then some
latency. A CTA's place is given to the next CTA when its last warp has its last load.

Policies: loose round-robin takes the next ready warp in turn; greedy-then-oldest stays with
a warp until it waits, then takes the oldest ready one; two-level goes round among a small
active set, which a warp leaves when it waits (Rogers et al., MICRO 2012; Narasiman et al.,
MICRO 2011).
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_inline_jit, lean_jit

Counts = npt.NDArray[np.int64]

ROUND_ROBIN: Final = 0
GREEDY: Final = 1
TWO_LEVEL: Final = 2

TODO: Final = 0
"""Bursts that a warp still has to begin or end; and so on, by row of the state."""
LEFT: Final = 1
READY: Final = 2
AGE: Final = 3
ACTIVE: Final = 4
NUM_STATES: Final = 5


@lean_inline_jit
def _oldest(state: Counts, now: int, active: int) -> int:
    """Return the oldest ready warp with this mark, or -1."""
    found = -1
    for p in range(state.shape[1]):
        is_ready = state[TODO, p] > 0 and state[READY, p] <= now
        is_older = found < 0 or state[AGE, p] < state[AGE, found]
        if is_ready and state[ACTIVE, p] == active and is_older:
            found = p
    return found


@lean_inline_jit
def _next(state: Counts, now: int, last: int, active: int) -> int:
    """Return the first ready warp with this mark after the last that issued, or -1."""
    size = state.shape[1]
    for k in range(1, size + 1):
        p: int = (last + k) % size
        is_ready = state[TODO, p] > 0 and state[READY, p] <= now
        if is_ready and state[ACTIVE, p] == active:
            return p
    return -1


@lean_inline_jit
def _choose(state: Counts, now: int, last: int, policy: int, group: int) -> int:
    if policy == ROUND_ROBIN:
        return _next(state, now, last, 0)
    if policy == GREEDY:
        if state[TODO, last] > 0 and state[READY, last] <= now:
            return last
        return _oldest(state, now, 0)
    room = group - int(state[ACTIVE].sum())
    while room > 0:
        p = _oldest(state, now, 0)
        if p < 0:
            break
        state[ACTIVE, p] = 1
        room -= 1
    return _next(state, now, last, 1)


@lean_inline_jit
def _begin_cta(
    bursts: Counts, state: Counts, begun: int, first: int, warps: int, length: int, now: int
) -> int:
    """Give places ``first`` on to the next CTA; return how many warps have begun then."""
    for p in range(first, first + warps):
        state[TODO, p] = bursts[begun] if begun < len(bursts) else 0
        state[LEFT, p], state[READY, p], state[AGE, p] = length, now, begun
        state[ACTIVE, p] = 0
        begun += 1
    return begun


@lean_jit
def run_warps(
    bursts: Counts,
    warps: int,
    length: int,
    latency: int,
    pipe: int,
    policy: int,
    group: int,
    state: Counts,
    ends: Counts,
) -> int:
    """Run all warps; return how many cycles that takes.

    Args:
        bursts: Bursts of every warp, at least 1, CTA by CTA, int64 ``[W]``.
        warps: Warps of a CTA; ``W`` is a multiple of it.
        length: Instructions of a burst.
        latency: Cycles from a load to its value.
        pipe: Cycles that a load keeps the pipe.
        policy: One of the codes above.
        group: Active warps of the two-level policy.
        state: Room for the resident warps, int64 ``[NUM_STATES, P]``, ``P`` a multiple of
            ``warps``.
        ends: Room for when the last load of each place's CTA comes, int64 ``[P / warps]``.
    """
    begun, now, free, last, finish = 0, 0, 0, 0, 0
    for first in range(0, state.shape[1], warps):
        begun = _begin_cta(bursts, state, begun, first, warps, length, 0)
        ends[first // warps] = 0
    while True:
        p = _choose(state, now, last, policy, group)
        if p < 0:
            # Nobody is ready: time jumps to the next load that comes, as cycles in between
            # are alike.
            soonest = -1
            for q in range(state.shape[1]):
                if state[TODO, q] > 0 and (soonest < 0 or state[READY, q] < soonest):
                    soonest = state[READY, q]
            if soonest < 0:
                return finish
            now = max(now + 1, soonest)
            continue
        now, last = now + 1, p
        state[LEFT, p] -= 1
        if state[LEFT, p] > 0:
            continue
        # Loads queue for the pipe; latency runs beside those of others.
        free = max(now, free) + pipe
        state[READY, p] = free + latency
        state[LEFT, p], state[ACTIVE, p] = length, 0
        state[TODO, p] -= 1
        finish = max(finish, state[READY, p])
        if state[TODO, p] > 0:
            continue
        cta = p // warps
        ends[cta] = max(ends[cta], state[READY, p])
        if state[TODO, cta * warps : (cta + 1) * warps].sum() == 0:
            first = cta * warps
            begun = _begin_cta(bursts, state, begun, first, warps, length, ends[cta])
