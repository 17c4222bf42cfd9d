"""SIMT execution of loops over rows, in closed form: what 32 lanes in lock-step would do.

A warp of 32 lanes runs its loop until its last lane is done. Given how many entries each
row has (``lengths``, in the order of the list) and who walks them, the number of steps of
every warp, the lanes active in each step and the work of every CTA follow without running
anything: here in one pass over the rows, O(1) per row but for a sort of at most 32.

``counts`` collects, as int64: see :data:`STEPS` and those after it. For every mapping
``32 * STEPS == ACTIVE + INTRA + INTER``: a lane idles because its own row's last entries
do not fill its lanes (intra-task), or because its row is done and the warp's others are
not (inter-task; the split is that of Cheng et al., "Understanding the SIMD efficiency of
graph traversal on GPU", 2014). ``histogram[k]`` is the number of steps with ``k`` active
lanes. A warp takes ``cost[0] + cost[1] * steps``, a CTA as long as its longest warp.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_inline_jit, lean_jit

WARP = 32
STEPS = 0
"""Steps of all warps."""
ACTIVE = 1
"""Lanes at work in all steps."""
INTRA = 2
"""Lanes idle although their row is not done."""
INTER = 3
"""Lanes idle because they have no row, or a shorter one."""
WARPS = 4
"""Warps launched."""
NUM_COUNTS = 5

Counts = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int64]
Times = npt.NDArray[np.float64]


@lean_inline_jit
def _warp_steps(
    lengths: Any,
    first: Any,
    size: Any,
    lanes: Any,
    scratch: Any,
    histogram: Any,
    counts: Any,
) -> Any:
    """Account for a warp that walks ``size`` rows with ``lanes`` lanes each.

    The rows are sorted by their number of full rounds; between two of those numbers the
    same lanes are active in every step.
    """
    for i in range(size):
        length = lengths[first + i]
        full, rest = length // lanes, length % lanes
        # Insertion: 32 rows at most, often of like length.
        k = i
        while k > 0 and scratch[0, k - 1] > full:
            scratch[0, k], scratch[1, k] = scratch[0, k - 1], scratch[1, k - 1]
            k -= 1
        scratch[0, k], scratch[1, k] = full, rest
    at, done, steps = np.int64(0), np.int64(0), np.int64(0)
    while done < size:
        full = scratch[0, done]
        if full > at:
            histogram[lanes * (size - done)] += full - at
        rest = np.int64(0)
        while done < size and scratch[0, done] == full:
            rest += scratch[1, done]
            done += 1
        # One step in which rows of this many rounds use what is left of their lanes.
        active = lanes * (size - done) + rest
        steps = full
        if active > 0:
            histogram[active] += 1
            steps = full + 1
        at = full + 1
    for k in range(size):
        entries = scratch[0, k] * lanes + scratch[1, k]
        own = scratch[0, k] + (1 if scratch[1, k] > 0 else 0)
        counts[ACTIVE] += entries
        counts[INTRA] += own * lanes - entries
        counts[INTER] += lanes * (steps - own)
    counts[INTER] += steps * (WARP - lanes * size)
    counts[STEPS] += steps
    counts[WARPS] += 1
    return steps


@lean_jit
def walk_by_groups(
    lengths: Lengths,
    lanes: int,
    warps_per_cta: int,
    cost: Times,
    scratch: Counts,
    histogram: Counts,
    counts: Counts,
    cta_times: Times,
    cta_cvs: Times,
) -> None:
    """Walk each row with ``lanes`` lanes: 1 is a thread per row, 32 a warp per row.

    Args:
        lengths: Entries of each row ``[n]``.
        lanes: 1, 2, 4, 8, 16 or 32.
        warps_per_cta: Warps of a CTA.
        cost: Instructions of a warp per item and per step, float64 ``[2]``.
        scratch: int64 ``[2, 32]``.
        histogram: Receives the steps by active lanes, int64 ``[33]``; added to.
        counts: Receives the totals, int64 ``[5]``; added to.
        cta_times: Receives the time of every CTA ``[C]``.
        cta_cvs: Receives sigma / mu of the times of every CTA's warps ``[C]``.
    """
    per_warp = WARP // lanes
    num_rows = len(lengths)
    num_warps = (num_rows + per_warp - 1) // per_warp
    cta, inside, mean, squares, longest = 0, 0, 0.0, 0.0, 0.0
    for w in range(num_warps):
        first = w * per_warp
        size = min(per_warp, num_rows - first)
        steps = _warp_steps(lengths, first, size, lanes, scratch, histogram, counts)
        time = cost[0] + cost[1] * steps
        inside += 1
        # Welford's update: the variance of one pass, without the cancellation of sums of
        # squares.
        delta = time - mean
        mean += delta / inside
        squares += delta * (time - mean)
        longest = max(longest, time)
        if inside == warps_per_cta or w == num_warps - 1:
            cta_times[cta] = longest
            cta_cvs[cta] = math.sqrt(squares / inside) / mean if mean > 0.0 else 0.0
            cta += 1
            inside, mean, squares, longest = 0, 0.0, 0.0, 0.0


@lean_jit
def walk_by_ctas(
    lengths: Lengths,
    warps_per_cta: int,
    cost: Times,
    histogram: Counts,
    counts: Counts,
    cta_times: Times,
    cta_cvs: Times,
) -> None:
    """Walk each row with a whole CTA; the arguments are those of :func:`walk_by_groups`."""
    threads = warps_per_cta * WARP
    for i in range(len(lengths)):
        length = lengths[i]
        rounds, rest = length // threads, length % threads
        ahead = (rest + WARP - 1) // WARP  # warps with one step more than the others
        steps = rounds * warps_per_cta + ahead
        histogram[WARP] += length // WARP
        if length % WARP > 0:
            histogram[length % WARP] += 1
        counts[STEPS] += steps
        counts[ACTIVE] += length
        counts[INTRA] += WARP * steps - length
        counts[WARPS] += warps_per_cta
        share = ahead / warps_per_cta
        mean = cost[0] + cost[1] * (rounds + share)
        cta_times[i] = cost[0] + cost[1] * (rounds + (1 if ahead > 0 else 0))
        # Warps take one of two times, so that their spread is that of a Bernoulli variable.
        spread = cost[1] * math.sqrt(share * (1.0 - share))
        cta_cvs[i] = spread / mean if mean > 0.0 else 0.0


@lean_jit
def split_by_length(lengths: Lengths, low: int, high: int, rows: Counts) -> int:
    """List the rows with ``low <= length < high``; return how many there are.

    Args:
        lengths: Entries of each row ``[n]``.
        low: Least length.
        high: First length too large.
        rows: Receives their places in the list ``[n]``.
    """
    found = 0
    for i in range(len(lengths)):
        if low <= lengths[i] < high:
            rows[found] = i
            found += 1
    return found


@lean_inline_jit
def _is_before(time: Any, slot: Any, other_time: Any, other_slot: Any) -> bool:
    before: bool = time < other_time or (time == other_time and slot < other_slot)
    return before


@lean_jit
def dispatch_greedily(
    cta_times: Times,
    num_sms: int,
    free_at: Times,
    slots: Counts,
    busy: Times,
    ctas: Counts,
    finish: Times,
) -> None:
    """Give every CTA to the slot that is free first: list scheduling.

    Slot ``s`` is the ``s // num_sms``-th place of SM ``s % num_sms``, so the first CTAs go
    round; ties go to the smaller slot. A binary heap holds the slots by the time at which
    they are free.

    Args:
        cta_times: Time of every CTA ``[C]``.
        num_sms: SMs.
        free_at: Zeros ``[S]``; destroyed.
        slots: 0, 1, 2 ... int64 ``[S]``; destroyed.
        busy: Receives the summed time of every SM's CTAs ``[M]``; zeros.
        ctas: Receives how many CTAs every SM got ``[M]``; zeros.
        finish: Receives when every SM ends ``[M]``; zeros.
    """
    size = len(free_at)
    for c in range(len(cta_times)):
        slot = slots[0]
        # The root is replaced in place and sinks: one pass, where taking and adding need
        # two.
        end = free_at[0] + cta_times[c]
        sm = slot % num_sms
        busy[sm] += cta_times[c]
        ctas[sm] += 1
        finish[sm] = max(finish[sm], end)
        k = 0
        while True:
            child = 2 * k + 1
            if child >= size:
                break
            right = child + 1
            if right < size and _is_before(
                free_at[right], slots[right], free_at[child], slots[child]
            ):
                child = right
            if not _is_before(free_at[child], slots[child], end, slot):
                break
            free_at[k], slots[k] = free_at[child], slots[child]
            k = child
        free_at[k], slots[k] = end, slot
