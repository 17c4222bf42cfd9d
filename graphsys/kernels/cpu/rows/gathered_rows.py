"""Rows of mapped feature files, gathered into a buffer of the caller's.

A row is copied as bytes, whatever its dtype, so that one loop serves all. Rows are asked
for a few ahead of time: they lie scattered, and the copy would wait for each.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.pointers import copy_bytes, load_uint32, prefetch
from graphsys.kernels.cpu.rows.row_table import find_partition
from graphsys.kernels.jit import lean_jit

_BLOCK = 512
_AHEAD = 8
_LINE = 64


@lean_jit
def gather_rows(
    thread: int,
    offsets: npt.NDArray[np.int64],
    addresses: npt.NDArray[np.uint64],
    places: npt.NDArray[np.uint64],
    row_bytes: int,
    nodes: npt.NDArray[np.int64],
    target: np.uint64,
    stride: int,
    counter: npt.NDArray[np.int64],
) -> None:
    """Copy the rows of nodes; threads share the work block by block.

    Args:
        offsets: First number of every partition, and the number of nodes ``[P + 1]``.
        addresses: Where each partition's first row lies ``[P]``.
        places: Where each partition's uint32 lie that say which row a node has ``[P]``; 0
            where every node has its own.
        row_bytes: Bytes of a row.
        nodes: Numbers of nodes ``[n]``, all in range.
        target: Address of the first row that is written.
        stride: Bytes from one written row to the next.
    """
    num_nodes = len(nodes)
    for k in claimed_range(0, num_nodes, _BLOCK, counter):
        if k + _AHEAD < num_nodes:
            source = _row(offsets, addresses, places, row_bytes, nodes[k + _AHEAD])
            for line in range(0, row_bytes, _LINE):
                prefetch(source + np.uint64(line))
        source = _row(offsets, addresses, places, row_bytes, nodes[k])
        copy_bytes(target + np.uint64(k * stride), source, row_bytes)


@lean_jit
def _row(offsets: Any, addresses: Any, places: Any, row_bytes: Any, node: Any) -> Any:
    part = find_partition(offsets, node)
    local = node - offsets[part]
    if places[part]:
        local = np.int64(load_uint32(places[part], local))
    return addresses[part] + np.uint64(local * row_bytes)


@lean_jit
def first_outside(nodes: npt.NDArray[np.int64], num_nodes: int) -> int:
    """Return the place of the first number that is no node's, or -1."""
    for k in range(len(nodes)):
        if nodes[k] < 0 or nodes[k] >= num_nodes:
            return k
    return -1
