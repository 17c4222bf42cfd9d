"""Rows of a store's index files, reached by a table of addresses (see ``pointers``).

``table`` has one line per partition: addresses of indptr, indices, weights and times; 0
where there is no such column. ``wide`` says which of them have 64 bits (int64, float64),
else uint32 and float32; times are always int64.
"""

from typing import Any

import numpy as np

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.pointers import (
    load_float32,
    load_float64,
    load_int64,
    load_uint32,
    prefetch,
)
from graphsys.kernels.jit import lean_inline_jit

INDPTR, INDICES, WEIGHT, TIME = 0, 1, 2, 3
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@lean_inline_jit
def find_partition(offsets: Any, node: Any) -> Any:
    """Return the partition of a node by bisection of the partitions' first numbers."""
    low, high = 0, len(offsets) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if offsets[middle] <= node:
            low = middle
        else:
            high = middle
    return low


@lean_inline_jit
def element(table: Any, wide: Any, part: Any, column: Any, k: Any) -> Any:
    """Return element ``k`` of a partition's indptr or indices, int64."""
    if wide[part, column]:
        return load_int64(table[part, column], k)
    return np.int64(load_uint32(table[part, column], k))


@lean_inline_jit
def find_row(offsets: Any, table: Any, wide: Any, node: Any) -> Any:
    """Return a node's partition, and where in it the row begins and ends."""
    part = find_partition(offsets, node)
    local = node - offsets[part]
    begin = element(table, wide, part, INDPTR, local)
    return part, begin, element(table, wide, part, INDPTR, local + 1)


@lean_inline_jit
def ask_row(offsets: Any, table: Any, wide: Any, node: Any) -> None:
    """Ask for the place that says where a node's row begins, which is read soon."""
    part = find_partition(offsets, node)
    size = np.uint64(8) if wide[part, INDPTR] else np.uint64(4)
    prefetch(table[part, INDPTR] + np.uint64(node - offsets[part]) * size)


@lean_inline_jit
def weight_of(table: Any, wide: Any, part: Any, k: Any) -> Any:
    """Return the weight of entry ``k`` of a partition, float64."""
    if wide[part, WEIGHT]:
        return load_float64(table[part, WEIGHT], k)
    return np.float64(load_float32(table[part, WEIGHT], k))


@lean_inline_jit
def below(key: Any, draw: Any, bound: Any) -> Any:
    """Return a random number from 0 to ``bound - 1``; bounds are below 2**32."""
    word = mix64(key + np.uint64(draw) * _GOLDEN)
    return np.int64(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@lean_inline_jit
def fraction(key: Any, draw: Any) -> Any:
    """Return a random number in (0, 1)."""
    word = mix64(key + np.uint64(draw) * _GOLDEN)
    return (np.float64(word >> np.uint64(12)) + 0.5) * 2.0**-52


@lean_inline_jit
def has_neighbor(offsets: Any, table: Any, wide: Any, node: Any, other: Any) -> Any:
    """Whether a node's row, which is sorted, has another node."""
    part, low, end = find_row(offsets, table, wide, node)
    high = end
    while low < high:
        middle = (low + high) // 2
        if element(table, wide, part, INDICES, middle) < other:
            low = middle + 1
        else:
            high = middle
    return low < end and element(table, wide, part, INDICES, low) == other
