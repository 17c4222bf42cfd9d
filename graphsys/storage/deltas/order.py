"""The order of edges that are held in memory."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.graph.sort import stable_argsort

Ints = npt.NDArray[np.integer]


def edge_order(
    row: Ints, neighbor: Ints, relation: Ints | None, group: Ints | None = None
) -> npt.NDArray[Any]:
    """Return the positions that sort edges by (group, row, neighbor, relation).

    Args:
        row: Numbers of one end ``[E]``.
        neighbor: Numbers of the other end ``[E]``.
        relation: Codes, or None.
        group: What comes first, such as the bucket, or None.

    Returns:
        Positions ``[E]``; equal edges keep their order.
    """
    order: npt.NDArray[Any] = np.arange(len(row), dtype=np.int64)
    if relation is not None:
        order = np.argsort(relation, kind="stable")
    is_narrow = not len(row) or max(int(row.max()), int(neighbor.max())) < 2**32
    if is_narrow:
        # Both numbers in one key: one sort in place of two.
        keys = row[order].astype(np.uint64) << np.uint64(32)
        keys |= neighbor[order].astype(np.uint64)
        order = order[stable_argsort(keys)]
    else:
        # Stable sorts, the least important first.
        for numbers in (neighbor, row):
            order = order[stable_argsort(numbers[order].astype(np.uint64))]
    if group is not None:
        order = order[np.argsort(group[order], kind="stable")]
    return order


def parts_of(numbers: Ints, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the partition of every number."""
    return np.searchsorted(offsets, numbers, side="right").astype(np.int64) - 1
