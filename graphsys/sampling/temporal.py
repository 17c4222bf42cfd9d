"""Temporal sampling: neighbors by edges that are older than the seed."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from graphsys.core.errors import ConfigError
from graphsys.core.rng import draw_key
from graphsys.datasets.temporary import GraphLike
from graphsys.kernels.cpu.sampling.timed_rows import (
    LATEST,
    UNIFORM,
    WEIGHTED,
    pick_entries_before,
)
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.blocks import Buffers
from graphsys.sampling.multi_hop import Draw, Frontier
from graphsys.sampling.neighbors import NeighborSampler
from graphsys.sampling.sample_builder import GroupedGrowth, Growth, Ints

Choice = Literal["uniform", "latest"]


class TemporalSampler(NeighborSampler):
    """Samples neighbors along edges whose time is strictly before the seed's.

    The seed's time holds for all hops. A node that seeds of different times reach occurs
    once for each time: ``sample.groups`` says which group of seeds it belongs to, and
    seeds of equal times are one group, whose surroundings they share.

    Args:
        graph: An open graph of one relation, or the relations themselves; their edges have
            times.
        fanouts: As for :class:`NeighborSampler`.
        frontier: ``all`` or ``new``; see :class:`HopSampler`.
        choice: ``uniform`` among the older edges, or the ``latest`` of them (of equal
            times those of the smallest neighbors).
        is_weighted: Whether they are drawn in proportion to the edges' weights.
        is_disjoint: Whether every seed is a group of its own, as in PyG; ``groups`` are
            then the places of the seeds, those of the first type first.
        seed: Of all draws.

    Raises:
        ConfigError: Edges without times, or as :class:`NeighborSampler`.

    Examples:
        >>> import graphsys as gs, numpy as np, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> table = {"src": [1, 2, 3], "dst": [0, 0, 0], "time": [10, 20, 30]}
        >>> _ = gs.ingest(table, folder + "/g")
        >>> sampler = TemporalSampler(gs.open(folder + "/g"), [-1])
        >>> sample = sampler.sample(np.array([0, 0]), times=np.array([20, 31]))
        >>> np.diff(sample.blocks[0].indptr)
        array([1, 3])
    """

    picks_by_node = False  # but by its group too

    def __init__(
        self,
        graph: GraphLike | Sequence[PartitionedCsr],
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        *,
        frontier: Frontier = "all",
        choice: Choice = "uniform",
        is_weighted: bool = False,
        is_disjoint: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(
            graph, fanouts, frontier=frontier, is_weighted=is_weighted, seed=seed
        )
        if choice not in get_args(Choice):
            known = " or ".join(get_args(Choice))
            raise ConfigError(f"choice: got {choice!r}, expected {known}")
        if is_weighted and choice == "latest":
            raise ConfigError(
                "choice: got latest with is_weighted, expected uniform: the latest edges "
                "are not drawn"
            )
        for rows in self.rows:
            if rows.num_entries and not rows.has_time:
                raise ConfigError(
                    f"edges {rows.name!r} have no times, by which they were to be chosen; "
                    "ingest a column time"
                )
        self.is_disjoint = is_disjoint
        self._order = LATEST if choice == "latest" else WEIGHTED if is_weighted else UNIFORM

    def _begin(
        self, buffers: Buffers, seeds: dict[str, Ints], times: dict[str, Ints] | None
    ) -> Growth:
        if times is None:
            raise ConfigError("times: got none, expected the time of every seed")
        for name, numbers in seeds.items():
            if len(times.get(name, ())) != len(numbers):
                raise ConfigError(
                    f"times: got {len(times.get(name, ()))} for {len(numbers)} seeds of "
                    f"type {name!r}, expected one each"
                )
        joined = np.concatenate([times[name] for name in seeds] or [np.empty(0, np.int64)])
        group = np.arange(len(joined))
        if not self.is_disjoint:
            joined, group = np.unique(joined, return_inverse=True)
        cuts = np.cumsum([len(numbers) for numbers in seeds.values()])[:-1]
        parts = np.split(group.astype(np.int32), cuts)
        groups = dict(zip(seeds, parts, strict=True))
        return GroupedGrowth(buffers, self.sizes, seed_groups=groups, times=joined)

    def _pick(self, growth: Growth, rows: PartitionedCsr, at: Draw) -> int:
        assert isinstance(growth, GroupedGrowth)  # _begin made it
        hop, key, (low, high), name, row = at
        buffers = growth.buffers
        fanout = self.fanouts[rows.name][hop]
        nodes, indptr = self._count(growth, rows, fanout, at)
        most = int(indptr[row + high - low])
        room = max(fanout, 1)
        end: int = pick_entries_before(
            rows.offsets,
            rows.table,
            rows.wide,
            rows.first_entry,
            nodes,
            growth.groups(rows.node_type),
            growth.times,
            low,
            high,
            draw_key(self.seed, "temporal", *key, hop, rows.name),
            fanout,
            self._order,
            buffers.room("places", room, np.int64),
            buffers.room("keys", room, np.float64),
            indptr,
            row,
            buffers.room(("edge", name), most, np.int64),
            buffers.room(("neighbors", name), most, np.int64),
        )
        return end
