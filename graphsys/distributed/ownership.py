"""Which nodes a worker owns, and the rows of edges that belong to them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.distributed.local_edges import LocalEdges, LocalSimple
from graphsys.engine.execute.frontier import Frontier
from graphsys.engine.execute.rows import NUM_CHUNKS, RowBlock, all_nodes
from graphsys.engine.execute.stream import Part, StreamedBlocks
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction, IndexBlock
from graphsys.graph.slices import even_cuts
from graphsys.storage.reader import GraphReader

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Ownership:
    """Spans of nodes by worker: whole partitions of every node type.

    Attributes:
        spans: For every worker its spans ``(low, high)``, ascending.
    """

    spans: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, topology: Topology, num_workers: int) -> "Ownership":
        """Deal the partitions of a store out, neighbors in number to one worker.

        Each gets about as much to visit: nodes, and entries of their rows both ways. Only
        where partitions are of equal work (by hash) are they as many for each.

        Raises:
            ConfigError: the graph has fewer partitions than there are workers.
        """
        graph = topology.graph
        if graph is None:
            raise ConfigError("a cluster takes a graph's folder; these edges are in memory")
        require_partitions(graph, num_workers)
        spans: list[list[tuple[int, int]]] = [[] for _ in range(num_workers)]
        for kind in graph.node_types:
            bounds = graph.offsets(kind) + topology.numbers.base(kind)
            cuts = partition_cuts(graph, kind, num_workers)
            for own, (low, high) in zip(spans, pairwise(cuts), strict=True):
                if bounds[low] < bounds[high]:
                    own.append((int(bounds[low]), int(bounds[high])))
        return cls(tuple(tuple(own) for own in spans))

    def owner_of(self, nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the worker of every node, int64 ``[K]``."""
        pairs = sorted(
            (low, worker) for worker, own in enumerate(self.spans) for low, _ in own
        )
        lows = np.array([low for low, _ in pairs], dtype=np.int64)
        workers = np.array([worker for _, worker in pairs], dtype=np.int64)
        found: npt.NDArray[np.int64] = workers[np.searchsorted(lows, nodes, "right") - 1]
        return found

    def num_nodes(self, worker: int) -> int:
        """Return how many nodes a worker owns."""
        return sum(high - low for low, high in self.spans[worker])


def most_owners(graph: GraphReader) -> int:
    """Return how many workers can own a partition."""
    return max(graph.num_partitions(kind) for kind in graph.node_types)


def require_partitions(graph: GraphReader, num_workers: int) -> None:
    """Check that each worker may own a partition.

    Raises:
        ConfigError: The graph has fewer partitions than there are workers.
    """
    most = most_owners(graph)
    if most < num_workers:
        raise ConfigError(
            f"{graph.path} has {most} partitions, too few for {num_workers} workers; "
            "ingest it with more --partitions, or take fewer workers"
        )


def partition_cuts(graph: GraphReader, kind: str, num_workers: int) -> tuple[int, ...]:
    """Return the first partition of a node type of each worker, and their number.

    Each worker gets about as much to visit: nodes, and entries of their rows both ways.
    """
    return even_cuts(_visits(graph, kind), num_workers)


def _visits(graph: GraphReader, kind: str) -> npt.NDArray[np.int64]:
    """Return what each partition of a node type has to visit, int64 ``[P]``."""
    found = np.diff(graph.offsets(kind))
    for edge_type in graph.edge_types:
        counts = graph.bucket_counts(edge_type)
        for end, axis in ((edge_type.src_type, 1), (edge_type.dst_type, 0)):
            if end == kind:
                found += counts.sum(axis=axis)
    return found


class LocalBlocks(StreamedBlocks):
    """The rows of some spans of nodes, streamed from the store's mapped files.

    Args:
        topology: The graph.
        spans: The nodes.
        columns: Dtypes of the edges' columns that will be read, by name.
        keeps_bytes: How much stays mapped from pass to pass.
    """

    def __init__(
        self,
        topology: Topology,
        spans: Sequence[tuple[int, int]],
        columns: Mapping[str, np.dtype[Any]],
        keeps_bytes: float = 0,
    ) -> None:
        super().__init__(topology, columns, keeps_bytes=keeps_bytes)
        self._spans = tuple(spans)

    def blocks(
        self, direction: Direction, senders: Frontier | None = None
    ) -> Iterator[RowBlock]:
        """Yield the pieces of a direction; a lone one always, as its states are new."""
        is_lone = self.num_blocks(direction) == 1
        yield from super().blocks(direction, None if is_lone else senders)

    def parts(self, direction: Direction) -> list[Part]:
        """Return the own partitions' rows of a direction."""
        return [part for part in super().parts(direction) if self._is_own(part.rows)]

    def _blocks(self, direction: Direction) -> list[IndexBlock]:
        if isinstance(self.topology, LocalEdges):
            return self.topology.own_blocks(direction)
        return super()._blocks(direction)

    def _sources(
        self, graph: GraphReader, block: IndexBlock
    ) -> tuple[tuple[int, int, int], ...]:
        if isinstance(
            self.topology, LocalSimple | LocalEdges
        ):  # not by the store's buckets
            num_entries = len(block.index.indices)
            return ((0, self.topology.num_nodes, num_entries),) if num_entries else ()
        return super()._sources(graph, block)

    def _is_own(self, rows: RowBlock) -> bool:
        low, high = rows.row_base, rows.row_base + rows.num_rows
        return any(begin <= low and high <= end for begin, end in self._spans)

    def are_whole(self, direction: Direction) -> bool:
        """Return whether every own node has its row in exactly one block."""
        sizes = {p.rows.row_base: p.rows.num_rows for p in self.parts(direction)}
        filled = sum(part.rows.num_rows > 0 for part in self.parts(direction))
        owned = sum(high - low for low, high in self._spans)
        is_once = filled == sum(size > 0 for size in sizes.values())
        return is_once and sum(sizes.values()) == owned


def span_blocks(topology: Topology, spans: Sequence[tuple[int, int]]) -> list[RowBlock]:
    """Return blocks for kernels that look at no edges: one a span.

    They are those of all nodes, of which only the span's chunks are visited: bitmaps and
    states keep their places.
    """
    whole = all_nodes(topology)
    blocks = []
    for low, high in spans:
        block = replace(whole, key=("span", low))
        inner = np.linspace(low, high, NUM_CHUNKS + 1).astype(np.int64) // 64 * 64
        bounds = np.unique(np.concatenate([[low], inner[inner > low], [high]]))
        object.__setattr__(block, "bounds", bounds)
        blocks.append(block)
    return blocks
