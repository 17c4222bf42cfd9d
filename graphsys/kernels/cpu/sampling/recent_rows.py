"""The latest entries of rows that are sorted by time: a binary search, then the last ones.

Rows are T-CSR's (Zhou et al., "TGL: A general framework for temporal GNN training on
billion-scale graphs", PVLDB 15(8), 2022): as those of a CSR, sorted by time within a row,
so that what is older than a time is a prefix of the row.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_inline_jit, lean_jit

Ints = npt.NDArray[np.int64]


@lean_inline_jit
def _first_at(times: Any, low: Any, high: Any, time: Any) -> Any:
    """Return the first place in ``low`` to ``high`` whose time is not before ``time``."""
    while low < high:
        middle = (low + high) // 2
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@lean_jit
def find_before(indptr: Ints, times: Ints, nodes: Ints, before: Ints, ends: Ints) -> None:
    """Find where the entries of rows end that are strictly older than a time.

    Args:
        times: Of the entries, not falling within a row ``[E]``.
        nodes: The rows asked about ``[n]``.
        before: A time for each ``[n]``.
        ends: Receives the place behind the last older entry of each ``[n]``.
    """
    for k in range(len(nodes)):
        node = nodes[k]
        ends[k] = _first_at(times, indptr[node], indptr[node + 1], before[k])


@lean_jit
def take_latest(indptr: Ints, nodes: Ints, ends: Ints, entries: Ints) -> None:
    """Take the last entries before an end, the latest first.

    Args:
        nodes: The rows ``[n]``.
        ends: Behind the last entry that may be taken of each ``[n]``.
        entries: Receives places of entries, -1 where a row has no more ``[n, k]``.
    """
    for k in range(len(nodes)):
        begin = indptr[nodes[k]]
        for j in range(entries.shape[1]):
            place = ends[k] - 1 - j
            entries[k, j] = place if place >= begin else -1
