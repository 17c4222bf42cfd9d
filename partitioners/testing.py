"""The contract of partitioners, as tests that anyone can run on theirs.

    from graphsys.partitioners.testing import PartitionerContract

    class TestMine(PartitionerContract):
        name = "mine"

Run by pytest, or any runner that calls methods named ``test_*``; nothing but numpy is
imported. ``name`` is a registered name or an entry point's; a class may override
:meth:`PartitionerContract.make` instead. Both kinds of partitioner have the same contract:
those that look at ids alone are also given every graph, and only see its ids.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from graphsys.partitioners.base import (
    PARTITIONERS,
    Partitioner,
    StreamPartitioner,
    sees_neighbors,
)

Edges = npt.NDArray[np.int64]
Parts = npt.NDArray[np.uint32]


class EdgeStream:
    """A graph given as a list of edges, streamed in blocks of so many nodes.

    Args:
        num_nodes: Nodes.
        edges: Pairs of them ``[E, 2]``; every edge is in the rows of both ends, a loop
            once.
        block_size: Nodes of a block.
    """

    def __init__(
        self,
        num_nodes: int,
        edges: Edges | Sequence[tuple[int, int]],
        block_size: int = 1000,
    ) -> None:
        pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        is_loop = pairs[:, 0] == pairs[:, 1]
        ends = np.concatenate([pairs, pairs[~is_loop, ::-1]])
        ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
        self.num_nodes = num_nodes
        self.degrees = np.bincount(ends[:, 0], minlength=num_nodes)
        self._indptr = np.concatenate(([0], np.cumsum(self.degrees)))
        self._indices = ends[:, 1].copy()
        self._block_size = block_size

    def blocks(self) -> Iterator[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]]:
        """Yield (first node, indptr, indices) of every block."""
        for first in range(0, self.num_nodes, self._block_size):
            indptr = self._indptr[first : min(first + self._block_size, self.num_nodes) + 1]
            yield first, indptr - indptr[0], self._indices[indptr[0] : indptr[-1]].copy()

    def edge_cut(self, parts: Parts) -> float:
        """Return the share of edges between partitions."""
        rows = np.repeat(np.arange(self.num_nodes), self.degrees)
        return float(np.mean(parts[rows] != parts[self._indices]))


class PartitionerContract:
    """What every partitioner keeps to; inherit, and set ``name``.

    Attributes:
        name: The partitioner's registered name.
        max_imbalance: Load of the fullest partition over the mean that is accepted on a
            random graph, in nodes or in edges.
    """

    name: ClassVar[str] = ""
    max_imbalance: ClassVar[float] = 1.1

    def make(self) -> Partitioner | StreamPartitioner:
        """Return the partitioner."""
        return PARTITIONERS.get(self.name)

    def assign(self, stream: EdgeStream, num_partitions: int, seed: int = 0) -> Parts:
        """Run the partitioner on a graph, whichever kind it is of."""
        partitioner = self.make()
        if sees_neighbors(partitioner):
            return cast("StreamPartitioner", partitioner)(stream, num_partitions, seed)
        hashes, ranks = draw_ids(stream.num_nodes)
        return cast("Partitioner", partitioner)(hashes, ranks, num_partitions, seed)

    def test_every_node_gets_a_partition_that_exists(self) -> None:
        """On small graphs of all shapes: no nodes, no edges, loops, twins, a star."""
        for label, stream in small_graphs():
            for num_partitions in (1, 2, 3, 8):
                parts = self.assign(stream, num_partitions)
                where = f"{label}, {num_partitions} partitions"
                assert isinstance(parts, np.ndarray), f"{where}: got {type(parts)}"
                assert parts.dtype == np.uint32, f"{where}: dtype {parts.dtype}"
                assert parts.shape == (stream.num_nodes,), f"{where}: shape {parts.shape}"
                highest = int(parts.max(initial=0))
                assert highest < num_partitions, f"{where}: partition {highest}"

    def test_the_same_graph_and_seed_give_the_same_partitions(self) -> None:
        """Twice, and for any seed of the user, however large."""
        for seed in (0, 7, 2**63 - 1):
            first = self.assign(clustered_graph(), 4, seed)
            again = self.assign(clustered_graph(), 4, seed)
            assert (first == again).all(), f"seed {seed}: {(first != again).sum()} differ"

    def test_how_the_graph_is_handed_over_makes_no_difference(self) -> None:
        """Blocks of any size for streams, nodes in any order for ids."""
        parts = self.assign(clustered_graph(), 4)
        if sees_neighbors(self.make()):
            again = self.assign(clustered_graph(block_size=97), 4)
        else:
            order = np.random.default_rng(1).permutation(len(parts))
            hashes, ranks = (ids[order] for ids in draw_ids(len(parts)))
            again = np.empty_like(parts)
            again[order] = cast("Partitioner", self.make())(hashes, ranks, 4, 0)
        assert (parts == again).all(), f"{(parts != again).sum()} nodes moved"

    def test_partitions_are_about_equal(self) -> None:
        """In nodes or in edges: what a partitioner balances is its choice."""
        stream = random_graph()
        parts = self.assign(stream, 8)
        loads = [np.bincount(parts, w, minlength=8) for w in (None, stream.degrees)]
        worst = min(float(load.max() / load.mean()) for load in loads)
        assert worst <= self.max_imbalance, f"the fullest has {worst:.3f} times the mean"

    def test_neighbors_are_kept_together_by_those_who_see_them(self) -> None:
        """Of a clustered graph fewer edges are cut than chance would."""
        if not sees_neighbors(self.make()):
            return
        stream = clustered_graph()
        cut = stream.edge_cut(self.assign(stream, 4))
        assert cut < 0.7, f"cuts {cut:.2f} of the edges; chance cuts 0.75, the best 0.08"

    def test_what_is_handed_over_is_left_as_it_is(self) -> None:
        """Neither ids nor degrees are written to."""
        if sees_neighbors(self.make()):
            stream = clustered_graph()
            given: tuple[npt.NDArray[Any], ...] = (stream.degrees,)
            before: list[npt.NDArray[Any]] = [stream.degrees.copy()]
            self.assign(stream, 3)
        else:
            hashes, ranks = given = draw_ids(100)
            before = [ids.copy() for ids in given]
            cast("Partitioner", self.make())(hashes, ranks, 3, 0)
        for old, new in zip(before, given, strict=True):
            assert (old == new).all(), f"{(old != new).sum()} values were changed"


def draw_ids(num_nodes: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return hashes and ranks of different nodes, in a mixed order."""
    rng = np.random.default_rng(0)
    ranks = rng.permutation(num_nodes).astype(np.uint64) * np.uint64(3)
    return rng.integers(2**64 - 1, size=num_nodes, dtype=np.uint64), ranks


def small_graphs() -> Iterator[tuple[str, EdgeStream]]:
    """Yield graphs of few nodes that have what often goes wrong, with their names."""
    rng = np.random.default_rng(0)
    yield "no nodes", EdgeStream(0, [])
    yield "one node", EdgeStream(1, [])
    yield "one node with a loop", EdgeStream(1, [(0, 0)])
    yield "no edges", EdgeStream(9, [], block_size=2)
    yield "twin edges", EdgeStream(4, [(0, 1), (1, 0), (0, 1), (2, 3)])
    yield "star", EdgeStream(20, [(7, k) for k in range(20)], block_size=3)
    yield "two components", EdgeStream(6, [(0, 1), (1, 2), (3, 4), (4, 5)], block_size=2)
    for k in range(8):
        num_nodes = int(rng.integers(2, 13))
        edges = rng.integers(0, num_nodes, (int(rng.integers(0, 30)), 2))
        yield f"random graph {k}", EdgeStream(num_nodes, edges, block_size=3)


def random_graph() -> EdgeStream:
    """Return a graph of 20,000 nodes and 100,000 edges between any two."""
    edges = np.random.default_rng(0).integers(0, 20_000, (100_000, 2))
    return EdgeStream(20_000, edges)


def clustered_graph(block_size: int = 1000) -> EdgeStream:
    """Return 16 groups of 100 nodes, nine edges in ten inside, numbers mixed."""
    rng = np.random.default_rng(0)
    src = rng.integers(0, 1600, 19_200)
    near = src // 100 * 100 + rng.integers(0, 100, len(src))
    dst = np.where(rng.random(len(src)) < 0.9, near, rng.integers(0, 1600, len(src)))
    labels = rng.permutation(1600)
    return EdgeStream(1600, np.stack([labels[src], labels[dst]], axis=1), block_size)
