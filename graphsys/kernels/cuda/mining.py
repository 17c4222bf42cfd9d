"""Cliques, triangles of edges and 4-cycles on CUDA: a warp intersects the rows of an edge.

Nodes are numbered by descending degree, so that the *prefix* of a row, its numbers below
the node's own, holds the neighbors of larger degree: at most ``sqrt(2 M)``. The edge number
``k`` belongs to the node ``v`` with ``starts[v] <= k < starts[v + 1]`` and leads to entry
``k - starts[v]`` of its prefix; warps draw 32 edges at a time from a shared cursor, so that
heavy ones do not keep others waiting. The lanes take entries of the shorter row and look
each up in the longer one.

Sums are exact: each lane adds the low and the high 32 bits of what it counts apart, as
``kernels.cpu.mining.wide`` does, and carries before the lanes' parts are added up.

numba's simulator exchanges ``cuda`` in the globals of the kernel that runs: what kernels
call is therefore in this file.
"""

import numpy as np
from numba import cuda

from graphsys.kernels.cuda.common import EVERY_LANE, WARP, device, kernel

LOW_BITS = np.int64(0xFFFFFFFF)
HALF = np.int64(32)

TRIANGLES, CLIQUES_4, CLIQUES_5 = range(3)
"""Places of the sums of :func:`count_cliques`."""
EDGE_PATHS, EDGE_TRIANGLES, EDGE_TAILED, EDGE_DIAMONDS = range(4)
"""Places of the sums of :func:`sum_edges`."""


@device
def has(indices, begin, end, wanted):  # type: ignore[no-untyped-def]
    """Return 1 if a sorted range holds a number, else 0."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < end and indices[low] == wanted:
        return 1
    return 0


@device
def owner_of(starts, num_nodes, edge):  # type: ignore[no-untyped-def]
    """Return the node that an edge belongs to: the last whose start is not above it."""
    # Nodes without edges share a start with the next one, so that the last is the owner.
    low, high = np.int64(0), np.int64(num_nodes)
    while high - low > 1:
        middle = (low + high) >> 1
        if starts[middle] <= edge:
            low = middle
        else:
            high = middle
    return low


@device
def next_edges(cursor):  # type: ignore[no-untyped-def]
    """Return the first of 32 edges that nobody has yet, in every lane."""
    # One atomic a warp; the others get its number from lane 0's register.
    first = np.int64(0)
    if cuda.laneid == 0:
        first = cuda.atomic.add(cursor, 0, np.int64(WARP))
    return cuda.shfl_sync(EVERY_LANE, first, 0)


@device
def count_shared(some, begin, end, others, first, last):  # type: ignore[no-untyped-def]
    """Return this lane's share of the numbers that two sorted ranges both hold."""
    found = np.int64(0)
    if end - begin <= last - first:
        for k in range(begin + cuda.laneid, end, WARP):
            found += has(others, first, last, some[k])
    else:
        for k in range(first + cuda.laneid, last, WARP):
            found += has(some, begin, end, others[k])
    return found


@device
def keep_shared(some, begin, end, others, first, last, out, at):  # type: ignore[no-untyped-def]
    """Write the numbers that two sorted ranges hold; return how many, in every lane."""
    lane = cuda.laneid
    # Lanes before this one: the hits among them say where its own hit is written.
    below = (np.int64(1) << np.int64(lane)) - np.int64(1)
    is_shorter = end - begin <= last - first
    place = begin if is_shorter else first
    stop = end if is_shorter else last
    num = np.int64(0)
    while place < stop:
        k = place + lane
        is_in, wanted = False, np.int64(0)
        if k < stop:
            if is_shorter:
                wanted = np.int64(some[k])
                is_in = has(others, first, last, wanted) == 1
            else:
                wanted = np.int64(others[k])
                is_in = has(some, begin, end, wanted) == 1
        mask = np.int64(cuda.ballot_sync(EVERY_LANE, is_in)) & LOW_BITS
        if is_in:
            out[at + num + np.int64(cuda.popc(mask & below))] = wanted
        num += np.int64(cuda.popc(mask))
        place += WARP
    # Who reads `out` next must see what other lanes wrote.
    cuda.syncwarp()
    return num


@device
def add_lanes(totals, place, low, high):  # type: ignore[no-untyped-def]
    """Add the lanes' halves of a sum to its total: ``[2 K]``, low and high by turns."""
    high += low >> HALF
    low &= LOW_BITS
    step = 16
    while step > 0:
        low += cuda.shfl_xor_sync(EVERY_LANE, low, step)
        high += cuda.shfl_xor_sync(EVERY_LANE, high, step)
        step //= 2
    if cuda.laneid == 0:
        cuda.atomic.add(totals, 2 * place, low)
        cuda.atomic.add(totals, 2 * place + 1, high)


@kernel
def count_cliques(  # type: ignore[no-untyped-def]
    indptr, indices, starts, num_nodes, size, longest, scratch, cursor, totals
):
    """Count triangles, 4-cliques and 5-cliques, each at its two largest numbers.

    Args:
        indptr: Row offsets, int64 ``[N + 1]``.
        indices: Neighbors.
        starts: First edge of every node, int64 ``[N + 1]``.
        num_nodes: ``N``.
        size: The largest cliques that are counted, 3 to 5.
        longest: Entries of the longest prefix.
        scratch: ``(size - 3) * longest`` numbers for every warp.
        cursor: Next edge, int64 ``[1]``.
        totals: Zeros, int64 ``[2 * 3]``; receives the sums.
    """
    lane = cuda.laneid
    own = np.int64(cuda.grid(1) // WARP) * (size - 3) * longest
    num_edges = starts[num_nodes]
    low3, high3 = np.int64(0), np.int64(0)
    low4, high4 = np.int64(0), np.int64(0)
    low5, high5 = np.int64(0), np.int64(0)
    first = next_edges(cursor)
    while first < num_edges:
        owner, entry = np.int64(0), np.int64(0)
        if first + lane < num_edges:
            owner = owner_of(starts, num_nodes, first + lane)
            entry = first + lane - starts[owner]
        for k in range(min(np.int64(WARP), num_edges - first)):
            # All lanes work on one edge at a time: rows of unlike length would keep lanes
            # idle.
            v = cuda.shfl_sync(EVERY_LANE, owner, k)
            end = indptr[v] + cuda.shfl_sync(EVERY_LANE, entry, k)
            begin = indptr[v]
            u = np.int64(indices[end])
            row = indptr[u]
            stop = row + starts[u + 1] - starts[u]
            if size == 3:
                low3 += count_shared(indices, begin, end, indices, row, stop)
                continue
            num = keep_shared(indices, begin, end, indices, row, stop, scratch, own)
            if lane == 0:
                low3 += num
            # Numbers in `scratch` are sorted: each w pairs with those before it, so counts
            # once.
            fours, fives = np.int64(0), np.int64(0)
            for i in range(1, num):
                w = np.int64(scratch[own + i])
                row = indptr[w]
                stop = row + starts[w + 1] - starts[w]
                if size == 4:
                    fours += count_shared(scratch, own, own + i, indices, row, stop)
                    continue
                inner = own + longest
                within = keep_shared(
                    scratch, own, own + i, indices, row, stop, scratch, inner
                )
                if lane == 0:
                    fours += within
                for j in range(1, within):
                    x = np.int64(scratch[inner + j])
                    row = indptr[x]
                    stop = row + starts[x + 1] - starts[x]
                    fives += count_shared(scratch, inner, inner + j, indices, row, stop)
                cuda.syncwarp()  # before the inner numbers are written over
            cuda.syncwarp()
            low4 += fours & LOW_BITS
            high4 += fours >> HALF
            low5 += fives & LOW_BITS
            high5 += fives >> HALF
        first = next_edges(cursor)
    add_lanes(totals, TRIANGLES, low3, high3)
    add_lanes(totals, CLIQUES_4, low4, high4)
    add_lanes(totals, CLIQUES_5, low5, high5)


@kernel
def sum_edges(indptr, indices, starts, num_nodes, cursor, totals):  # type: ignore[no-untyped-def]
    """Sum over edges what follows from their triangles and degrees.

    Args:
        indptr: Row offsets, int64 ``[N + 1]``.
        indices: Neighbors.
        starts: First edge of every node, int64 ``[N + 1]``.
        num_nodes: ``N``.
        cursor: Next edge, int64 ``[1]``.
        totals: Zeros, int64 ``[2 * 4]``; receives the sums of the product of the degrees
            less 1, of triangles, of triangles times the degrees less 4, of pairs of
            triangles.
    """
    lane = cuda.laneid
    num_edges = starts[num_nodes]
    low_paths, high_paths = np.int64(0), np.int64(0)
    low_triangles, high_triangles = np.int64(0), np.int64(0)
    low_tailed, high_tailed = np.int64(0), np.int64(0)
    low_diamonds, high_diamonds = np.int64(0), np.int64(0)
    first = next_edges(cursor)
    while first < num_edges:
        owner, entry = np.int64(0), np.int64(0)
        if first + lane < num_edges:
            owner = owner_of(starts, num_nodes, first + lane)
            entry = first + lane - starts[owner]
        mine, degrees, product = np.int64(0), np.int64(0), np.int64(0)
        for k in range(min(np.int64(WARP), num_edges - first)):
            v = cuda.shfl_sync(EVERY_LANE, owner, k)
            u = np.int64(indices[indptr[v] + cuda.shfl_sync(EVERY_LANE, entry, k)])
            found = count_shared(
                indices, indptr[v], indptr[v + 1], indices, indptr[u], indptr[u + 1]
            )
            step = 16
            while step > 0:
                found += cuda.shfl_xor_sync(EVERY_LANE, found, step)
                step //= 2
            if lane == k:  # the lane that drew the edge sums up for it
                one = indptr[v + 1] - indptr[v]
                other = indptr[u + 1] - indptr[u]
                mine, degrees = found, one + other
                product = (one - 1) * (other - 1)
        low_paths += product & LOW_BITS
        high_paths += product >> HALF
        low_triangles += mine
        tailed = mine * max(degrees - 4, np.int64(0))
        low_tailed += tailed & LOW_BITS
        high_tailed += tailed >> HALF
        pairs = mine * (mine - 1) // 2
        low_diamonds += pairs & LOW_BITS
        high_diamonds += pairs >> HALF
        first = next_edges(cursor)
    add_lanes(totals, EDGE_PATHS, low_paths, high_paths)
    add_lanes(totals, EDGE_TRIANGLES, low_triangles, high_triangles)
    add_lanes(totals, EDGE_TAILED, low_tailed, high_tailed)
    add_lanes(totals, EDGE_DIAMONDS, low_diamonds, high_diamonds)


@kernel
def count_squares(indptr, indices, starts, num_nodes, counts, cursor, totals):  # type: ignore[no-untyped-def]
    """Count the 4-cycles, each at its smallest number: pairs of wedges with the same ends.

    A block takes a node, its warps the edges to larger numbers, their lanes the wedges.

    Args:
        indptr: Row offsets, int64 ``[N + 1]``.
        indices: Neighbors.
        starts: First edge of every node, int64 ``[N + 1]``.
        num_nodes: ``N``.
        counts: Of any content, int32, ``N`` for every block.
        cursor: Next node, int64 ``[1]``.
        totals: Zeros, int64 ``[2]``; receives the count.
    """
    lane = cuda.laneid
    warp, num_warps = cuda.threadIdx.x // WARP, cuda.blockDim.x // WARP
    own = np.int64(cuda.blockIdx.x) * num_nodes
    drawn = cuda.shared.array(1, np.int64)
    low, high = np.int64(0), np.int64(0)
    for place in range(own + cuda.threadIdx.x, own + num_nodes, cuda.blockDim.x):
        counts[place] = 0
    if cuda.threadIdx.x == 0:
        drawn[0] = cuda.atomic.add(cursor, 0, np.int64(1))
    cuda.syncthreads()
    v = drawn[0]
    while v < num_nodes:
        end = indptr[v + 1]
        begin = indptr[v] + starts[v + 1] - starts[v]
        found = np.int64(0)
        for e in range(begin + warp, end, num_warps):
            x = np.int64(indices[e])
            for f in range(indptr[x + 1] - 1 - lane, indptr[x] - 1, -WARP):
                w = np.int64(indices[f])
                if w <= v:
                    break
                found += np.int64(cuda.atomic.add(counts, own + w, 1))
        low += found & LOW_BITS
        high += found >> HALF
        cuda.syncthreads()
        for e in range(begin + warp, end, num_warps):
            x = np.int64(indices[e])
            for f in range(indptr[x + 1] - 1 - lane, indptr[x] - 1, -WARP):
                w = np.int64(indices[f])
                if w <= v:
                    break
                counts[own + w] = 0
        if cuda.threadIdx.x == 0:
            drawn[0] = cuda.atomic.add(cursor, 0, np.int64(1))
        cuda.syncthreads()
        v = drawn[0]
    add_lanes(totals, 0, low, high)


KERNELS = {
    "count_cliques": count_cliques,
    "sum_edges": sum_edges,
    "count_squares": count_squares,
}
