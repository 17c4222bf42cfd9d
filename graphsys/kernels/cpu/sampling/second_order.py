"""Steps of node2vec's walks over the rows of a store's index files.

A step to x from a node that was reached from ``last`` has chance in proportion to 1/p where
x is ``last``, to 1 where ``last`` has an edge to x, and to 1/q elsewhere (Grover and
Leskovec, KDD 2016). It is drawn by rejection (Yang et al., "KnightKing", SOSP 2019), so
that nothing is built beforehand. Every draw is a hash of (key, walk, attempt).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.rows.row_table import (
    INDICES,
    below,
    element,
    find_row,
    fraction,
    has_neighbor,
)
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Ints = npt.NDArray[np.int64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ATTEMPTS = 64


@lean_jit
def step_nodes_second_order(
    offsets: Ints,
    table: npt.NDArray[np.uint64],
    wide: npt.NDArray[np.uint8],
    last: Ints,
    nodes: Ints,
    is_within: bool,
    back: float,
    out: float,
    key: np.uint64,
    following: Ints,
) -> None:
    """Take one step of many walks at once.

    Args:
        offsets: First numbers of the partitions ``[P + 1]``.
        table: Addresses of the rows, each sorted by neighbor.
        wide: Their dtypes.
        last: Where each walk was before ``[n]``.
        nodes: Where each walk is; -1 for one that has ended ``[n]``.
        is_within: Whether these rows are also those of ``last``; else ``last`` has no edge
            to any node that a step can lead to.
        back: Weight of going back, 1 / p.
        out: Weight of nodes that ``last`` has no edge to, 1 / q.
        key: Of this step's draws.
        following: Receives where each walk is then, -1 at a dead end ``[n]``.
    """
    ceiling = max(1.0 if is_within else 0.0, max(back, out))
    for k in range(len(nodes)):
        following[k] = -1
        if nodes[k] < 0:
            continue
        part, begin, end = find_row(offsets, table, wide, nodes[k])
        if begin == end:
            continue
        own = mix64(key + np.uint64(k) * _GOLDEN)
        for attempt in range(_ATTEMPTS):
            place = begin + below(own, 2 * attempt, end - begin)
            node = element(table, wide, part, INDICES, place)
            chance = _bias(offsets, table, wide, last[k], node, is_within, back, out)
            if fraction(own, 2 * attempt + 1) * ceiling < chance:
                following[k] = node
                break
        if following[k] < 0:
            # rare, with extreme p or q: the exact distribution, by the whole row, twice
            total = 0.0
            for place in range(begin, end):
                node = element(table, wide, part, INDICES, place)
                total += _bias(offsets, table, wide, last[k], node, is_within, back, out)
            target = fraction(own, 2 * _ATTEMPTS) * total
            for place in range(begin, end):
                following[k] = element(table, wide, part, INDICES, place)
                target -= _bias(
                    offsets, table, wide, last[k], following[k], is_within, back, out
                )
                if target <= 0.0:
                    break


@lean_inline_jit
def _bias(
    offsets: Any,
    table: Any,
    wide: Any,
    last: Any,
    node: Any,
    is_within: Any,
    back: Any,
    out: Any,
) -> Any:
    """Return the weight of a step to ``node``."""
    if node == last:
        return back
    if is_within and has_neighbor(offsets, table, wide, last, node):
        return 1.0
    return out
