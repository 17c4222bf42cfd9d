"""PinSage's importance neighborhoods as blocks, and the nodes further down the ranking."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.rng import draw_key
from graphsys.kernels.cpu.sampling.visited_rows import visit_neighborhoods
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.blocks import Buffers
from graphsys.sampling.multi_hop import Draw, Frontier, HopSampler, Pair
from graphsys.sampling.sample_builder import Growth

Ints = npt.NDArray[np.int64]


class ImportanceSampler(HopSampler):
    """The nodes that short random walks from a node visit most, weighted by their visits.

    Walks run along ``rows``: in a graph of pins and boards, from a pin to its boards
    (``rows``) and from there to pins (``back``); then blocks hold pins alone. Without
    ``back`` a traversal is one step within one node type. The seed itself is not counted.

    Args:
        rows: The rows of the seeds.
        back: Rows that lead from their neighbors back to the seeds' type.
        num_neighbors: Neighbors per hop at most (the paper's T), the hop next to the
            seeds first.
        num_walks: Walks from each node.
        walk_length: Traversals of a walk, restarts included.
        restart: Chance to go back to the node before a traversal.
        frontier: ``all`` or ``new``; see :class:`HopSampler`.
        seed: Of all draws.

    Raises:
        ConfigError: A value out of range, or rows that do not lead back.

    References:
        Ying et al., "Graph convolutional neural networks for web-scale recommender
        systems", KDD 2018.
    """

    def __init__(
        self,
        rows: PartitionedCsr,
        back: PartitionedCsr | None = None,
        *,
        num_neighbors: tuple[int, ...] = (50, 50),
        num_walks: int = 100,
        walk_length: int = 3,
        restart: float = 0.5,
        frontier: Frontier = "all",
        seed: int = 0,
    ) -> None:
        for name, value in (
            ("num_walks", num_walks),
            ("walk_length", walk_length),
            *(("num_neighbors", count) for count in num_neighbors),
        ):
            if not isinstance(value, int | np.integer) or not 1 <= value < 2**24:
                raise ConfigError(f"{name}: got {value!r}, expected an int >= 1")
        if not 0 <= restart < 1:
            raise ConfigError(
                f"restart: got {restart!r}, expected a number from 0 to below 1"
            )
        _check_return(rows, back)
        seen = PartitionedCsr(
            name=rows.name,
            edge_type=rows.edge_type,
            node_type=rows.node_type,
            neighbor_type=rows.node_type,
            offsets=rows.offsets,
            num_neighbors=rows.num_nodes,
            first_entry=rows.first_entry,
            table=rows.table,
            wide=rows.wide,
            indexes=rows.indexes,
            weights=rows.weights,
        )
        super().__init__([seen], len(num_neighbors), frontier=frontier, seed=seed)
        self.back = back
        self.num_neighbors = num_neighbors
        self.num_walks, self.walk_length, self.restart = num_walks, walk_length, restart

    def neighborhoods(
        self,
        nodes: Ints,
        num_neighbors: int,
        *,
        skip: int = 0,
        epoch: int = 0,
        batch: int = 0,
    ) -> tuple[Ints, Ints, npt.NDArray[np.float32]]:
        """Return the most visited nodes around each node, most visited first.

        Args:
            nodes: Numbers of nodes ``[n]``.
            num_neighbors: How many of them at most.
            skip: How many to leave out first; from rank ``skip + 1`` on they are what
                PinSage calls hard negatives.
            epoch: Part of the key of the draws.
            batch: Part of the key of the draws.

        Returns:
            Row offsets int64 ``[n + 1]``, numbers int64 ``[E]`` and shares of the visits
            float32 ``[E]``, freshly allocated.

        Raises:
            UnknownNameError: A node is not in the graph.
        """
        indptr = np.zeros(len(nodes) + 1, dtype=np.int64)
        most = min(num_neighbors, self.num_walks * self.walk_length)
        found, weights = (
            np.empty(len(nodes) * most, np.int64),
            np.empty(len(nodes) * most, "f4"),
        )
        key = draw_key(self.seed, "ranks", epoch, batch)
        end = self._visit(
            Buffers(),
            self.rows[0],
            np.ascontiguousarray(nodes, np.int64),
            (0, len(nodes)),
            key,
            skip,
            num_neighbors,
            indptr,
            0,
            found,
            weights,
        )
        if end < 0:
            raise UnknownNameError(
                f"a node is not in the graph, which has {self.rows[0].num_nodes} nodes of "
                f"type {self.rows[0].node_type!r}"
            )
        return indptr, found[:end], weights[:end]

    def _pick(self, growth: Growth, rows: PartitionedCsr, at: Draw) -> int:
        hop, key, (low, high), name, row = at
        buffers = growth.buffers
        most = min(self.num_neighbors[hop], self.num_walks * self.walk_length)
        indptr = buffers.room(("indptr", name), row + high - low + 1, np.int64)
        room = int(indptr[row]) + (high - low) * most
        end = self._visit(
            buffers,
            rows,
            growth.nodes(rows.node_type),
            at.span,
            draw_key(self.seed, "visits", *key, hop),
            0,
            self.num_neighbors[hop],
            indptr,
            row,
            buffers.room(("neighbors", name), room, np.int64),
            buffers.room(("weight", name), room, np.float32),
        )
        assert end >= 0  # seeds and neighbors were numbered
        return end

    def _visit(
        self,
        buffers: Buffers,
        rows: PartitionedCsr,
        nodes: Ints,
        span: Pair,
        key: np.uint64,
        skip: int,
        num_neighbors: int,
        indptr: Ints,
        row: int,
        found: Ints,
        weights: npt.NDArray[np.float32],
    ) -> int:
        back = self.back or rows
        room = 1 << (2 * self.num_walks * self.walk_length + 1).bit_length()
        end: int = visit_neighborhoods(
            rows.offsets,
            rows.table,
            rows.wide,
            back.offsets,
            back.table,
            back.wide,
            self.back is not None,
            nodes,
            *span,
            key,
            self.num_walks,
            self.walk_length,
            self.restart,
            skip,
            num_neighbors,
            buffers.room("walkers", self.num_walks, np.int64),
            buffers.filled("visited", room, np.int64, -1),
            buffers.filled("visits", room, np.int32, 0),
            buffers.filled("used", room, np.int64, 0),
            indptr,
            row,
            found,
            weights,
        )
        return end

    def _extras(self, buffers: Buffers, name: Any, end: int) -> dict[str, Any]:
        return {"weight": buffers.room(("weight", name), 0, np.float32)[:end]}


def _check_return(rows: PartitionedCsr, back: PartitionedCsr | None) -> None:
    end = rows.neighbor_type if back is None else back.neighbor_type
    begins = back is None or back.node_type == rows.neighbor_type
    if end != rows.node_type or not begins:
        way = f"{rows.node_type} to {rows.neighbor_type}"
        more = "" if back is None else f", then {back.node_type} to {back.neighbor_type}"
        raise ConfigError(
            f"walks go from {way}{more}; give rows that lead back to {rows.node_type}"
        )
