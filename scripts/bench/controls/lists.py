"""Lists: reduction, scan, histogram and bitonic sort, as in CUDA's samples."""

import numpy as np

from bench.controls.device import (
    THREADS,
    Array,
    Device,
    Kernel,
    add_shared,
    add_to,
    load,
    step,
)

EACH = 16
"""Values that a thread of the reduction takes before the tree."""
BINS = 256


def add_up(phase, block, thread, shared, own, log, values, sums, size):
    """Add up values that lie a grid's width apart, then those of a CTA by a tree."""
    if phase == 0:
        total = own[0]
        blocks = -(-size // (THREADS * EACH))
        for i in range(block * THREADS + thread, size, blocks * THREADS):
            total += load(log, 0, values, i)
            step(log, 1)
        shared[thread] = total
    elif phase == 9:
        if thread == 0:
            sums[block] = shared[0]
    else:
        half = THREADS >> phase
        if thread < half:
            shared[thread] += shared[thread + half]
            step(log, 1)


def reduction(device: Device, values: Array) -> Array:
    """Return the sum of values."""
    left = device.copy_in(values)
    while True:
        blocks = -(-len(left) // (THREADS * EACH))
        sums = device.zeros(blocks)
        device.launch(ADD_UP, blocks, (left, sums), (len(left),), phases=10, max_loads=EACH)
        if blocks == 1:
            return device.copy_out(sums)
        left = sums


def scan_cta(phase, block, thread, shared, own, log, values, out, sums, size):
    """Sum up to every value of a CTA (Hillis and Steele), between two halves in turn."""
    i = block * THREADS + thread
    here, there = phase % 2 * THREADS, (phase + 1) % 2 * THREADS
    if phase == 0:
        shared[there + thread] = load(log, 0, values, i) if i < size else 0
    elif phase < 9:
        far = 1 << (phase - 1)
        value = shared[here + thread]
        if thread >= far:
            value += shared[here + thread - far]
            step(log, 1)
        shared[there + thread] = value
    else:
        if i < size:
            out[i] = shared[here + thread]
        if thread == THREADS - 1:
            sums[block] = shared[here + thread]


def add_before(phase, block, thread, shared, own, log, out, sums, size):
    """Add what the CTAs before this one sum up to."""
    i = block * THREADS + thread
    if block > 0 and i < size:
        out[i] = load(log, 0, out, i) + load(log, 1, sums, block - 1)
        step(log, 1)


def scan(device: Device, values: Array) -> Array:
    """Return the sums up to and with every value, int32."""
    return device.copy_out(_scan(device, device.copy_in(values)))


def _scan(device: Device, values: Array) -> Array:
    size = len(values)
    blocks = -(-size // THREADS)
    out, sums = device.zeros(size, np.int32), device.zeros(blocks, np.int32)
    device.launch(SCAN, blocks, (values, out, sums), (size,), phases=10)
    if blocks > 1:
        before = _scan(device, sums)
        device.launch(ADD_BEFORE, blocks, (out, before), (size,))
    return out


def count_bins(phase, block, thread, shared, own, log, values, bins, size):
    """Count in shared memory, then add to the bins."""
    if phase == 0:
        shared[thread] = 0
    elif phase == 1:
        blocks = -(-size // (THREADS * EACH))
        for i in range(block * THREADS + thread, size, blocks * THREADS):
            add_shared(shared, load(log, 0, values, i), 1)
            step(log, 1)
    elif shared[thread] > 0:
        add_to(log, 1, bins, thread, shared[thread])
        step(log, 1)


def histogram(device: Device, values: Array) -> Array:
    """Return how often each of 256 values occurs."""
    given, bins = device.copy_in(values), device.zeros(BINS, np.int32)
    blocks = -(-len(values) // (THREADS * EACH))
    device.launch(
        COUNT, blocks, (given, bins), (len(values),), phases=3, max_loads=EACH + 1
    )
    return device.copy_out(bins)


def sort_shared(phase, block, thread, shared, own, log, values, begin, width):
    """Compare within 512 values: from width ``begin`` on up to ``width``, all distances."""
    first = block * 2 * THREADS
    if phase == 0:
        shared[thread] = load(log, 0, values, first + thread)
        shared[THREADS + thread] = load(log, 0, values, first + THREADS + thread)
        return
    left, size = phase - 1, begin
    distance = min(size // 2, THREADS)
    while left > 0 and size <= width:
        left -= 1
        distance //= 2
        if distance == 0:
            size *= 2
            distance = min(size // 2, THREADS)
    if size > width:
        values[first + thread] = shared[thread]
        values[first + THREADS + thread] = shared[THREADS + thread]
        return
    low = thread // distance * 2 * distance + thread % distance
    is_up = (first + low) & size == 0
    if (shared[low] > shared[low + distance]) == is_up:
        shared[low], shared[low + distance] = shared[low + distance], shared[low]
    step(log, 1)


def sort_far(phase, block, thread, shared, own, log, values, distance, size):
    """Compare values that lie further apart than a CTA reaches."""
    i = block * THREADS + thread
    low = i // distance * 2 * distance + i % distance
    is_up = low & size == 0
    left, right = load(log, 0, values, low), load(log, 0, values, low + distance)
    if (left > right) == is_up:
        values[low], values[low + distance] = right, left
    step(log, 1)


def bitonic_sort(device: Device, values: Array) -> Array:
    """Return values in order; as many as a power of two, 512 at least."""
    here, reach = device.copy_in(values), 2 * THREADS
    blocks = len(values) // reach
    # all merges up to 512 in one launch: 1 + 2 + ... + 9 comparisons, and load and store
    device.launch(SORT_SHARED, blocks, (here,), (2, reach), phases=45 + 2)
    size = 2 * reach
    while size <= len(values):
        distance = size // 2
        while distance > THREADS:
            device.launch(SORT_FAR, blocks, (here,), (distance, size))
            distance //= 2
        device.launch(SORT_SHARED, blocks, (here,), (size, size), phases=9 + 2)
        size *= 2
    return device.copy_out(here)


ADD_UP = Kernel(add_up, shared=THREADS)
SCAN = Kernel(scan_cta, shared=2 * THREADS, dtype=np.int32)
ADD_BEFORE = Kernel(add_before)
COUNT = Kernel(count_bins, shared=BINS, dtype=np.int32)
SORT_SHARED = Kernel(sort_shared, shared=2 * THREADS)
SORT_FAR = Kernel(sort_far)
