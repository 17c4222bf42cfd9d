"""The simple undirected graph, of which a worker makes the rows of its own nodes."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EDGE
from graphsys.distributed.transport.exchange import Exchange
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction, IndexBlock
from graphsys.graph.csr import Csr

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
