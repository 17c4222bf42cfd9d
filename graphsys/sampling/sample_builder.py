"""A sample on the way: the nodes known so far, and their local numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.errors import CorruptStoreError
from graphsys.kernels.cpu.sampling.sampled_rows import (
    forget_positions,
    number_neighbors,
    number_seeds,
)
from graphsys.kernels.cpu.sampling.timed_rows import (
    fill_slots,
    number_grouped_neighbors,
    number_grouped_seeds,
)
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.blocks import Buffers

Ints = npt.NDArray[np.int64]
Groups = npt.NDArray[np.int32]
Pair = tuple[int, int]


@dataclass(slots=True)
class Growth:
    """A sample on the way: the nodes known so far, and their local numbers.

    Attributes:
        buffers: Where everything is written.
        sizes: Nodes of every type in the tables of positions.
        counts: Nodes known so far by type.
        history: Those counts after each hop.
    """

    buffers: Buffers
    sizes: Mapping[str, int]
    counts: dict[str, int] = field(default_factory=dict)
    history: dict[str, list[int]] = field(default_factory=dict)

    def nodes(self, node_type: str, room: int = 0) -> Ints:
        """Return the nodes known so far, with room for more."""
        return self.buffers.room(("nodes", node_type), room, np.int64)

    def positions(self, node_type: str) -> npt.NDArray[np.int32]:
        """Return the local number plus one of every node of a type."""
        return self.buffers.filled(
            ("positions", node_type), self.sizes[node_type], np.int32, 0
        )

    def begin(self) -> None:
        """Note that a hop begins."""
        for node_type in self.sizes:
            self.history.setdefault(node_type, []).append(self.counts.get(node_type, 0))

    def number_seeds(self, node_type: str, seeds: Ints, places: Ints) -> int:
        """Give the seeds of a type local numbers; return how many there are.

        The result is ``-2 - k`` if seed k is not in the graph.
        """
        nodes = self.nodes(node_type, len(seeds))
        found: int = number_seeds(seeds, self.positions(node_type), nodes, 0, places)
        count = len(distinct(seeds[: -2 - found])) if found < 0 else found
        self.counts[node_type] = count
        return found

    def number(self, rows: PartitionedCsr, name: Any, span: Pair, entries: Pair) -> None:
        """Give the neighbors of rows local numbers.

        Args:
            rows: The relation.
            name: Of its buffers.
            span: First row, and behind the last.
            entries: First entry of those rows, and behind the last.

        Raises:
            CorruptStoreError: A number is outside the graph.
        """
        del span  # who asks for a node does not matter
        begin, end = entries
        known = self.counts.get(rows.neighbor_type, 0)
        found = number_neighbors(
            self.buffers.room(("neighbors", name), end, np.int64),
            begin,
            end,
            self.positions(rows.neighbor_type),
            self.nodes(rows.neighbor_type, known + end - begin),
            known,
            self.buffers.room(("indices", name), end, np.int32),
        )
        self._count(rows, found)

    def groups_by_type(self) -> Mapping[str, Groups] | None:
        """Return the group of each node by type, where there are groups."""
        return None

    def forget(self) -> None:
        """Clear the local numbers for the next sample."""
        for node_type, count in self.counts.items():
            if count:
                forget_positions(self.positions(node_type), self.nodes(node_type), count)

    def _count(self, rows: PartitionedCsr, found: int) -> None:
        require_inside(rows, found)
        self.counts[rows.neighbor_type] = found


@dataclass(slots=True)
class GroupedGrowth(Growth):
    """A sample in which a node is a different one in every group of seeds.

    Local numbers are looked up in a hash table of the sample's size.

    Attributes:
        seed_groups: Group of every seed, by type.
        times: Of every group.
    """

    seed_groups: Mapping[str, Groups] = field(default_factory=dict)
    times: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def groups(self, node_type: str, room: int = 0) -> Groups:
        """Return the groups of the nodes known so far, with room for more."""
        return self.buffers.room(("groups", node_type), room, np.int32)

    def number_seeds(self, node_type: str, seeds: Ints, places: Ints) -> int:
        """Give the seeds of a type local numbers, the same to the same of one group."""
        found: int = number_grouped_seeds(
            seeds,
            self.seed_groups[node_type],
            self.sizes[node_type],
            self._slots(node_type, len(seeds)),
            self.nodes(node_type, len(seeds)),
            self.groups(node_type, len(seeds)),
            places,
        )
        self.counts[node_type] = max(found, 0)
        return found

    def number(self, rows: PartitionedCsr, name: Any, span: Pair, entries: Pair) -> None:
        """Give the neighbors of rows local numbers in the groups of those rows."""
        kind, end = rows.neighbor_type, entries[1]
        known = self.counts.get(kind, 0)
        room = known + end - entries[0]
        found = number_grouped_neighbors(
            self.buffers.room(("indptr", name), span[1] + 1, np.int64),
            *span,
            self.groups(rows.node_type),
            self.buffers.room(("neighbors", name), end, np.int64),
            self.sizes[kind],
            self._slots(kind, room),
            self.nodes(kind, room),
            self.groups(kind, room),
            known,
            self.buffers.room(("indices", name), end, np.int32),
        )
        self._count(rows, found)

    def groups_by_type(self) -> Mapping[str, Groups] | None:
        """Return the group of each node by type."""
        return {name: self.groups(name)[:n] for name, n in self.counts.items() if n}

    def forget(self) -> None:
        """Empty the tables."""
        for node_type in self.sizes:
            self.buffers.drop(("slots", node_type))

    def _slots(self, node_type: str, room: int) -> Groups:
        """Return the table of a type, with room for so many nodes."""
        size = 1 << (2 * room + 2).bit_length()
        slots = self.buffers.get(("slots", node_type))
        if slots is None or len(slots) < size:
            slots = self.buffers.filled(("slots", node_type), size, np.int32, -1)
            known = self.counts.get(node_type, 0)
            fill_slots(slots, self.nodes(node_type), self.groups(node_type), known)
        return slots


def require_inside(rows: PartitionedCsr, found: int) -> None:
    """Refuse rows of which a kernel says that they name a node that there is not.

    Raises:
        CorruptStoreError: ``found`` is negative.
    """
    if found < 0:
        raise CorruptStoreError(
            f"the index of edges {rows.name!r} names nodes outside the graph; run "
            "`graphsys verify`, then ingest again"
        )
