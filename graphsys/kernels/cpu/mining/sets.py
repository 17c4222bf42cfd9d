"""Sorted sets of nodes: what the loops of a compiled pattern are made of.

A set is a piece ``[begin, end)`` of an array, a row of the graph or scratch. Of two sets
of like size the entries are merged without branches; where one is much longer, the entries
of the shorter are looked up in it.
"""

from typing import Any

import numpy as np

from graphsys.kernels.cpu.mining.four_cycles import place_of
from graphsys.kernels.jit import lean_inline_jit, lean_jit

_MUCH_LONGER = 16


@lean_inline_jit
def has(a: Any, begin: Any, end: Any, node: Any) -> Any:
    """Tell whether a set holds a node."""
    place = place_of(a, begin, end, node)
    return place < end and np.int64(a[place]) == node


@lean_jit
def intersect(a: Any, a0: int, a1: int, b: Any, b0: int, b1: int, out: Any) -> Any:
    """Write what two sets share to ``out``; return how many."""
    if a1 - a0 > b1 - b0:
        a, a0, a1, b, b0, b1 = b, b0, b1, a, a0, a1
    num = np.int64(0)
    if (a1 - a0) * _MUCH_LONGER < b1 - b0:
        for k in range(a0, a1):
            # From the last hit on: both are sorted, so that what lies before is too small.
            b0 = place_of(b, b0, b1, np.int64(a[k]))
            if b0 >= b1:
                break
            if b[b0] == a[k]:
                out[num] = a[k]
                num += 1
        return num
    while a0 < a1 and b0 < b1:
        x, y = a[a0], b[b0]
        out[num] = x  # overwritten unless it counts
        # Additions in place of branches, which the processor could not foresee.
        num += x == y
        a0 += x <= y
        b0 += y <= x
    return num


@lean_jit
def intersect_size(a: Any, a0: int, a1: int, b: Any, b0: int, b1: int) -> Any:
    """Return how many nodes two sets share."""
    if a1 - a0 > b1 - b0:
        a, a0, a1, b, b0, b1 = b, b0, b1, a, a0, a1
    num = np.int64(0)
    if (a1 - a0) * _MUCH_LONGER < b1 - b0:
        for k in range(a0, a1):
            b0 = place_of(b, b0, b1, np.int64(a[k]))
            if b0 >= b1:
                break
            num += b[b0] == a[k]
        return num
    while a0 < a1 and b0 < b1:
        x, y = a[a0], b[b0]
        num += x == y
        a0 += x <= y
        b0 += y <= x
    return num


@lean_jit
def subtract(a: Any, a0: int, a1: int, b: Any, b0: int, b1: int, out: Any) -> Any:
    """Write what the second set lacks of the first to ``out``; return how many."""
    num = np.int64(0)
    if (a1 - a0) * _MUCH_LONGER < b1 - b0:
        for k in range(a0, a1):
            b0 = place_of(b, b0, b1, np.int64(a[k]))
            if b0 >= b1 or b[b0] != a[k]:
                out[num] = a[k]
                num += 1
        return num
    while a0 < a1 and b0 < b1:
        x, y = a[a0], b[b0]
        out[num] = x
        num += x < y
        a0 += x <= y
        b0 += y <= x
    for k in range(a0, a1):
        out[num] = a[k]
        num += 1
    return num
