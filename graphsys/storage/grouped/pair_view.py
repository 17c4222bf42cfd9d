"""A store whose partitions meet in groups, round by round, each two of them once.

The partitions of a node type are dealt to the points of an affine plane, and its lines are
the groups: in a round every partition is in one group, and after all rounds each two have
been in the same group once. So who has one group in memory at a time sees every edge
within a type once, each time among all nodes of a random group.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.types import Bucket, EdgeType
from graphsys.storage.grouped.affine_plane import ORDERS, parallel_classes
from graphsys.storage.grouped.merged_view import GroupedGraph
from graphsys.storage.reader import GraphReader


@dataclass(frozen=True, kw_only=True)
class Meetings:
    """How the partitions of a node type meet.

    Attributes:
        groups: Partitions of every group, round by round.
        rounds: The round of each group, int64 ``[V]``.
        points: The point of every partition, int64 ``[P]``; those of one point are always
            together.
        own_rounds: In which round the edges within each point are seen, int64.
        is_plane: Whether all meet; if not, the groups are the partitions as they are.
    """

    groups: list[list[int]]
    rounds: npt.NDArray[np.int64]
    points: npt.NDArray[np.int64]
    own_rounds: npt.NDArray[np.int64]
    is_plane: bool


class PairGraph(GroupedGraph):
    """A graph whose partitions meet in groups; a partition is in one group of every round.

    Edges within a node type are those of the round in which their ends meet, in the bucket
    of the group with itself; edges between two node types are all in the first round.

    Args:
        stored: The graph; closing this closes nothing.
        meetings: Of every node type.
    """

    def __init__(self, stored: GraphReader, meetings: Mapping[str, Meetings]) -> None:
        super().__init__(stored, {})
        self.meet(meetings)

    def meet(self, meetings: Mapping[str, Meetings]) -> None:
        """Have partitions meet in other groups.

        Args:
            meetings: As for a new one.
        """
        self._meetings = meetings
        self._groups = {name: found.groups for name, found in meetings.items()}

    def round_of(self, edge_type: EdgeType | str, bucket: Bucket) -> int:
        """Return the round in which a bucket's partitions are in memory."""
        entry = self._edge_entry(edge_type)
        ends = ((entry.src_type, bucket[0]), (entry.dst_type, bucket[1]))
        return max(int(self._meetings[name].rounds[part]) for name, part in ends)

    def bucket_counts(
        self, edge_type: EdgeType | str, split: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the edges of every bucket, int64 ``[V, W]``, most of them without any."""
        entry = self._edge_entry(edge_type)
        stored = self.stored.bucket_counts(edge_type, split)
        src, dst = self._groups[entry.src_type], self._groups[entry.dst_type]
        counts = np.zeros((len(src), len(dst)), dtype=np.int64)
        for i, j in self._meeting_groups(entry.src_type, entry.dst_type):
            has = self._has(entry.src_type, entry.dst_type, i, j)
            counts[i, j] = stored[np.ix_(src[i], dst[j])][has].sum()
        return counts

    def _meeting_groups(self, src_type: str, dst_type: str) -> list[tuple[int, int]]:
        """List the pairs of groups that have buckets."""
        src, dst = self._meetings[src_type], self._meetings[dst_type]
        if src_type == dst_type and src.is_plane:
            return [(k, k) for k in range(len(src.groups))]
        first = [np.flatnonzero(meetings.rounds == 0) for meetings in (src, dst)]
        return [(int(i), int(j)) for i in first[0] for j in first[1]]

    def _has(self, src_type: str, dst_type: str, i: int, j: int) -> npt.NDArray[np.bool_]:
        """Say which stored buckets of a pair of groups are in their bucket, ``[M, N]``."""
        src, dst = self._meetings[src_type], self._meetings[dst_type]
        rows, columns = src.groups[i], dst.groups[j]
        if src_type != dst_type or not src.is_plane:
            is_first = src.rounds[i] == 0 and dst.rounds[j] == 0
            return np.full((len(rows), len(columns)), is_first)
        of_rows, of_columns = src.points[rows], src.points[columns]
        is_own = src.own_rounds[of_rows] == src.rounds[i]
        has: npt.NDArray[np.bool_] = (of_rows[:, None] != of_columns) | is_own[:, None]
        return has & np.bool_(i == j)

    def _pairs(self, edge_type: EdgeType | str, i: int, j: int) -> list[tuple[int, int]]:
        entry = self._edge_entry(edge_type)
        has = self._has(entry.src_type, entry.dst_type, i, j)
        pairs = super()._pairs(edge_type, i, j)
        return [pair for pair, is_there in zip(pairs, has.flat, strict=True) if is_there]


def draw_meetings(
    stored: GraphReader, num_groups: int, rng: np.random.Generator
) -> dict[str, Meetings]:
    """Deal the partitions of every node type to a plane, at random.

    Args:
        stored: The graph.
        num_groups: Groups of a round, one of :data:`ORDERS`. A type with fewer than its
            square of partitions has the largest plane that they fill; fewer than four stay
            as they are.
        rng: Of the draws.
    """
    meetings = {}
    for name in stored.node_types:
        num_parts = stored.num_partitions(name)
        orders = [q for q in ORDERS if q <= num_groups and q * q <= num_parts]
        if not orders:
            parts = np.arange(num_parts)
            meetings[name] = Meetings(
                groups=[[k] for k in range(num_parts)],
                rounds=np.zeros_like(parts),
                points=parts,
                own_rounds=np.zeros_like(parts),
                is_plane=False,
            )
            continue
        meetings[name] = _on_plane(orders[-1], num_parts, rng)
    return meetings


def _on_plane(order: int, num_parts: int, rng: np.random.Generator) -> Meetings:
    """Deal partitions to the points of a plane, nearly as many to each."""
    num_points = order * order
    points = rng.permutation(np.arange(num_parts) % num_points)
    at = [np.flatnonzero(points == point).tolist() for point in range(num_points)]
    classes = parallel_classes(order)[rng.permutation(order + 1)]
    return Meetings(
        groups=[
            [k for point in line for k in at[point]]
            for line in classes.reshape(-1, order).tolist()
        ],
        rounds=np.repeat(np.arange(order + 1), order),
        points=points,
        own_rounds=rng.integers(0, order + 1, num_points),
        is_plane=True,
    )
