"""What every generated CUDA module begins with: the text of this file is its head.

One module per program, so that numba-cuda caches it as a whole, and that numba's simulator
(which exchanges ``cuda`` in the globals of the kernel that runs) reaches the helpers too.

A *list* is an array of node numbers with its length in an element of an int64 array
(``sizes[size_at]``), so that the host need not know it. A *stamp* array int32 ``[N]`` marks
nodes with the number of the superstep (*epoch*), so that it never has to be cleared. Loops
stride over the grid: any number of blocks gives the same result.
"""

import math

import numpy as np
from numba import config, cuda

WARP = 32
EVERY_LANE = 0xFFFFFFFF
SIMULATED = bool(config.ENABLE_CUDASIM)

kernel = cuda.jit if SIMULATED else cuda.jit(cache=True)


def device(function):  # type: ignore[no-untyped-def]
    """Compile a function that kernels call; plain Python in the simulator."""
    return function if SIMULATED else cuda.jit(device=True)(function)


# ---- inside a warp


@device
def warp_sum(value):  # type: ignore[no-untyped-def]
    """Return the sum over the lanes, in every lane."""
    step = 16
    while step > 0:
        value += cuda.shfl_xor_sync(EVERY_LANE, value, step)
        step //= 2
    return value


@device
def warp_minimum(value):  # type: ignore[no-untyped-def]
    """Return the smallest value of the lanes, in every lane."""
    step = 16
    while step > 0:
        value = min(value, cuda.shfl_xor_sync(EVERY_LANE, value, step))
        step //= 2
    return value


@device
def warp_maximum(value):  # type: ignore[no-untyped-def]
    """Return the largest value of the lanes, in every lane."""
    step = 16
    while step > 0:
        value = max(value, cuda.shfl_xor_sync(EVERY_LANE, value, step))
        step //= 2
    return value


@device
def warp_argmax(value, place):  # type: ignore[no-untyped-def]
    """Return the place of the lanes' largest value, the first of equal ones."""
    step = 16
    while step > 0:
        other = cuda.shfl_xor_sync(EVERY_LANE, value, step)
        its_place = cuda.shfl_xor_sync(EVERY_LANE, place, step)
        if other > value or (other == value and its_place < place):
            value = other
            place = its_place
        step //= 2
    return place


@device
def warp_argmin(value, place):  # type: ignore[no-untyped-def]
    """Return the place of the lanes' smallest value, the first of equal ones."""
    return warp_argmax(-value, place)


def _append_one(listed, sizes, size_at, value):  # type: ignore[no-untyped-def]
    """Append to a list: one atomic for all lanes that append together."""
    mask = cuda.activemask()
    leader = cuda.ffs(mask) - 1
    place = np.int64(0)
    if cuda.laneid == leader:
        place = cuda.atomic.add(sizes, size_at, np.int64(cuda.popc(mask)))
    place = cuda.shfl_sync(mask, place, leader)
    listed[place + cuda.popc(mask & cuda.lanemask_lt())] = value


def _append_alone(listed, sizes, size_at, value):  # type: ignore[no-untyped-def]
    listed[cuda.atomic.add(sizes, size_at, 1)] = value


append_one = _append_alone if SIMULATED else device(_append_one)  # type: ignore[no-untyped-call]
"""The simulator knows no mask of active lanes."""


# ---- hashing, as graphsys.kernels.cpu.hashing


@device
def mix64(word):  # type: ignore[no-untyped-def]
    """Scramble a 64-bit word (splitmix64's finaliser); a bijection."""
    word = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@device
def random_fraction(seed, node, draw):  # type: ignore[no-untyped-def]
    """Return a number in [0, 1) that depends on the arguments alone."""
    word = mix64(np.uint64(np.int64(seed)))
    word = mix64(word ^ np.uint64(np.int64(node)))
    word = mix64(word ^ np.uint64(np.int64(draw)))
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


# ---- rows


@device
def row_of(offsets, num_rows, place):  # type: ignore[no-untyped-def]
    """Return the row that holds an entry: the last whose offset is not above it."""
    low, high = np.int64(0), np.int64(num_rows)
    while high - low > 1:
        middle = (low + high) // 2
        if np.int64(offsets[middle]) <= place:
            low = middle
        else:
            high = middle
    return low


@device
def sift_down(values, begin, root, count):  # type: ignore[no-untyped-def]
    """Restore the heap of ``values[begin : begin + count]`` below a root."""
    value = values[begin + root]
    child = 2 * root + 1
    while child < count:
        if child + 1 < count and values[begin + child + 1] > values[begin + child]:
            child += 1
        if values[begin + child] <= value:
            break
        values[begin + root] = values[begin + child]
        root = child
        child = 2 * root + 1
    values[begin + root] = value


@device
def sort_alone(values, begin, count):  # type: ignore[no-untyped-def]
    """Sort ``values[begin : begin + count]`` in one thread: heap sort, O(n log n)."""
    for i in range(count // 2):
        sift_down(values, begin, count // 2 - 1 - i, count)
    for i in range(count - 1):
        last = begin + count - 1 - i
        values[begin], values[last] = values[last], values[begin]
        sift_down(values, begin, 0, count - 1 - i)


@device
def sort_together(values, begin, count):  # type: ignore[no-untyped-def]
    """Sort ``values[begin : begin + count]`` by all threads of a block.

    A bitonic network in which every exchange is upwards (the first step of each merge
    mirrors), so that entries beyond the end never have to be looked at.
    """
    size = 2
    while size < 2 * count:
        step = size
        while step > 1:
            cuda.syncthreads()
            flip = step - 1 if step == size else step // 2
            for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
                j = i ^ flip
                if i < j < count and values[begin + i] > values[begin + j]:
                    low = values[begin + j]
                    values[begin + j] = values[begin + i]
                    values[begin + i] = low
            step = size // 2 if step == size else step // 2
        size *= 2
    cuda.syncthreads()


@device
def run_length(values, place, end):  # type: ignore[no-untyped-def]
    """Return how often ``values[place]`` follows itself in a sorted range up to ``end``."""
    low, high = place, end
    while high - low > 1:
        middle = (low + high) // 2
        if values[middle] <= values[place]:
            low = middle
        else:
            high = middle
    return low + 1 - place


# ---- lists and stamps


@kernel
def list_everyone(listed, num_nodes, sizes, size_at):  # type: ignore[no-untyped-def]
    """List all nodes."""
    for v in range(cuda.grid(1), num_nodes, cuda.gridsize(1)):
        listed[v] = v
    if cuda.grid(1) == 0:
        sizes[size_at] = num_nodes


@kernel
def list_stamped(stamps, epoch, num_nodes, listed, sizes, size_at):  # type: ignore[no-untyped-def]
    """Append all nodes that bear a stamp to a list."""
    for v in range(cuda.grid(1), num_nodes, cuda.gridsize(1)):
        if stamps[v] == epoch:
            append_one(listed, sizes, size_at, v)


@kernel
def stamp_listed(nodes, sizes, size_at, stamps, epoch):  # type: ignore[no-untyped-def]
    """Stamp the nodes of a list."""
    for k in range(cuda.grid(1), sizes[size_at], cuda.gridsize(1)):
        stamps[nodes[k]] = epoch


@kernel
def bin_nodes(  # type: ignore[no-untyped-def]
    nodes,
    sizes,
    size_at,
    listed,
    row_base,
    num_rows,
    indptr,
    limit,
    small,
    medium,
    large,
    bin_sizes,
    bins_at,
):
    """Sort nodes into three lists by the length of their rows: below 32, ``limit``, longer.

    The sizes are counted in ``bin_sizes[bins_at : bins_at + 3]``.
    """
    total = sizes[size_at] if listed else num_rows
    for k in range(cuda.grid(1), total, cuda.gridsize(1)):
        v = np.int64(nodes[k]) if listed else k + row_base
        degree = np.int64(indptr[v - row_base + 1]) - np.int64(indptr[v - row_base])
        if degree < WARP:
            append_one(small, bin_sizes, bins_at, v)
        elif degree < limit:
            append_one(medium, bin_sizes, bins_at + 1, v)
        else:
            append_one(large, bin_sizes, bins_at + 2, v)


@kernel
def mark_neighbors(  # type: ignore[no-untyped-def]
    nodes, sizes, size_at, row_base, indptr, indices, touched, epoch, listed, touched_at
):
    """List the neighbors of a list's nodes, each once; a warp walks a row."""
    lane = cuda.laneid
    for k in range(cuda.grid(1) // WARP, sizes[size_at], cuda.gridsize(1) // WARP):
        r = np.int64(nodes[k]) - row_base
        for e in range(np.int64(indptr[r]) + lane, np.int64(indptr[r + 1]), WARP):
            v = indices[e]
            if touched[v] != epoch and cuda.atomic.exch(touched, v, epoch) != epoch:
                append_one(listed, sizes, touched_at, v)


@kernel
def keep_last(counts, last_at, length):  # type: ignore[no-untyped-def]
    """Make the frontier whose size and edges stand at ``last_at`` the first; one block."""
    i = cuda.threadIdx.x
    kept = np.int64(0)
    if i < 2:
        kept = counts[last_at + i]
    cuda.syncthreads()
    for j in range(i, length, cuda.blockDim.x):
        counts[j] = kept if j < 2 else np.int64(0)


# ---- lengths of the rows of a list, summed up


@kernel
def sum_segments(nodes, sizes, size_at, row_base, indptr, segments):  # type: ignore[no-untyped-def]
    """Sum the row lengths of each block's share of a list."""
    if cuda.threadIdx.x < WARP:
        total = sizes[size_at]
        length = (total + cuda.gridDim.x - 1) // cuda.gridDim.x
        begin = cuda.blockIdx.x * length
        end = min(begin + length, total)
        found = np.int64(0)
        for k in range(begin + cuda.laneid, end, WARP):
            r = np.int64(nodes[k]) - row_base
            found += np.int64(indptr[r + 1]) - np.int64(indptr[r])
        found = warp_sum(found)
        if cuda.laneid == 0:
            segments[cuda.blockIdx.x] = found


@kernel
def scan_segments(segments, num_segments):  # type: ignore[no-untyped-def]
    """Replace sums by the sum of all before; one thread, for a few hundred."""
    if cuda.grid(1) == 0:
        before = np.int64(0)
        for i in range(num_segments):
            value = segments[i]
            segments[i] = before
            before += value


@kernel
def write_offsets(  # type: ignore[no-untyped-def]
    nodes, sizes, size_at, row_base, indptr, segments, offsets
):
    """Write the offset of every listed row, and their total at the end."""
    if cuda.threadIdx.x < WARP:
        total = sizes[size_at]
        length = (total + cuda.gridDim.x - 1) // cuda.gridDim.x
        begin = cuda.blockIdx.x * length
        end = min(begin + length, total)
        before = segments[cuda.blockIdx.x]
        lane = cuda.laneid
        for first in range(begin, end, WARP):
            k = first + lane
            degree = np.int64(0)
            if k < end:
                r = np.int64(nodes[k]) - row_base
                degree = np.int64(indptr[r + 1]) - np.int64(indptr[r])
            upto = degree
            step = 1
            while step < WARP:
                other = cuda.shfl_up_sync(EVERY_LANE, upto, step)
                if lane >= step:
                    upto += other
                step *= 2
            if k < end:
                offsets[k] = before + upto - degree
                if k == total - 1:
                    offsets[total] = before + upto
            before += cuda.shfl_sync(EVERY_LANE, upto, WARP - 1)


# ---- totals


@device
def reduce_parts(partial, num_rows, width, operations, totals):  # type: ignore[no-untyped-def]
    """Reduce the warps' parts of every aggregator, in a fixed order, by one warp.

    ``operations``: 0 sum, 1 minimum, 2 maximum.
    """
    lane = cuda.laneid
    for i in range(width):
        operation = operations[i]
        value = 0.0
        if operation == 1:
            value = math.inf
        if operation == 2:
            value = -math.inf
        for row in range(lane, num_rows, WARP):
            part = partial[row * width + i]
            if operation == 0:
                value += part
            elif operation == 1:
                value = min(value, part)
            else:
                value = max(value, part)
        if operation == 0:
            value = warp_sum(value)
        elif operation == 1:
            value = warp_minimum(value)
        else:
            value = warp_maximum(value)
        if lane == 0:
            totals[i] = value


@kernel
def reduce_totals(partial, num_rows, width, operations, totals):  # type: ignore[no-untyped-def]
    """Reduce the warps' parts of every aggregator; a block of its own, all warps alike."""
    reduce_parts(partial, num_rows, width, operations, totals)


COMMON = {
    "list_everyone": list_everyone,
    "list_stamped": list_stamped,
    "stamp_listed": stamp_listed,
    "bin_nodes": bin_nodes,
    "mark_neighbors": mark_neighbors,
    "keep_last": keep_last,
    "sum_segments": sum_segments,
    "scan_segments": scan_segments,
    "write_offsets": write_offsets,
    "reduce_totals": reduce_totals,
}
