"""Topologies of which a worker has its own nodes' rows in memory.

Those are edges, beside the ways back that others hold, or the simple undirected graph.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EDGE
from graphsys.distributed.transport.exchange import Exchange, Payload
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction, IndexBlock, unite
from graphsys.graph.csr import Csr, offset_dtype

Places = npt.NDArray[np.int64]
Shared = list[Places]
"""Of each other worker, in their order, the places of entries."""

_NOWHERE = np.empty(0, np.int64)


class LocalEdges(Topology):
    """All nodes of a store; of rows in memory the own, and entries of others to own nodes.

    What programs with states of edges need: the way back of an own entry is an entry of its
    neighbor's row. Workers send each other those once, in the order of their rows, so that
    both know them in the same order; they are found by
    :meth:`~graphsys.engine.execute.arrays.RunArrays.reverse_of` as on one machine.

    Args:
        stored: The store.
        exchange: With the other workers.
        owners: The worker of every node, integers ``[N]``.
        spans: The own nodes.
        directions: Whose entries have states.
    """

    def __init__(
        self,
        stored: Topology,
        exchange: Exchange,
        owners: npt.NDArray[Any],
        spans: Sequence[tuple[int, int]],
        directions: Iterable[Direction],
    ) -> None:
        super().__init__(stored.numbers, is_directed=stored.is_directed, graph=stored.graph)
        self._exchange = exchange
        self._owners = owners
        self._spans = spans
        for direction in directions:
            self._rows[direction] = self._with_ways_back(direction)

    def own_blocks(self, direction: Direction) -> list[IndexBlock]:
        """Return the own rows, a block for each span; their entries keep their places."""
        direction = direction if self.is_directed else "out"
        if direction not in self._rows:
            return self.blocks(direction)
        rows = self._rows[direction]
        return [
            _block(rows.with_indptr(rows.indptr[low : high + 1]), direction, low)
            for low, high in self._spans
        ]

    def shared_entries(self, directions: Iterable[Direction]) -> tuple[Shared, Shared]:
        """Return which entries two workers know, of each other worker in the same order.

        Args:
            directions: Their entries are numbered one direction behind the other.

        Returns:
            The places of own ones that the other has copies of, and of the copies here of
            the other's.
        """
        rank, base = self._exchange.rank, 0
        told: Shared = [_NOWHERE for _ in self._exchange.others]
        read: Shared = list(told)
        for direction in directions:
            rows = self._rows[direction]
            for k, other in enumerate(self._exchange.others):
                told[k] = np.append(told[k], base + self._entries(rows, rank, other))
                read[k] = np.append(read[k], base + self._entries(rows, other, rank))
            base += rows.num_edges
        return told, read

    def _entries(self, rows: Csr, at: int, to: int) -> Places:
        """Return the places of entries in rows of one worker's nodes to another's."""
        is_at = np.repeat(self._owners == at, rows.degrees())
        return np.flatnonzero(is_at & (self._owners[rows.indices] == to))

    def _with_ways_back(self, direction: Direction) -> Csr:
        """Return the own rows, and of others' rows the entries to own nodes."""
        own = unite(
            [block for block in self.blocks(direction) if self._is_own(block)],
            self.num_nodes,
            np.empty,
        )
        outgoing: list[Payload] = []
        for other in self._exchange.others:
            places = self._entries(own, self._exchange.rank, other)
            nodes = np.searchsorted(own.indptr, places, "right") - 1
            columns = own.columns
            cut = [column[places] for column in columns.values()]
            outgoing.append((tuple(columns), nodes, own.indices[places], *cut))
        blocks = [_block(own, direction, 0)]
        for names, nodes, indices, *values in self._exchange.all_to_all(outgoing):
            indptr = np.zeros(self.num_nodes + 1, offset_dtype(len(nodes)))
            np.cumsum(np.bincount(nodes, minlength=self.num_nodes), out=indptr[1:])
            columns = dict(zip(names, values, strict=True))
            theirs = Csr(indptr=indptr, indices=indices, **columns)
            blocks.append(_block(theirs, direction, 0))
        return unite(blocks, self.num_nodes, np.empty)

    def _is_own(self, block: IndexBlock) -> bool:
        low, high = block.row_base, block.row_base + len(block.index.indptr) - 1
        return any(begin <= low and high <= end for begin, end in self._spans)


def _block(rows: Csr, direction: Direction, row_base: int) -> IndexBlock:
    return IndexBlock(
        edge_type=EDGE,
        side=direction,
        part=0,
        row_base=row_base,
        column_base=0,
        index=rows,
    )


Spans = Sequence[tuple[int, int]]


class LocalSimple(Topology):
    """All nodes of a store joined by the simple undirected graph; only own rows are here.

    Args:
        stored: The store.
        spans: The own nodes.
        exchange: With the other workers, who tell the degrees of theirs.
        num_threads: Threads; all cores by default.
    """

    def __init__(
        self, stored: Topology, spans: Spans, exchange: Exchange, num_threads: int | None
    ) -> None:
        super().__init__(stored.numbers, is_directed=False, graph=stored.graph)
        rows = stored.simple_rows().csr(num_threads, spans=spans)
        self._own = [
            IndexBlock(
                edge_type=EDGE,
                side="out",
                part=k,
                row_base=low,
                column_base=0,
                index=Csr(indptr=rows.indptr[low : high + 1], indices=rows.indices),
            )
            for k, (low, high) in enumerate(spans)
        ]
        lengths = np.diff(rows.indptr).astype(np.uint32)
        own = tuple((low, lengths[low:high]) for low, high in spans)
        self._lengths = np.zeros(self.num_nodes, dtype=np.uint32)
        for theirs in exchange.collect(own):
            for low, piece in theirs:
                self._lengths[low : low + len(piece)] = piece

    @cached_property
    def _num_entries(self) -> int:
        return int(self._lengths.sum(dtype=np.int64))

    @property
    def num_edges(self) -> int:
        """Entries of all rows, those of other workers too."""
        return self._num_entries

    def blocks(self, direction: Direction) -> list[IndexBlock]:
        """Return the own rows, a block for each span."""
        return self._own

    def column_dtypes(self) -> dict[str, np.dtype[Any]]:
        """Return nothing: a simple graph has no columns."""
        return {}

    def add_degrees(self, direction: Direction, degrees: npt.NDArray[Any]) -> None:
        """Add the neighbors of every node, of all workers, to ``degrees`` ``[N]``."""
        degrees += self._lengths.astype(degrees.dtype)
