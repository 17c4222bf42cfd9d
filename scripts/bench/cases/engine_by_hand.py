"""The algorithms of the case ``engine_programs`` by hand: kernels, and who calls them."""

from typing import Any

import numpy as np

from bench.cases import engine_kernels as hand
from graphsys.core.threads import ThreadTeam
from graphsys.engine.execute.frontier import Frontier
from graphsys.engine.execute.rows import MemoryBlocks
from graphsys.engine.execute.supersteps import PULL_SHARE
from graphsys.engine.topology import Topology
from graphsys.graph.csr import read_only
from graphsys.kernels.cpu.bits import num_words

NUM_THREADS = 2
ITERATIONS = 10


class ByHand:
    """The algorithms by hand, over rows in memory."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.block, self.csr = MemoryBlocks(topology).block("out"), topology.csr("out")
        self.degree = topology.out_degree.astype(np.int32)
        self.n = topology.num_nodes
        self.team = ThreadTeam(NUM_THREADS)
        self.counter = np.zeros(1, dtype=np.int64)
        self.parts = np.zeros((len(self.block.bounds) - 1, 2))

    def call(self, kernel: Any, *arguments: Any, parallel: bool = True) -> None:
        """Run a kernel in all threads, or in one where there is little to do."""
        self.counter[0] = 0
        if parallel:
            self.team.run(kernel, self.counter, *arguments)
        else:
            kernel(0, self.counter, *arguments)

    @property
    def rows(self) -> tuple[Any, Any, Any]:
        """Chunks, row offsets and neighbors."""
        return self.block.bounds, read_only(self.csr.indptr), self.block.indices

    def pagerank(self) -> dict[str, Any]:
        """Ten iterations."""
        n, degree = self.n, self.degree
        rank, out = np.full(n, 1.0 / n), np.empty(n)
        dangling = rank[degree == 0].sum()
        for _ in range(ITERATIONS):
            self.call(hand.contributions, self.block.bounds, rank, degree, out)
            base = 0.15 / n + 0.85 * dangling / n
            self.call(hand.pagerank, *self.rows, out, rank, degree, 0.85, base, self.parts)
            dangling = self.parts[:, 1].sum()
        return {"rank": rank}

    def two_sums(self) -> dict[str, Any]:
        """Ten supersteps."""
        a, b = np.full(self.n, 1, np.float32), np.full(self.n, 2, np.float32)
        new_a, new_b = np.empty_like(a), np.empty_like(b)
        for _ in range(ITERATIONS):
            self.call(hand.two_sums, *self.rows, a, b, new_a, new_b)
            a, b, new_a, new_b = new_a, new_b, a, b
        return {"a": a, "b": b}

    def is_dense(self, frontier: Frontier) -> bool:
        """The engine's own choice."""
        return frontier.edges * PULL_SHARE > self.topology.num_edges

    def from_parts(self, changed: Any) -> Frontier:
        """The frontier after a dense superstep."""
        count, edges = self.parts.sum(axis=0).tolist()
        return Frontier.from_words(self.n, changed, int(count), int(edges))

    def min_label(self) -> dict[str, Any]:
        """Until no label changes."""
        n = self.n
        rank = self.topology.rank
        label = (np.arange(n) if rank is None else rank).astype(np.int32)
        sent, best = np.empty_like(label), np.full(n, 2**31 - 1, np.int32)
        scratch = Scratch(n)
        frontier = Frontier.all(n, self.topology.num_edges)
        while frontier.count:
            if self.is_dense(frontier):
                changed = np.zeros(num_words(n), np.uint64)
                bounds = self.block.bounds
                self.call(hand.labels_to_send, bounds, label, sent)
                self.call(
                    hand.min_label_pull,
                    *self.rows,
                    sent,
                    label,
                    changed,
                    self.degree,
                    self.parts,
                )
                frontier = self.from_parts(changed)
                continue
            columns = (*self.rows[1:], label)
            frontier = self.sparse(
                hand.relax_labels, frontier, columns, best, label, scratch
            )
        return {"label": label}

    def bellman_ford(self, source: int) -> dict[str, Any]:
        """Until no distance changes."""
        n, weight = self.n, self.block.columns["weight"]
        distance = np.full(n, np.inf, np.float32)
        new, best = np.empty_like(distance), np.full(n, np.inf, np.float32)
        distance[source] = 0
        scratch = Scratch(n)
        start = np.array([source])
        frontier = Frontier.from_list(n, start, int(self.degree[source]))
        while frontier.count:
            if self.is_dense(frontier):
                changed = np.zeros(num_words(n), np.uint64)
                self.call(
                    hand.pull_distances,
                    *self.rows,
                    weight,
                    distance,
                    new,
                    changed,
                    self.degree,
                    self.parts,
                )
                distance, new = new, distance
                frontier = self.from_parts(changed)
                continue
            columns = (*self.rows[1:], weight, distance)
            frontier = self.sparse(
                hand.relax_distances, frontier, columns, best, distance, scratch
            )
        return {"distance": distance}

    def sparse(
        self,
        kernel: Any,
        frontier: Frontier,
        columns: tuple[Any, ...],
        best: Any,
        value: Any,
        scratch: "Scratch",
    ) -> Frontier:
        """One sparse superstep: relax, then take over."""
        nodes, parallel = frontier.listed(), frontier.edges > 30_000
        scratch.cursor[:] = 0
        self.call(
            kernel,
            nodes,
            len(nodes),
            *columns,
            best,
            scratch.touched,
            scratch.listed,
            scratch.cursor[:1],
            parallel=parallel,
        )
        touched = scratch.listed[: scratch.cursor[0]]
        fresh = np.empty(len(touched), np.int64)
        nothing = best.dtype.type(np.inf if best.dtype.kind == "f" else 2**31 - 1)
        self.call(
            hand.take_best,
            touched,
            len(touched),
            best,
            nothing,
            value,
            scratch.touched,
            self.degree,
            fresh,
            scratch.cursor[1:2],
            scratch.cursor[2:],
            parallel=parallel,
        )
        return Frontier.from_list(
            self.n, fresh[: scratch.cursor[1]], int(scratch.cursor[2])
        )

    def bfs(self, source: int) -> dict[str, Any]:
        """Until the frontier is empty."""
        n = self.n
        hops = np.full(n, -1, np.int32)
        hops[source] = 0
        scratch = Scratch(n)
        frontier = Frontier.from_list(n, np.array([source]), int(self.degree[source]))
        level = np.int32(0)
        while frontier.count:
            level = np.int32(level + 1)
            if self.is_dense(frontier):
                changed = np.zeros(num_words(n), np.uint64)
                self.call(
                    hand.look_up,
                    *self.rows,
                    frontier.words(),
                    hops,
                    level,
                    changed,
                    self.degree,
                    self.parts,
                )
                frontier = self.from_parts(changed)
                continue
            nodes, parallel = frontier.listed(), frontier.edges > 30_000
            scratch.cursor[:] = 0
            self.call(
                hand.claim,
                nodes,
                len(nodes),
                *self.rows[1:],
                hops,
                level,
                self.degree,
                scratch.listed,
                scratch.cursor[:1],
                scratch.cursor[2:],
                parallel=parallel,
            )
            fresh = scratch.listed[: scratch.cursor[0]].copy()
            frontier = Frontier.from_list(n, fresh, int(scratch.cursor[2]))
        return {"hops": hops}


class Scratch:
    """Room for the nodes that a sparse superstep touches."""

    def __init__(self, num_nodes: int) -> None:
        self.touched = np.zeros(num_words(num_nodes), np.uint64)
        self.listed = np.empty(num_nodes, np.int64)
        self.cursor = np.zeros(3, np.int64)
