"""A cache of rows: which nodes it holds, and which one makes room for another.

``slots[node]`` is a node's place in the cache or -1; ``owners`` says whose a place is.
Places of a cache that changes are a list, newest first: ``links[0]`` leads to the newer
neighbor, ``links[1]`` to the older one, -1 at the ends.

LRU: what is read moves to the front, the last one goes. SIEVE: what is read is marked; a
hand moves from the oldest to newer ones, takes marks away and the first without one goes
(Zhang et al., "SIEVE is simpler than LRU", NSDI 2024).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_inline_jit, lean_jit

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]

FIXED, LRU, SIEVE = 0, 1, 2
HEAD, TAIL, HAND, USED = 0, 1, 2, 3
_NONE = -1


@lean_inline_jit
def _unlink(links: Any, state: Any, place: Any) -> None:
    newer, older = links[0, place], links[1, place]
    if newer == _NONE:
        state[HEAD] = older
    else:
        links[1, newer] = older
    if older == _NONE:
        state[TAIL] = newer
    else:
        links[0, older] = newer


@lean_inline_jit
def _put_first(links: Any, state: Any, place: Any) -> None:
    links[0, place], links[1, place] = _NONE, state[HEAD]
    if state[HEAD] == _NONE:
        state[TAIL] = place
    else:
        links[0, state[HEAD]] = place
    state[HEAD] = place


@lean_inline_jit
def _make_room(policy: Any, links: Any, marks: Any, state: Any) -> Any:
    """Return a place that is free now; it is in no list."""
    if state[USED] < len(marks):
        state[USED] += 1
        return state[USED] - 1
    place = state[TAIL]
    if policy == SIEVE:
        if state[HAND] != _NONE:
            place = state[HAND]
        # Each mark was one more chance; it ends, as the hand takes away what it passes.
        while marks[place]:
            marks[place] = 0
            place = links[0, place]
            if place == _NONE:
                place = state[TAIL]
        state[HAND] = links[0, place]
    _unlink(links, state, place)
    return place


@lean_jit
def read_cached(
    policy: int,
    nodes: Ints,
    slots: Places,
    cache: Floats,
    links: Places,
    marks: npt.NDArray[np.uint8],
    state: Ints,
    out: Floats,
    missing: Ints,
) -> int:
    """Copy the rows that the cache holds.

    Args:
        policy: ``FIXED``, ``LRU`` or ``SIEVE``.
        nodes: Numbers of nodes ``[n]``, all in range.
        slots: Place of every node, or -1 ``[N]``.
        cache: Rows ``[C, F]``.
        links: Newer and older neighbors of each place ``[2, C]``; not used when fixed.
        marks: Whether a place was read, for SIEVE ``[C]``.
        state: First, last, hand, places used ``[4]``.
        out: Receives the rows found ``[n, F]``.
        missing: Receives which of ``nodes`` were not found ``[n]``.

    Returns:
        How many were not found.
    """
    count = 0
    for k in range(len(nodes)):
        place = slots[nodes[k]]
        if place < 0:
            missing[count] = k
            count += 1
            continue
        for f in range(out.shape[1]):
            out[k, f] = cache[place, f]
        if policy == LRU:
            _unlink(links, state, place)
            _put_first(links, state, place)
        elif policy == SIEVE:
            marks[place] = 1
    return count


@lean_jit
def take_missing(
    policy: int,
    nodes: Ints,
    missing: Ints,
    rows: Floats,
    slots: Places,
    owners: Ints,
    cache: Floats,
    links: Places,
    marks: npt.NDArray[np.uint8],
    state: Ints,
    out: Floats,
) -> None:
    """Write the rows that were not found, and put them into the cache unless it is fixed.

    Args:
        policy: As for :func:`read_cached`, as all that is not named here.
        nodes: Numbers of nodes.
        missing: Which of them were not found ``[m]``.
        rows: Their rows ``[m, F]``.
        slots: Places of nodes.
        owners: Node of each place ``[C]``.
        cache: Rows.
        links: Neighbors in the list.
        marks: For SIEVE.
        state: First, last, hand, places used.
        out: Receives the rows ``[n, F]``.
    """
    for m in range(len(missing)):
        node = nodes[missing[m]]
        for f in range(out.shape[1]):
            out[missing[m], f] = rows[m, f]
        # A node may be missing twice in one batch: the first brought it in.
        if policy == FIXED or slots[node] >= 0:
            continue
        is_full = state[USED] == len(marks)
        place = _make_room(policy, links, marks, state)
        # The place had an owner, whose row is gone now.
        if is_full:
            slots[owners[place]] = _NONE
        slots[node], owners[place], marks[place] = place, node, 0
        for f in range(out.shape[1]):
            cache[place, f] = rows[m, f]
        _put_first(links, state, place)


@lean_jit
def spread_counts(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    counts: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None:
    """Add each row's count to those that its entries name."""
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            out[indices[k]] += counts[row]


@lean_jit
def collect_counts(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    counts: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None:
    """Add to each row the counts that its entries name."""
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            out[row] += counts[indices[k]]
