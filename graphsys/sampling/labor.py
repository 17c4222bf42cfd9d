"""LABOR: neighbor sampling that lets the nodes of a hop share neighbors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.rng import draw_key
from graphsys.datasets.temporary import GraphLike
from graphsys.kernels.cpu.sampling.labor import (
    ALL_ROUNDS,
    forget_candidates,
    keep_shared_entries,
    pick_shared_entries,
    read_edge_weights,
    weigh_shared_entries,
)
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.blocks import Buffers
from graphsys.sampling.multi_hop import Draw, Frontier
from graphsys.sampling.neighbors import ALL, NeighborSampler
from graphsys.sampling.sample_builder import Growth

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class LaborSampler(NeighborSampler):
    """Samples neighbors as LABOR does: as many as the fanout on average, fewer nodes.

    A neighbor of a node with d of them is taken with probability min(1, fanout / d), by a
    random number that all nodes of the hop see. Means over rows are as good as neighbor
    sampling's; rows vary in length, and may be empty.

    With ``iterations`` those neighbors are likelier that many rows name (LABOR-1, ...), so
    that a hop has still fewer nodes. Rows have weights then, ``block.weight``, with the sum
    1; the weighted mean over a row has the variance of LABOR-0's, and rows have more
    entries. They depend on the other nodes of the hop.

    By weight a neighbor is likelier the larger its edge's share of the row's weights is,
    and ``block.weight`` estimates the weighted mean, with the variance that a mean of as
    many of d equal weights has. A row then has at most the fanout on average, and fewer
    where few edges have most of the weight.

    Args:
        graph: An open graph of one relation, or the relations themselves.
        fanouts: Neighbors per hop on average, the hop next to the seeds first; -1 for all.
        frontier: ``all`` or ``new``; see :class:`HopSampler`.
        is_layer_dependent: Whether all hops see the same random numbers, which makes the
            samples still smaller and their hops dependent.
        iterations: How often importances are updated; 0: LABOR-0, all are equal; -1: until
            the expected number of nodes hardly changes (LABOR-*).
        is_weighted: Whether chances are in proportion to the edges' weights; edges of
            weight 0 or less are never taken.
        seed: Of all draws.

    Raises:
        ConfigError: As :class:`NeighborSampler`; iterations below -1.

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
        iterations: int = 0,
        is_weighted: bool = False,
        seed: int = 0,
    ) -> None:
        if iterations < ALL_ROUNDS:
            raise ConfigError(
                f"iterations: got {iterations}, expected an int >= 0, or -1 for as many as "
                "change something"
            )
        super().__init__(
            graph, fanouts, frontier=frontier, is_weighted=is_weighted, seed=seed
        )
        self.is_layer_dependent = is_layer_dependent
        self.iterations = iterations
        self._has_weights = bool(iterations) or is_weighted
        self.picks_by_node = not self._has_weights
        self._draws_places = False

    def _pick(self, growth: Growth, rows: PartitionedCsr, at: Draw) -> int:
        (low, high), name, row = at.span, at.name, at.row
        buffers = growth.buffers
        fanout = self.fanouts[rows.name][at.hop]
        if self._has_weights:
            return self._pick_weighed(growth, rows, at, fanout)
        nodes, indptr = self._count(growth, rows, fanout, at)
        begin, average = int(indptr[row]), int(indptr[row + high - low])
        own = self._key(rows, at)
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

    def _key(self, rows: PartitionedCsr, at: Draw) -> np.uint64:
        hops = () if self.is_layer_dependent else (at.hop,)
        return draw_key(self.seed, "labor", *at.key, *hops, rows.neighbor_type)

    def _pick_weighed(
        self, growth: Growth, rows: PartitionedCsr, at: Draw, fanout: int
    ) -> int:
        """Read the rows of a hop whole, weigh what they name, and keep what is drawn."""
        (low, high), name, row = at.span, at.name, at.row
        buffers = growth.buffers
        whole = self._read_whole(growth, rows, at)
        count, end = whole.num_sources, int(whole.indptr[row + high - low])
        importance = buffers.room("importance", count, np.float64)
        factors = buffers.room("factors", high - low, np.float64)
        rounds = self.iterations if fanout != ALL else 0
        edge_weights = self._edge_weights(buffers, rows, growth.nodes(rows.node_type), at)
        weigh_shared_entries(
            whole.indptr,
            row,
            high - low,
            whole.neighbors,
            whole.slots,
            edge_weights,
            count,
            2**31 if fanout == ALL else fanout,  # more than any row has
            rounds,
            importance,
            whole.weights,  # scratch from here on
            factors,
        )
        kept: int = keep_shared_entries(
            self._key(rows, at),
            whole.indptr,
            row,
            high - low,
            whole.slots,
            importance,
            factors,
            edge_weights,
            self.is_weighted and rounds == 0,
            whole.entries,
            whole.neighbors,
            buffers.room(("weight", name), end, np.float32),
        )
        forget_candidates(whole.slots, whole.sources, count)
        return kept

    def _edge_weights(
        self, buffers: Buffers, rows: PartitionedCsr, nodes: Ints, at: Draw
    ) -> Floats:
        """Return the weights of the entries of a hop's rows; none where all are alike."""
        if not self.is_weighted:
            return np.empty(0)
        (low, high), row = at.span, at.row
        indptr = buffers.room(("indptr", at.name), 0, np.int64)
        num_entries = int(indptr[row + high - low] - indptr[row])
        found = buffers.room("edge_weights", num_entries, np.float64)[:num_entries]
        read_edge_weights(rows.offsets, rows.table, rows.wide, nodes, low, high, found)
        return found

    def _extras(self, buffers: Buffers, name: Any, end: int) -> dict[str, Any]:
        found = super()._extras(buffers, name, end)
        if self._has_weights:
            found["weight"] = buffers.room(("weight", name), 0, np.float32)[:end]
        return found
