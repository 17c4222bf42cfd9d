"""Columns of edges are read where they lie, by native algorithms and by programs."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import graphsys as gs
from graphsys.core.errors import InvalidGraphError
from graphsys.datasets.recipes.build import build
from graphsys.engine import algorithms, native_plan
from graphsys.engine.memory_plan import united_bytes
from graphsys.engine.program_run import explain
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction
from graphsys.graph.file_columns import CAN_MAP

pytestmark = pytest.mark.skipif(not CAN_MAP, reason="mmap(2) of Linux is used")
NODES, EDGES = 900, 1 << 17
SIDES: tuple[Direction, Direction] = ("out", "in")
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("sssp", {"source": 7, "implementation": "native"}),
    ("sssp", {"source": 7, "implementation": "program"}),
    ("pagerank", {"weighted": True, "iterations": 9}),
    ("pagerank", {"iterations": 9, "implementation": "program"}),
    ("betweenness", {"sources": [7, 8]}),
    ("closeness", {}),
    ("harmonic", {}),
    ("degree_assortativity", {}),
    ("mst", {}),
    ("matching", {}),
    ("cdlp", {"iterations": 2}),
    ("scc", {}),
    ("leiden", {}),
    ("leiden", {"weighted": True}),
    ("bfs", {"source": 7, "implementation": "program"}),
]
COPYING: list[tuple[str, dict[str, Any]]] = [
    ("random_walks", {"length": 3}),
    ("min_cut", {"source": 7, "target": 8}),
    ("lcc", {}),
]


class Sums(gs.VertexProgram):
    """Sums of times and of weights both ways: a message reads two columns."""

    times = gs.state("int64", default=0)
    seen = gs.state("float64", default=0.0)
    direction = "both"
    combine = gs.sum
    max_supersteps = 2

    def message(self, src: Any, edge: Any) -> Any:
        """Send both."""
        return edge.time, edge.weight + 0.5 * src.seen

    def update(self, node: Any, message: Any) -> Any:
        """Take both."""
        time, weight = message
        return time, weight


@pytest.fixture(scope="module", params=[False, True], ids=["directed", "undirected"])
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, Path]:
    """The same weighted edges in one and in four partitions."""
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, NODES, (2, EDGES))
    weight, time = rng.integers(1, 99, EDGES) / 4, rng.integers(0, 50, EDGES)
    edges = pa.table({"src": src, "dst": dst, "weight": weight, "time": time})
    folder = tmp_path_factory.mktemp("stores")
    for parts in (1, 4):
        gs.ingest(edges, folder / str(parts), partitions=parts, undirected=request.param)
    return {parts: folder / str(parts) for parts in (1, 4)}


def lies_in_a_file(array: np.ndarray) -> bool:
    """Whether an array is memory of a mapped Arrow file."""
    begin = array.__array_interface__["data"][0]
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(end, 16) for end in line.split()[0].split("-"))
        if low <= begin < high:
            return line.endswith(".arrow")
    return False


def test_columns_in_place_are_those_of_united_rows(stores: dict[int, Path]) -> None:
    for side in SIDES:
        topology = Topology.of(stores[4])
        rows = topology.rows(side, ("weight", "time", "relation"))
        csr = Topology.of(stores[4]).csr(side)
        assert not topology.is_at_hand(side)  # nothing was united
        assert set(rows.columns) == {"weight", "time"}
        assert all(map(lies_in_a_file, (rows.indices, *rows.columns.values())))
        for name, column in rows.columns.items():
            first = rows.begins_of(name).astype(np.int64)
            for node in range(NODES):
                row = column[first[node] : first[node] + rows.degree(node)]
                kept = csr.columns[name][csr.indptr[node] : csr.indptr[node + 1]]
                assert np.array_equal(row, kept)
        pieces = [piece for _, piece in rows.pieces("weight")]
        assert len(pieces) == 4
        assert np.array_equal(np.concatenate(pieces), csr.columns["weight"])


@pytest.mark.parametrize(("name", "options"), WAYS)
def test_partitions_change_nothing_and_take_no_memory(
    stores: dict[int, Path], name: str, options: dict[str, Any]
) -> None:
    tables, answers, peaks = [], [], []
    for path in stores.values():
        algorithms.get(name)(path, **options)  # compiled
        graph = gs.open(path)
        tracemalloc.start()
        work = algorithms.get(name).prepare(graph, **options)
        done = work.run()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert "mapped" in work.explanation()
        tables.append(done.table.sort_by("id").to_pandas())
        answers.append(done.result or 0.0)
    assert answers[0] == pytest.approx(answers[1], rel=1e-9)
    for column in tables[0].columns:
        if tables[0][column].dtype.kind == "f":
            pairs = tables[0][column], tables[1][column]
            np.testing.assert_allclose(*pairs, rtol=1e-9)
        else:
            assert tables[0][column].equals(tables[1][column]), column
    # a direction has 1/2 MiB of neighbors and 1 MiB of weights
    assert peaks[1] < peaks[0] + (1 << 18)


def test_a_program_reads_columns_of_both_directions(stores: dict[int, Path]) -> None:
    found = [gs.run(Sums(), path).table.sort_by("id") for path in stores.values()]
    for name in ("times", "seen"):
        np.testing.assert_allclose(*(table[name].to_numpy() for table in found))
    assert pc.sum(found[0]["times"]).as_py() > 0
    assert "mapped" in explain(Sums(), stores[4])


@pytest.mark.parametrize(("name", "options"), COPYING)
def test_a_plan_says_why_rows_are_copied(
    stores: dict[int, Path], name: str, options: dict[str, Any]
) -> None:
    text = algorithms.get(name).prepare(stores[4], **options).explanation()
    assert "storage: rows and states in memory; rows are copied: " in text


def test_levels_are_folded_into_a_scratch_file_where_memory_is_short(
    stores: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_plan, "base_bytes", lambda: 10**8)
    prepare = algorithms.get("leiden").prepare
    needs = prepare(stores[4], memory="4GB").choice.needs
    assert needs["streamed"] < needs["memory"]
    work = prepare(stores[4], memory=(needs["streamed"] + needs["memory"]) // 2)
    text = work.explanation()
    assert "storage: rows mapped as they are" in text
    assert "levels folded from them in a scratch file" in text
    assert work.run().table.equals(prepare(stores[4]).run().table)


def test_several_types_of_nodes_are_copied_and_a_plan_says_so(tmp_path: Path) -> None:
    graph = build("demo", tmp_path / "demo").graph
    text = algorithms.get("wcc").prepare(graph).explanation()
    assert "rows are copied: each node's row is merged from" in text


def test_a_plan_counts_an_offset_a_node_for_each_column(stores: dict[int, Path]) -> None:
    topology = Topology.of(stores[4])
    found = united_bytes(topology, ("out",), in_place=True, columns=("weight", "relation"))
    assert (found.entries, found.nodes) == (0, 12 * topology.num_nodes)


def test_a_negative_weight_is_found_behind_a_gap(tmp_path: Path) -> None:
    src, dst = np.arange(400), (np.arange(400) + 1) % 400
    weight = np.ones(400)
    weight[333] = -2.5
    gs.ingest((src, dst, weight), tmp_path / "g", partitions=4)
    with pytest.raises(InvalidGraphError, match=r"1 are .* -2\.5 on edge 333 -> 334"):
        algorithms.sssp(tmp_path / "g", source=0)
    with pytest.raises(InvalidGraphError, match=r"weighs -2\.5"):
        algorithms.pagerank(tmp_path / "g", weighted=True, implementation="native")


def test_a_simple_graph_is_read_where_it_lies(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    keys = np.unique(rng.integers(0, 2000 * 2000, 1 << 18))
    ends = keys // 2000, keys % 2000
    ends = ends[0][ends[0] < ends[1]], ends[1][ends[0] < ends[1]]
    found: dict[str, list[Any]] = {}
    for parts in (1, 4):
        gs.ingest(ends, tmp_path / str(parts), partitions=parts, undirected=True)
        for name in ("k_core", "diameter"):
            algorithms.get(name)(tmp_path / str(parts))
            work = algorithms.get(name).prepare(gs.open(tmp_path / str(parts)))
            tracemalloc.start()
            done = work.run()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 1 << 19, (name, parts)  # neighbors take a megabyte
            assert "mapped" in work.explanation()
            values = done.table.sort_by("id")["value"]
            found.setdefault(name, []).append((done.result, values))
    assert all(first == second for first, second in found.values())


def test_partitions_without_edges(tmp_path: Path) -> None:
    gs.ingest(
        (np.array([0, 1]), np.array([1, 2]), np.array([0.5, 2.0])),
        tmp_path / "g",
        partitions=3,
    )
    for kind in ("native", "program"):
        done = algorithms.sssp(tmp_path / "g", source=0, implementation=kind)
        assert done.table.sort_by("id")["value"].to_pylist() == [0.0, 0.5, 2.5]
