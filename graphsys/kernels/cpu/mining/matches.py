"""Matches of a pattern, step by step: every further node fits to those before.

Depth first, so that memory is a list of candidates for each step; the last step is counted
and not walked. Nodes are numbered by descending degree.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.cpu.loops import claimed_rows
from graphsys.kernels.cpu.mining.big_counts import Sums, add_wide
from graphsys.kernels.cpu.mining.four_cycles import place_of
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Offsets = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

NEEDED, REFUSED, ABOVE = range(3)
"""Columns of the steps: bits of the steps before that a step has an edge with, must not
have an edge with, and must have a larger number than."""
END, STOP = 2, 3
"""Places of a listing's state."""
STEP, BEFORE, ANY, NONE = range(4)
"""Columns of the tests: a step and one before it, and of the entry of the latter's row that
is the former the bits of which it must have one (0: nothing) and must have none."""


@lean_jit
def count_matches(
    thread: int,
    indptr: Offsets,
    indices: Numbers,
    steps: Offsets,
    tests: Offsets,
    kinds: Offsets,
    wanted: Offsets,
    labels: Numbers,
    bounds: Offsets,
    counter: Offsets,
    candidates: Numbers,
    frames: Offsets,
    sums: Sums,
) -> None:
    """Count the matches of a pattern.

    Args:
        indices: Neighbors, sorted in every row.
        steps: What a node of a step must fulfil ``[K, 3]``, K at least 2.
        tests: What edges of steps must fulfil besides ``[L, 4]``, sorted by step.
        kinds: What the edge of every entry is, as bits ``[2 M]``; empty without tests.
        wanted: Label of the node of every step ``[K]``, -1 for any; or empty.
        labels: Labels of nodes ``[N]``; empty where nothing is wanted.
        candidates: Scratch ``[T, K, D]``, D the largest degree.
        frames: Scratch ``[T, 3, K]``.
        sums: Zeros ``[T, 2]``; receives the count.
    """
    image, num, place = frames[thread, 0], frames[thread, 1], frames[thread, 2]
    fits, found, last = candidates[thread], sums[thread], len(steps) - 1
    for v in claimed_rows(bounds, counter):
        if len(wanted) and wanted[0] >= 0 and labels[v] != wanted[0]:
            continue
        image[0] = v
        step = 1
        num[1], place[1] = (
            list_fitting(
                indptr, indices, steps, tests, kinds, wanted, labels, 1, image, fits
            ),
            0,
        )
        while step > 0:
            if step == last:
                # The last step is counted, not walked: its candidates are the matches.
                add_wide(found, 0, num[step])
                step -= 1
            elif place[step] >= num[step]:
                step -= 1
            else:
                image[step] = fits[step, place[step]]
                place[step] += 1
                step += 1
                num[step] = list_fitting(
                    indptr,
                    indices,
                    steps,
                    tests,
                    kinds,
                    wanted,
                    labels,
                    step,
                    image,
                    fits,
                )
                place[step] = 0


@lean_inline_jit
def list_fitting(
    indptr: Any,
    indices: Any,
    steps: Any,
    tests: Any,
    kinds: Any,
    wanted: Any,
    labels: Any,
    step: Any,
    image: Any,
    fits: Any,
) -> Any:
    """List the nodes that a step can be, given those before; return how many."""
    needed, refused = steps[step, NEEDED], steps[step, REFUSED]
    anchor, above = -1, np.int64(-1)
    for before in range(step):
        node = image[before]
        if steps[step, ABOVE] >> before & 1:
            above = max(above, node)
        if needed >> before & 1:
            degree = indptr[node + 1] - indptr[node]
            # The row of the smallest degree is run through, the others are searched in.
            if anchor < 0 or degree < indptr[image[anchor] + 1] - indptr[image[anchor]]:
                anchor = before
    num = np.int64(0)
    begin, end = indptr[image[anchor]], indptr[image[anchor] + 1]
    # Rows are sorted: what symmetry breaking forbids is in front, and skipped by one
    # search.
    for e in range(place_of(indices, begin, end, above + 1), end):
        w = np.int64(indices[e])
        good = not len(wanted) or wanted[step] < 0 or labels[w] == wanted[step]
        for before in range(step):
            if not good:
                break
            node = image[before]
            if node == w:
                good = False
                break
            is_needed = needed >> before & 1
            if before != anchor and (is_needed or refused >> before & 1):
                stop = indptr[node + 1]
                place = place_of(indices, indptr[node], stop, w)
                has = place < stop and np.int64(indices[place]) == w
                if has != (is_needed != 0):
                    good = False
                    break
        if good and len(tests):
            good = has_kinds(indptr, indices, tests, kinds, step, image, w)
        if good:
            fits[step, num] = w
            num += 1
    return num


@lean_inline_jit
def has_kinds(
    indptr: Any, indices: Any, tests: Any, kinds: Any, step: Any, image: Any, w: Any
) -> Any:
    """Return whether the edges of a node to those before are of the kinds asked for."""
    good = True
    for t in range(len(tests)):
        if good and tests[t, STEP] == step:
            node = image[tests[t, BEFORE]]
            has = kinds[place_of(indices, indptr[node], indptr[node + 1], w)]
            if (tests[t, ANY] and not has & tests[t, ANY]) or has & tests[t, NONE]:
                good = False
    return good


@lean_jit
def fill_matches(
    indptr: Offsets,
    indices: Numbers,
    steps: Offsets,
    tests: Offsets,
    kinds: Offsets,
    wanted: Offsets,
    labels: Numbers,
    state: Offsets,
    candidates: Numbers,
    frames: Offsets,
    rows: Numbers,
) -> np.int64:
    """Write matches until there is no more room, and go on from there the next time.

    Args:
        indices: Neighbors, sorted in every row.
        steps: What a node of a step must fulfil ``[K, 3]``, K at least 2.
        tests: As of :func:`count_matches`, like the next three.
        kinds: What the edge of every entry is.
        wanted: Label of the node of every step.
        labels: Labels of nodes.
        state: Next node to begin with; the step under way, 0 in front of the first; the
            node to end in front of; 1 to end at once ``[4]``. Kept from call to call.
        candidates: As of :func:`count_matches`, of one thread ``[K, D]``; kept.
        frames: As of :func:`count_matches`, of one thread ``[3, K]``; kept.
        rows: Receives the nodes of the steps ``[R, K]``.

    Returns:
        Number of matches written; less than R at the end.
    """
    image, num, place = frames[0], frames[1], frames[2]
    last, written, step = len(steps) - 1, np.int64(0), state[1]
    while written < len(rows):
        if step == 0:
            # Adding 0 reads what another thread may write meanwhile, past the compiler's
            # registers.
            if state[0] >= state[END] or atomic_add(state, STOP, 0):
                break
            image[0] = state[0]
            state[0] += 1
            if len(wanted) and wanted[0] >= 0 and labels[image[0]] != wanted[0]:
                continue
            step = 1
            num[1] = list_fitting(
                indptr, indices, steps, tests, kinds, wanted, labels, 1, image, candidates
            )
            place[1] = 0
        elif place[step] >= num[step]:
            step -= 1
        else:
            image[step] = candidates[step, place[step]]
            place[step] += 1
            if step == last:
                for k in range(len(steps)):
                    rows[written, k] = image[k]
                written += 1
            else:
                step += 1
                num[step] = list_fitting(
                    indptr,
                    indices,
                    steps,
                    tests,
                    kinds,
                    wanted,
                    labels,
                    step,
                    image,
                    candidates,
                )
                place[step] = 0
    # All else that the next call goes on from lies in the frames.
    state[1] = step
    return written
