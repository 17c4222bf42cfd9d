"""Relaxing the light edges of many rows at once.

Few edges of a row are light, and nobody can foresee which: a test that relaxes at once is
mispredicted, and then waits for the neighbor's number and distance, one after the other.
Here a pass over the weights notes the light edges of many rows without a branch; short
passes over what is noted then ask the memory for neighbors, then for distances, and only
the last one lowers distances. Rows that come later in the frontier are asked for too. On
kron20 that takes a quarter off the time of delta-stepping.
"""

from typing import Any

import numpy as np

from graphsys.kernels.cpu.algorithms.shortest_paths import (
    LEAST_WEIGHT,
    LIMIT,
    NEXT,
    NUM_FRONTIER,
    PUT_OFF,
    ROOM,
    Bins,
    Floats,
    Integers,
    Nodes,
    degree_of,
    lower,
    weight_below,
    weight_shift,
)
from graphsys.kernels.cpu.bits import has_bit
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.prefetch import prefetch
from graphsys.kernels.cpu.rows.csr import WeightedCsr
from graphsys.kernels.jit import lean_inline_jit, lean_jit


@lean_inline_jit
def find_light(
    thread: Any,
    begin: Any,
    end: Any,
    shift: Any,
    filled: Any,
    own: Any,
    lightest: Any,
    heaviest: Any,
    weights: Any,
    bins: Any,
) -> np.int64:
    """Note the edges whose weight lies in a range; return how many there are to relax.

    There is no branch on the weight, which no processor could foresee.
    """
    # unsigned: numba asks of others whether they count from the end
    base = np.uint64(thread) * np.uint64(ROOM)
    first = base + np.uint64(filled)
    place = first
    for k in range(end - begin):
        e = np.uint64(begin) + np.uint64(k)
        weight = np.float64(weights[e + np.uint64(shift)])
        # Always written; the place moves on only if the weight is in range.
        bins.light[place] = e
        place += np.uint64((weight >= lightest) & (weight < heaviest))
    for k in range(np.int64(place - first)):
        i = first + np.uint64(k)
        bins.sums[i] = own + np.float64(weights[np.uint64(bins.light[i] + shift)])
    return np.int64(place - base)


@lean_inline_jit
def relax_light(
    thread: Any,
    filled: Any,
    rows: Any,
    distance: Any,
    settled: Any,
    bins: Any,
    scale: Any,
    status: Any,
) -> None:
    """Relax the edges noted, in passes that each ask early for what the next one reads."""
    base = np.uint64(thread) * np.uint64(ROOM)
    for i in range(filled):
        prefetch(rows.indices, np.int64(bins.light[base + np.uint64(i)]))
    last = base
    for i in range(filled):
        place = base + np.uint64(i)
        other = np.uint64(rows.indices[np.uint64(bins.light[place])])
        prefetch(distance, np.int64(other))
        bins.light[last] = np.int64(other)
        bins.sums[last] = bins.sums[place]
        last += np.uint64(not has_bit(settled, other))
    for i in range(np.int64(last - base)):
        place = base + np.uint64(i)
        node, new = np.int64(bins.light[place]), bins.sums[place]
        lower(thread, node, new, distance, bins, scale, status)


@lean_inline_jit
def prefetch_row(frontier: Any, k: Any, size: Any, rows: Any, distance: Any) -> None:
    """Ask for what nodes further on in the frontier will need."""
    if k + 16 < size:
        far = np.int64(frontier[k + 16])
        prefetch(rows.begins, far)
        prefetch(rows.ends, far)
        prefetch(rows.weight_begins, far)
        prefetch(distance, far)
    if k + 8 < size:
        begin = np.int64(rows.weight_begins[frontier[k + 8]])
        for line in range(4):
            prefetch(rows.weight, begin + 16 * line)


@lean_inline_jit
def note_row(
    thread: Any,
    node: Any,
    filled: Any,
    lightest: Any,
    heaviest: Any,
    rows: Any,
    nodes: Any,
    bins: Any,
    scale: Any,
    status: Any,
) -> tuple[np.int64, np.int64]:
    """Note a node's edges of a range of weights, and relax those noted if there is no room.

    Returns:
        How many are noted now, and how many of them are the node's or were.
    """
    own = nodes.distance[node]
    begin, end = np.int64(rows.begins[node]), np.int64(rows.ends[node])
    shift = weight_shift(rows, node)
    num_light = np.int64(0)
    while begin < end:
        # Relaxed while there is room for a half: short rows go together, long ones in
        # parts.
        if filled > ROOM // 2:
            relax_light(
                thread, filled, rows, nodes.distance, nodes.settled, bins, scale, status
            )
            filled = np.int64(0)
        part = min(end, begin + ROOM - filled)
        found = find_light(
            thread, begin, part, shift, filled, own, lightest, heaviest, rows.weight, bins
        )
        num_light += found - filled
        filled = found
        begin = part
    return filled, num_light


@lean_jit
def relax_frontier(
    thread: int,
    rows: WeightedCsr,
    nodes: Nodes,
    bins: Bins,
    scale: Floats,
    status: Integers,
) -> None:
    """Relax the frontier together with other threads."""
    size = status[NUM_FRONTIER]
    limit = scale[LIMIT]
    filled = np.int64(0)
    for k in claimed_range(0, size, 64, status[NEXT:]):
        prefetch_row(nodes.frontier, k, size, rows, nodes.distance)
        node = np.int64(nodes.frontier[k])
        heaviest = np.inf
        if limit != np.inf:
            heaviest = weight_below(nodes.distance[node], limit, scale)
        num_light = np.int64(0)
        if heaviest > scale[LEAST_WEIGHT]:
            filled, num_light = note_row(
                thread,
                node,
                filled,
                -np.inf,
                heaviest,
                rows,
                nodes,
                bins,
                scale,
                status,
            )
        if limit != np.inf and num_light < degree_of(rows, node):
            status[PUT_OFF] = 1
    relax_light(thread, filled, rows, nodes.distance, nodes.settled, bins, scale, status)
