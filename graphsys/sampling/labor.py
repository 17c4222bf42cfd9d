"""LABOR-0: neighbor sampling that lets the nodes of a hop share neighbors."""

from collections.abc import Mapping, Sequence

import numpy as np

from graphsys.core.rng import draw_key
from graphsys.datasets.temporary import GraphLike
from graphsys.kernels.cpu.sampling.labor import pick_shared_entries
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.multi_hop import Draw, Frontier
from graphsys.sampling.neighbors import NeighborSampler
from graphsys.sampling.sample_builder import Growth


class LaborSampler(NeighborSampler):
    """Samples neighbors as LABOR-0 does: as many as the fanout on average, fewer nodes.

    A neighbor of a node with d of them is taken with probability min(1, fanout / d), by a
    random number that all nodes of the hop see. Means over rows are as good as neighbor
    sampling's; rows vary in length, and may be empty.

    Args:
        graph: An open graph of one relation, or the relations themselves.
        fanouts: Neighbors per hop on average, the hop next to the seeds first; -1 for all.
        frontier: ``all`` or ``new``; see :class:`HopSampler`.
        is_layer_dependent: Whether all hops see the same random numbers, which makes the
            samples still smaller and their hops dependent.
        seed: Of all draws.

    Raises:
        ConfigError: As :class:`NeighborSampler`.

    References:
        Balin and Catalyurek, "Layer-Neighbor Sampling -- Defusing Neighborhood Explosion
        in GNNs", NeurIPS 2023.
    """

    def __init__(
        self,
        graph: GraphLike | Sequence[PartitionedCsr],
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        *,
        frontier: Frontier = "all",
        is_layer_dependent: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(graph, fanouts, frontier=frontier, seed=seed)
        self.is_layer_dependent = is_layer_dependent
        self._draws_places = False

    def _pick(self, growth: Growth, rows: PartitionedCsr, at: Draw) -> int:
        hop, key, (low, high), name, row = at
        buffers = growth.buffers
        fanout = self.fanouts[rows.name][hop]
        nodes, indptr = self._count(growth, rows, fanout, at)
        begin, average = int(indptr[row]), int(indptr[row + high - low])
        hops = () if self.is_layer_dependent else (hop,)
        own = draw_key(self.seed, "labor", *key, *hops, rows.neighbor_type)
        # rows that share neighbors vary together; one that finds no room is taken up again
        room = average + int(6 * np.sqrt(average - begin)) + 64
        while True:
            done = pick_shared_entries(
                rows.offsets,
                rows.table,
                rows.wide,
                rows.first_entry,
                nodes,
                low,
                high,
                own,
                fanout,
                indptr,
                row,
                buffers.room(("edge", name), room, np.int64),
                buffers.room(("neighbors", name), room, np.int64),
            )
            row, low = row + done - low, done
            if low == high:
                return int(indptr[row])
            room *= 2
