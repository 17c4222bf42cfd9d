"""What happens between the windows of delta-stepping, and a summary of weights.

In graphs whose nodes are settled within a few bins, most edges are heavy and useless:
their ends are reached by lighter paths. So edges behind a limit are put off until all
nodes in front of it are settled. Then either the nodes that are left pull, each from its
settled in-neighbors, which is cheap once they are few; or the limit is moved on and the
settled nodes push the edges that now lie in front of it, which costs a pass over weights.

Chakaravarthy et al., "Scalable single source shortest path algorithms for massively
parallel systems", IPDPS 2014 (pruning by push or pull); here across many bins at once.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.shortest_path_rows import note_row, relax_light
from graphsys.kernels.cpu.algorithms.shortest_paths import (
    BASE,
    BIN,
    BLOCK,
    LIMIT,
    NEAREST,
    NEW_BLOCK,
    OVERFLOW,
    Bins,
    Floats,
    Integers,
    Nodes,
    bin_of,
    lower,
    push,
    weight_below,
    weight_shift,
)
from graphsys.kernels.cpu.atomics import atomic_min
from graphsys.kernels.cpu.bits import has_bit, lowest_bit
from graphsys.kernels.cpu.loops import claimed_range, claimed_words
from graphsys.kernels.cpu.rows.csr import WeightedCsr
from graphsys.kernels.jit import lean_jit


@lean_jit
def pull_unsettled(
    thread: int,
    rows: WeightedCsr,
    nodes: Nodes,
    bins: Bins,
    scale: Floats,
    status: Integers,
    bounds: Integers,
    counter: Integers,
) -> None:
    """Give every node that is not settled its least distance over a settled one.

    Args:
        rows: In-neighbors.
        nodes: Distances and settled nodes; distances are updated.
        bins: Receives the nodes reached; empty before.
        scale: No limit any more.
        status: See shortest_paths.py.
        bounds: Chunks of rows, multiples of 64 ``[C + 1]``.
    """
    num_nodes = len(rows.begins)
    for k in claimed_words(bounds, counter):
        left = ~nodes.settled[k]
        while left != 0:
            node = 64 * k + lowest_bit(left)
            left &= left - np.uint64(1)
            if node >= num_nodes:
                break
            best = np.inf
            shift = weight_shift(rows, node)
            for e in range(np.int64(rows.begins[node]), np.int64(rows.ends[node])):
                other = rows.indices[e]
                if has_bit(nodes.settled, other):
                    new = nodes.distance[other] + np.float64(rows.weight[e + shift])
                    best = min(best, new)
            lower(thread, node, best, nodes.distance, bins, scale, status)


@lean_jit
def push_put_off(
    thread: int,
    rows: WeightedCsr,
    nodes: Nodes,
    bins: Bins,
    scale: Floats,
    status: Integers,
    bounds: Integers,
    counter: Integers,
    old_limit: float,
) -> None:
    """Relax the edges of settled nodes between an old limit and the new one.

    Args:
        rows: Out-neighbors.
        nodes: Distances and settled nodes; distances are updated.
        bins: Receives the nodes reached; empty before.
        scale: The new limit.
        status: See shortest_paths.py.
        bounds: Chunks of rows, multiples of 64 ``[C + 1]``.
        old_limit: Edges to bins below it were relaxed.
    """
    limit = scale[LIMIT]
    filled = np.int64(0)
    for k in claimed_words(bounds, counter):
        left = nodes.settled[k]
        while left != 0:
            node = 64 * k + lowest_bit(left)
            left &= left - np.uint64(1)
            own = nodes.distance[node]
            # Rounded as it was when these edges were put off: none falls between the two
            # passes.
            lightest = weight_below(own, old_limit, scale)
            heaviest = np.inf if limit == np.inf else weight_below(own, limit, scale)
            filled, _ = note_row(
                thread,
                node,
                filled,
                lightest,
                heaviest,
                rows,
                nodes,
                bins,
                scale,
                status,
            )
    relax_light(thread, filled, rows, nodes.distance, nodes.settled, bins, scale, status)


@lean_jit
def find_nearest(
    thread: int,
    rows: WeightedCsr,
    nodes: Nodes,
    scale: Floats,
    bounds: Integers,
    counter: Integers,
) -> None:
    """Lower ``scale[NEAREST]`` to the least distance that is put off.

    Args:
        rows: Out-neighbors.
        nodes: Distances and settled nodes.
        scale: The limit up to which edges were relaxed.
        bounds: Chunks of rows, multiples of 64 ``[C + 1]``.
    """
    nearest = np.inf
    for k in claimed_words(bounds, counter):
        left = nodes.settled[k]
        while left != 0:
            node = 64 * k + lowest_bit(left)
            left &= left - np.uint64(1)
            own = nodes.distance[node]
            lightest = weight_below(own, scale[LIMIT], scale)
            shift = weight_shift(rows, node)
            for e in range(np.int64(rows.begins[node]), np.int64(rows.ends[node])):
                weight = np.float64(rows.weight[e + shift])
                # Arithmetic first: the bitmap is looked at for few.
                is_nearer = weight >= lightest and own + weight < nearest
                if is_nearer and not has_bit(nodes.settled, rows.indices[e]):
                    nearest = own + weight
    atomic_min(scale, NEAREST, nearest)


@lean_jit
def next_window(nodes: Nodes, bins: Bins, scale: Floats, status: Integers) -> bool:
    """Spread the last bin over a new window that begins at its nearest node.

    Args:
        nodes: Distances and settled nodes; the frontier is scratch.
        bins: All but the last bin are empty.
        scale: See shortest_paths.py.
        status: ``BASE`` and ``BIN`` are set.

    Returns:
        False if no node waits.
    """
    last = bins.heads.shape[1] - 1
    size = 0
    nearest = np.inf
    for owner in range(bins.heads.shape[0]):
        block = bins.heads[owner, last]
        fill = bins.fills[owner, last]
        bins.heads[owner, last] = -1
        bins.fills[owner, last] = 0
        while block >= 0:
            for k in range(block * BLOCK, block * BLOCK + fill):
                node = bins.items[k]
                if not has_bit(nodes.settled, node):
                    nodes.frontier[size] = node
                    size += 1
                    nearest = min(nearest, nodes.distance[node])
            below = bins.following[block]
            bins.following[block] = bins.free[owner, 0]
            bins.free[owner, 0] = block
            block = below
            fill = BLOCK
    if size == 0:
        return False
    status[BIN] = 0
    status[BASE] = bin_of(nearest, scale)
    for k in range(size):
        node = nodes.frontier[k]
        place = bin_of(nodes.distance[node], scale) - status[BASE]
        push(0, min(place, last), node, bins, status)
    return True


@lean_jit
def refill(nodes: Nodes, bins: Bins, scale: Floats, status: Integers) -> None:
    """Rebuild all bins from the distances: every node reached and not settled waits."""
    last = bins.heads.shape[1] - 1
    bins.heads[:] = -1
    bins.fills[:] = 0
    # Blocks are dealt out from the first again: what lay in the lists is found anew.
    bins.free[:] = -1
    status[NEW_BLOCK] = 0
    status[OVERFLOW] = 0
    num_nodes = len(nodes.distance)
    for k in range(len(nodes.settled)):
        waiting = ~nodes.settled[k]
        while waiting != 0:
            node = 64 * k + lowest_bit(waiting)
            waiting &= waiting - np.uint64(1)
            if node < num_nodes and nodes.distance[node] != np.inf:
                place = bin_of(nodes.distance[node], scale) - status[BASE]
                push(0, min(place, last), node, bins, status)


@lean_jit
def summarize_weights(
    thread: int,
    weight: npt.NDArray[Any],
    counter: Integers,
    sums: Floats,
    least: Floats,
    least_positive: Floats,
    refused: Integers,
) -> None:
    """Go on adding up weights, finding the least, counting those below 0 and NaN.

    Args:
        weight: Weights ``[E]``.
        sums: The sum of each thread's finite weights ``[T, 8]``.
        least: Each thread's least weight ``[T, 8]``.
        least_positive: Each thread's least positive weight ``[T, 8]``.
        refused: How many are negative or NaN ``[T, 8]``.
    """
    total, bad = sums[thread, 0], refused[thread, 0]
    smallest, smallest_positive = least[thread, 0], least_positive[thread, 0]
    size = len(weight)
    chunk_size = 1 << 16
    for e in claimed_range(0, size, chunk_size, counter):
        value = np.float64(weight[np.uint64(e)])
        if not value >= 0:
            bad += 1
        elif value < np.inf:
            total += value
            smallest = min(smallest, value)
            if value > 0:
                smallest_positive = min(smallest_positive, value)
    sums[thread, 0] = total
    least[thread, 0] = smallest
    least_positive[thread, 0] = smallest_positive
    refused[thread, 0] = bad
