"""What deltas changed in the rows of an index, by row."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.storage.deltas.edges import EdgeChanges
from graphsys.storage.deltas.order import edge_order
from graphsys.storage.manifest import EdgeTypeEntry


@dataclass(frozen=True, kw_only=True)
class RowChanges:
    """Entries added to the rows of one direction and entries removed, by (row, neighbor).

    Attributes:
        offsets: First number of every partition of the rows, and their number.
        other_type: Node type of the neighbors.
        row: Number of each added entry's row ``[D]``.
        neighbor: Its neighbor ``[D]``.
        order: Which of the edges added it is ``[D]``.
        columns: Relations, weights and times of the entries, where edges have them.
        gone_row: Number of each removed entry's row ``[R]``.
        gone_neighbor: Its neighbor ``[R]``.
        copy: Which of several equal pairs it is ``[R]``.
    """

    offsets: npt.NDArray[np.int64]
    other_type: str
    row: npt.NDArray[np.integer]
    neighbor: npt.NDArray[np.integer]
    order: npt.NDArray[np.integer]
    columns: Mapping[str, npt.NDArray[Any]]
    gone_row: npt.NDArray[np.int64]
    gone_neighbor: npt.NDArray[np.int64]
    copy: npt.NDArray[np.int64]


def row_changes(changes: EdgeChanges, entry: EdgeTypeEntry, direction: str) -> RowChanges:
    """Return the changes of a split as changes of the rows of an index.

    Args:
        changes: By bucket.
        entry: The edge type; of an undirected one inside a node type every edge has an
            entry in the rows of both ends, and a loop one.
        direction: "out" or "in".
    """
    is_symmetric = not entry.directed and entry.src_type == entry.dst_type
    gone = changes.removed
    ends = [(changes.src, changes.dst)]
    gone_ends = [(gone.src, gone.dst)]
    if direction == "in":
        ends, gone_ends = [ends[0][::-1]], [gone_ends[0][::-1]]
    picks = [np.arange(len(changes.src))]
    gone_picks = [np.arange(len(gone.src))]
    if is_symmetric:  # a loop appears once
        picks.append(np.flatnonzero(changes.src != changes.dst))
        gone_picks.append(np.flatnonzero(gone.src != gone.dst))
        ends.append(ends[0][::-1])
        gone_ends.append(gone_ends[0][::-1])
    row, neighbor = _taken(ends, picks)
    pick = np.concatenate(picks)
    relation = changes.columns.get("relation")
    order = edge_order(row, neighbor, None if relation is None else relation[pick])
    gone_row, gone_neighbor = _taken(gone_ends, gone_picks)
    gone_pick = np.concatenate(gone_picks)
    by_row = np.lexsort((gone.copy[gone_pick], gone_neighbor, gone_row))
    is_out = direction == "out"
    return RowChanges(
        offsets=changes.src_offsets if is_out else changes.dst_offsets,
        other_type=entry.dst_type if is_out else entry.src_type,
        row=row[order],
        neighbor=neighbor[order],
        order=pick[order],
        columns={name: v[pick[order]] for name, v in changes.columns.items()},
        gone_row=gone_row[by_row],
        gone_neighbor=gone_neighbor[by_row],
        copy=gone.copy[gone_pick[by_row]],
    )


def _taken(
    ends: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
    picks: list[npt.NDArray[np.int64]],
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    pairs = [
        (row[pick], other[pick]) for (row, other), pick in zip(ends, picks, strict=True)
    ]
    return (
        np.concatenate([row for row, _ in pairs]),
        np.concatenate([other for _, other in pairs]),
    )
