"""Case ``engine_programs``: vertex programs against kernels written by hand.

One process, both timed in turn on the same rows in memory, equal supersteps, equal choice
between push and pull; compiled code is loaded before. The target is a ratio of 1.05 at
most. ``superstep, 100 nodes`` is what a superstep costs that has nothing to do.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import graphsys as gs
from bench.cases.engine_by_hand import ITERATIONS, NUM_THREADS, ByHand
from bench.child import in_child
from bench.harness import Contender, Outcome, Work, WrongResultError
from bench.limits import Limits
from graphsys.engine.execute.executor import Executor
from graphsys.engine.execute.prepared import compile_program
from graphsys.engine.execute.rows import MemoryBlocks
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr

PEERS: dict[str, str] = {}
IDLE_STEPS = 2000


class PageRank(gs.VertexProgram):
    """Ten iterations."""

    rank = gs.state("float64")
    dangling = gs.aggregator(gs.sum)
    change = gs.aggregator(gs.sum)
    combine = gs.sum
    max_supersteps = ITERATIONS

    def init(self, node: Any) -> Any:
        return 1.0 / self.num_nodes

    def message(self, src: Any, edge: Any) -> Any:
        return src.rank / src.out_degree

    def update(self, node: Any, message: Any) -> Any:
        lost = self.total("dangling") / self.num_nodes
        return 0.15 / self.num_nodes + 0.85 * (message + lost)

    def aggregate(self, before: Any, node: Any) -> Any:
        return (node.rank if node.out_degree == 0 else 0.0), abs(node.rank - before.rank)


class ManySteps(PageRank):
    """Supersteps that have next to nothing to do."""

    max_supersteps = IDLE_STEPS


class TwoSums(gs.VertexProgram):
    """Two states in one message."""

    a = gs.state("float32", default=1)
    b = gs.state("float32", default=2)
    combine = gs.sum
    max_supersteps = ITERATIONS
    message_type = ("float32", "float32")

    def message(self, src: Any, edge: Any) -> Any:
        return src.a, src.b

    def update(self, node: Any, message: Any) -> Any:
        a = np.float32(0.5) * node.a + np.float32(1e-7) * message[1]
        b = np.float32(0.5) * node.b + np.float32(1e-7) * message[0]
        return a, b


class MinLabel(gs.VertexProgram):
    """Connected components by the smallest id."""

    label = gs.state(gs.NodeId, default=gs.own_id)
    combine = gs.minimum

    def message(self, src: Any, edge: Any) -> Any:
        return src.label

    def update(self, node: Any, message: Any) -> Any:
        return min(node.label, message)


class BreadthFirst(gs.VertexProgram):
    """Hops; any one message is enough."""

    source: gs.NodeId
    hops = gs.state("int32", default=-1, null=-1)
    combine = gs.any

    def start(self, graph: Any) -> Any:
        return {self.source: {"hops": 0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.hops + 1

    def accepts(self, node: Any) -> Any:
        return node.hops < 0

    def update(self, node: Any, message: Any) -> Any:
        return message


class BellmanFord(gs.VertexProgram):
    """Shortest paths."""

    source: gs.NodeId
    distance = gs.state("float32", default=np.inf)
    combine = gs.minimum

    def start(self, graph: Any) -> Any:
        return {self.source: {"distance": 0.0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.distance + edge.weight

    def update(self, node: Any, message: Any) -> Any:
        return min(node.distance, message)


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield a work per program."""
    from graphsys.datasets import generators

    scale = 16 if quick else 20
    gs.ingest(generators.rmat(scale, variant="gap"), folder / "kron")
    stored = Topology.of(folder / "kron").csr("out")
    rng = np.random.default_rng(1)
    weighted = Csr(
        indptr=stored.indptr,
        indices=stored.indices,
        weight=rng.integers(1, 256, stored.num_edges).astype(np.float32),
    )
    topology = Topology.of(folder / "kron")
    rows = Topology(
        topology.numbers, is_directed=False, rows={"out": weighted, "in": weighted}
    )
    rows.out_degree  # noqa: B018  not part of either side's time
    by_hand = ByHand(rows)
    source = rows.ids(np.array([int(np.argmax(rows.out_degree))]))[0].as_py()
    edges = stored.num_edges
    pairs: list[tuple[str, Callable[[], Any], Callable[[], Any], float]] = [
        ("PageRank, 10 iterations", PageRank, by_hand.pagerank, 10 * edges),
        ("two states, 10 supersteps", TwoSums, by_hand.two_sums, 10 * edges),
        ("min-label components", MinLabel, by_hand.min_label, edges),
        (
            "BFS with early exit",
            lambda: BreadthFirst(source=source),
            lambda: by_hand.bfs(rows.number(source)),
            edges,
        ),
        (
            "Bellman-Ford",
            lambda: BellmanFord(source=source),
            lambda: by_hand.bellman_ford(rows.number(source)),
            edges,
        ),
    ]
    for name, program, kernel, amount in pairs:
        yield Work(
            name=f"{name}, kron{scale}",
            amount=amount,
            unit="edges/s",
            contenders=[
                Contender(system="graphsys", run=lambda p=program: run_program(p(), rows)),
                Contender(system="written by hand", run=lambda k=kernel: run_hand(k)),
            ],
            verify=close_results,
        )
    yield Work(
        name=f"to the first superstep in a new process, kron{scale}",
        amount=1,
        unit="starts/s",
        contenders=[
            Contender(
                system="graphsys",
                run=in_child(
                    "bench.cases.engine_programs:first_superstep",
                    store=str(folder / "kron"),
                ),
            )
        ],
        verify=lambda results: None,
    )
    tiny = Topology.from_edges(np.arange(99), np.arange(1, 100), 100)
    yield Work(
        name="superstep, 100 nodes",
        amount=IDLE_STEPS,
        unit="supersteps/s",
        contenders=[Contender(system="graphsys", run=lambda: idle(tiny))],
        verify=lambda results: None,
    )


def run_program(program: gs.VertexProgram, topology: Topology) -> Outcome:
    """Run a program in memory; compiled code is loaded outside of the time."""
    plan, kernels, loading = compile_program(program, topology)
    begin = time.perf_counter()
    executor = Executor(
        program, plan, kernels, topology, MemoryBlocks(topology), num_threads=NUM_THREADS
    )
    for _ in executor.run():
        pass
    seconds = time.perf_counter() - begin - executor.compile_seconds
    executor.close()
    return Outcome(
        seconds=seconds,
        result=executor.arrays.states,
        compile_s=loading + executor.compile_seconds,
    )


def first_superstep(store: str) -> Outcome:
    """Open a store, load compiled kernels and run one superstep; imports are apart."""
    begin = time.perf_counter()
    topology = Topology.of(store)
    program = PageRank()
    plan, kernels, _ = compile_program(program, topology)
    executor = Executor(program, plan, kernels, topology, MemoryBlocks(topology))
    next(executor.run())
    seconds = time.perf_counter() - begin
    executor.close()
    return Outcome(seconds=seconds, compile_s=executor.compile_seconds)


def run_hand(kernel: Callable[[], dict[str, Any]]) -> Outcome:
    """Time a run by hand."""
    begin = time.perf_counter()
    result = kernel()
    return Outcome(seconds=time.perf_counter() - begin, result=result)


def idle(topology: Topology) -> Outcome:
    """Run many supersteps of PageRank on 100 nodes."""
    program = ManySteps()
    plan, kernels, _ = compile_program(program, topology)
    executor = Executor(program, plan, kernels, topology, MemoryBlocks(topology))
    begin = time.perf_counter()
    for _ in executor.run():
        pass
    seconds = time.perf_counter() - begin - executor.compile_seconds
    executor.close()
    return Outcome(seconds=seconds, result=executor.at.superstep)


def close_results(results: Any) -> None:
    """Verify that every state agrees with the one computed by hand."""
    ours, theirs = results["graphsys"], results["written by hand"]
    for name, values in theirs.items():
        if not np.allclose(ours[name], values, rtol=1e-5, atol=1e-12, equal_nan=True):
            raise WrongResultError(f"state {name} differs from the one by hand")
