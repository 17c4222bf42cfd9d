"""The other direction of sorted edges: a counting sort by destination.

Edges are read in the order of their buckets, which is sorted by source, so a stable
scatter by destination leaves every row sorted by neighbor: no sort is needed. Threads
own ranges of rows and read all edges, which keeps the scatter stable without atomics.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def count_edges(
    row: npt.NDArray[Any],
    neighbor: npt.NDArray[Any],
    skip_loops: bool,
    counts: npt.NDArray[np.int64],
) -> None:
    """Count the edges of every row.

    Args:
        row: Local numbers of the rows ``[E]``.
        neighbor: Local numbers of the other ends ``[E]``.
        skip_loops: Leave out edges whose two numbers are equal.
        counts: Edges of every row, int64 ``[N]``; added to.
    """
    for k in range(len(row)):
        if skip_loops and row[k] == neighbor[k]:
            continue
        counts[row[k]] += 1


@jit
def scatter_edges(
    row: npt.NDArray[Any],
    neighbor: npt.NDArray[Any],
    skip_loops: bool,
    base: int,
    low: int,
    high: int,
    cursor: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    places: npt.NDArray[np.int64],
) -> None:
    """Append the edges of the rows ``low .. high - 1`` to those rows.

    Args:
        row: Local numbers of the rows ``[E]``.
        neighbor: Local numbers of the other ends ``[E]``.
        skip_loops: Leave out edges whose two numbers are equal.
        base: Number of the neighbors' local number 0.
        low: First row of this thread.
        high: End of its rows.
        cursor: Next place of every row, int64 ``[N]``; advanced.
        indices: Receives the neighbors' numbers, row after row.
        places: Receives the place of every edge, -1 where it was left out, int64
            ``[E]``; empty to skip.
    """
    has_places = len(places) > 0
    for k in range(len(row)):
        r = np.int64(row[k])
        if r < low or r >= high:
            continue
        if skip_loops and row[k] == neighbor[k]:
            if has_places:
                places[k] = -1
            continue
        place = cursor[r]
        indices[place] = np.int64(neighbor[k]) + base
        cursor[r] = place + 1
        if has_places:
            places[k] = place


@jit
def scatter_column(
    values: npt.NDArray[Any], places: npt.NDArray[np.int64], out: npt.NDArray[Any]
) -> None:
    """Write every value to its place; those of place -1 are left out."""
    for k in range(len(values)):
        if places[k] >= 0:
            out[places[k]] = values[k]
