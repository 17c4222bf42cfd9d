"""Out of core: streamed rows and paged states give the results of memory."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.sparse import csgraph

from graphsys.core.memory import MappedArrays
from graphsys.core.types import EdgeType
from graphsys.engine import program as gs
from graphsys.engine.execute import prepared as runs
from graphsys.engine.execute import program_memory, stream
from graphsys.engine.execute.frontier import Frontier
from graphsys.engine.execute.stream import StreamedBlocks
from graphsys.engine.memory_plan import MemoryPlan
from graphsys.engine.programs.bfs import BreadthFirst
from graphsys.engine.programs.cdlp import Cdlp
from graphsys.engine.programs.pagerank import PageRank
from graphsys.engine.programs.sssp import ShortestPaths
from graphsys.engine.programs.wcc import WeakComponents
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from graphsys.storage import Graph
from tests.stores import edge_chunk, make_store

NUM_NODES, NUM_EDGES = 700, 2800
BUYS, KNOWS = EdgeType("user", "buys", "item"), EdgeType("user", "knows", "user")


class Nearest(gs.VertexProgram):
    """Distances and who found them: two values a message, so rows are pulled."""

    source: gs.NodeId
    distance = gs.state("float64", default=np.inf)
    parent = gs.state(gs.NodeId, default=gs.NO_NODE)
    combine = gs.argmin

    def start(self, graph: Any) -> Any:
        return {self.source: {"distance": 0.0}}

    def message(self, src: Any, edge: Any) -> Any:
        return src.distance + edge.weight, src.id

    def update(self, node: Any, message: Any) -> Any:
        distance, parent = message
        if distance < node.distance:
            return distance, parent
        return node.distance, node.parent


class Ways(gs.VertexProgram):
    """How many edges come in and how many go out, loops both ways."""

    coming = gs.state("int64")
    going = gs.state("int64")

    class Count(gs.Phase):
        direction, schedule, combine = "both", "all", gs.sum_

        def message(self, src: Any, edge: Any) -> Any:
            return int(edge.forward) + 2**32 * int(edge.reverse.forward)

        def update(self, node: Any, message: Any) -> Any:
            return message % 2**32, message // 2**32

    phases = (Count,)


def edges(seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, NUM_NODES, (NUM_EDGES, 2))
    pairs[:, 1] = pairs[:, 0] // 2 + pairs[:, 1] // 3  # some rows are long
    return pairs * 3 + 1, rng.integers(1, 50, NUM_EDGES) / 4


@pytest.fixture(scope="module", params=["one", "four", "undirected", "types"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Graph]:
    folder = tmp_path_factory.mktemp(request.param) / "graph"
    pairs, weight = edges()
    options: dict[str, Any] = {"partitions": 1 if request.param == "one" else 4}
    if request.param == "types":
        chunks = [
            edge_chunk(pairs.tolist(), BUYS, weight=weight),
            edge_chunk(edges(2)[0].tolist(), KNOWS),
        ]
    else:
        chunks = [edge_chunk(pairs.tolist(), weight=weight)]
        options["is_directed"] = request.param != "undirected"
    with make_store(folder, *chunks, **options).graph as found:
        yield found


Force = Callable[[str], None]


@pytest.fixture
def force(monkeypatch: pytest.MonkeyPatch) -> Force:
    """Return a function that has all runs use a mode, with pieces of some hundred edges."""

    def to(mode: str) -> None:
        def choose(plan: Any, topology: Topology, _: int | None) -> MemoryPlan:
            choice = program_memory.choose(plan, topology, None)
            return replace(choice, mode=mode, budget=0)  # type: ignore[arg-type]

        monkeypatch.setattr(runs, "choose", choose)
        monkeypatch.setattr(stream, "PIECE_BYTES", 2000)

    return to


def programs() -> dict[str, gs.VertexProgram]:
    source = int(edges()[0][0, 0])
    return {
        "bfs": BreadthFirst(source=source),
        "sssp": ShortestPaths(source=source),
        "pagerank": PageRank(iterations=12),
        "wcc": WeakComponents(),
        "cdlp": Cdlp(iterations=4),
        "nearest": Nearest(source=source),
    }


@pytest.mark.parametrize("mode", ["streamed", "paged"])
@pytest.mark.parametrize("name", list(programs()))
def test_results_are_those_of_memory(
    graph: Graph, force: Force, mode: str, name: str
) -> None:
    expected = run(programs()[name], graph, num_threads=2)
    force(mode)
    found = run(programs()[name], graph, num_threads=2)
    assert found.supersteps == expected.supersteps
    same_tables(found.table, expected.table)


def same_tables(found: pa.Table, expected: pa.Table) -> None:
    assert found.schema == expected.schema
    for name in found.column_names:
        if not pa.types.is_floating(found.schema.field(name).type):
            assert found[name].to_pylist() == expected[name].to_pylist()
            continue
        assert found[name].is_null().equals(expected[name].is_null())
        np.testing.assert_allclose(
            found[name].to_numpy(), expected[name].to_numpy(), rtol=1e-12
        )


@pytest.mark.parametrize("mode", ["memory", "streamed", "paged"])
@pytest.mark.parametrize("partitions", [1, 4])
def test_a_program_sees_which_way_an_edge_goes(
    force: Force, tmp_path: Path, mode: str, partitions: int
) -> None:
    pairs = edges()[0]
    make_store(tmp_path / "graph", edge_chunk(pairs.tolist()), partitions=partitions)
    force(mode)
    table = run(Ways, tmp_path / "graph", num_threads=2).table
    for name, end in (("coming", 1), ("going", 0)):
        ids, counts = np.unique(pairs[:, end], return_counts=True)
        expected = dict(zip(ids.tolist(), counts.tolist(), strict=True))
        found = zip(table["id"].to_pylist(), table[name].to_pylist(), strict=True)
        assert {node: count for node, count in found if count} == expected


class Returned(gs.VertexProgram):
    """Messages, and those of them along whose edge another one leads back."""

    value = gs.state("int64")

    class Count(gs.Phase):
        direction, schedule, combine = "out", "all", gs.sum_

        def message(self, src: Any, edge: Any) -> Any:
            return int(edge.forward) + 100 * int(edge.reverse.forward)

        def update(self, node: Any, message: Any) -> Any:
            return message

    phases = (Count,)


def test_a_way_back_is_an_edge_where_there_is_one(tmp_path: Path) -> None:
    pairs = [(1, 2), (2, 3), (1, 3), (2, 1)]
    make_store(tmp_path / "graph", edge_chunk(pairs))
    table = run(Returned, tmp_path / "graph").table
    found = dict(zip(table["id"].to_pylist(), table["value"].to_pylist(), strict=True))
    assert found == {1: 101, 2: 101, 3: 2}


class Counted(gs.VertexProgram):
    """Begins at the superstep that it begins in, and counts on."""

    begun = gs.state("int64", default=-1)
    count = gs.state("int64", default=-1)
    schedule = "all"
    max_supersteps = 3

    def init(self, node: Any) -> Any:
        return self.superstep, 0

    def update(self, node: Any) -> Any:
        return node.begun, 10 * node.count + self.superstep


def test_supersteps_are_counted_from_the_first(tmp_path: Path) -> None:
    make_store(tmp_path / "graph", edge_chunk([(1, 2), (2, 3)]))
    table = run(Counted, tmp_path / "graph").table
    assert set(table["begun"].to_pylist()) == {0}
    assert set(table["count"].to_pylist()) == {12}


def test_compiling_is_told_as_part_of_the_time(tmp_path: Path) -> None:
    make_store(tmp_path / "graph", edge_chunk(edges()[0].tolist()))
    began = time.perf_counter()
    done = run(Ways, tmp_path / "graph")
    assert 0 <= done.compile_seconds <= time.perf_counter() - began


@pytest.mark.parametrize("mode", ["streamed", "paged"])
def test_distances_are_those_of_scipy(force: Force, tmp_path: Path, mode: str) -> None:
    pairs, weight = edges(1)
    graph = make_store(
        tmp_path / "graph", edge_chunk(pairs.tolist(), weight=weight), partitions=3
    ).graph
    size = int(pairs.max()) + 1
    matrix = np.full((size, size), np.inf)
    np.minimum.at(matrix, (pairs[:, 0], pairs[:, 1]), weight)
    matrix = sparse.csr_array(np.where(np.isinf(matrix), 0, matrix))
    source = int(pairs[0, 0])
    expected = csgraph.dijkstra(matrix, indices=source)
    force(mode)
    found = run(ShortestPaths(source=source), graph).table
    values = found["value"].fill_null(np.inf).to_numpy()
    np.testing.assert_allclose(values, expected[found["id"].to_numpy()])


def test_pieces_cover_every_row_once_and_share_no_word(graph: Graph) -> None:
    topology = Topology.of(graph)
    rows = StreamedBlocks(topology, {}, piece_bytes=1000)
    for direction in ("in", "out"):
        degrees = np.zeros(topology.num_nodes, dtype=np.int64)
        for block in rows.blocks(direction):
            own = degrees[block.row_base : block.row_base + block.num_rows]
            own += block.ends - block.begins
            words = [(block.row_base + b) // 64 for b in block.bounds[1:-1].tolist()]
            assert len(set(words)) == len(words)
            assert all((block.row_base + b) % 64 == 0 for b in block.bounds[1:-1].tolist())
        expected = topology.out_degree if direction == "out" else topology.in_degree
        np.testing.assert_array_equal(degrees, expected)
    rows.close()


def test_partitions_without_senders_are_not_read(tmp_path: Path) -> None:
    # two rings that no edge joins, each a partition of its own
    rings = [(a + k, a + (k + 1) % 128) for a in (0, 128) for k in range(128)]
    graph = make_store(
        tmp_path / "graph",
        edge_chunk(rings),
        partitions=2,
        partitioner="range",
        order="original",
    ).graph
    topology = Topology.of(graph)
    assert graph.offsets("node").tolist() == [0, 128, 256]
    rows = StreamedBlocks(topology, {})
    listed = np.array([200], dtype=np.int64)
    senders = Frontier.from_list(topology.num_nodes, listed, 1)
    assert [block.row_base for block in rows.blocks("in", senders)] == [128]
    assert [block.row_base for block in rows.blocks("in")] == [0, 128]
    held = [
        (block.row_base, nodes.tolist()) for block, nodes in rows.holding("out", listed)
    ]
    assert held == [(128, [200])]
    rows.close()


def test_the_decision_opens_no_rows_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, weight = edges()
    chunk = edge_chunk(pairs.tolist(), weight=weight)
    graph = make_store(tmp_path / "graph", chunk, partitions=4).graph

    def refuse(self: Topology, direction: str = "out") -> Any:
        raise AssertionError("the graph was loaded")

    monkeypatch.setattr(Topology, "csr", refuse)
    topology = Topology.of(graph)
    plan, _, _ = runs.compile_program(PageRank(), topology)
    assert plan.edge_columns == {"weight": np.dtype(np.float32)}
    assert program_memory.choose(plan, topology, 10**12).mode == "memory"


def test_pages_are_given_back_beyond_the_room_there_is(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    read: list[int] = []
    monkeypatch.setattr(
        MappedArrays, "give_back", lambda self, array: given.append(array.nbytes)
    )
    monkeypatch.setattr(
        MappedArrays, "fetch", lambda self, array: read.append(array.nbytes)
    )
    topology = Topology.of(graph)
    passes, reads = {}, {}
    for room in (0.0, 4000.0, float("inf")):
        rows = StreamedBlocks(topology, {}, piece_bytes=1000, keeps_bytes=room)
        given.clear()
        read.clear()
        for _ in range(2):
            assert list(rows.blocks("in"))
        passes[room], reads[room] = sum(given), sum(read)
        rows.close()
    assert passes[0.0] > passes[4000.0] > passes[float("inf")] == 0
    assert passes[0.0] - passes[4000.0] <= 2 * 4000
    assert reads[0.0] > reads[4000.0] > reads[float("inf")]  # what stays is read once
    assert reads[0.0] == 2 * reads[float("inf")]
