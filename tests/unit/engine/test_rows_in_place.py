"""Rows of stores of several partitions are mapped where they lie, not copied."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.datasets.recipes.build import build
from graphsys.engine import algorithms
from graphsys.engine.memory_plan import united_bytes
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction
from graphsys.graph.file_columns import CAN_MAP

pytestmark = pytest.mark.skipif(not CAN_MAP, reason="mmap(2) of Linux is used")
EDGES = 20_000
SIDES: tuple[Direction, Direction] = ("out", "in")
Options = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=[False, True], ids=["directed", "undirected"])
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, Path]:
    """The same edges in one, three and eight partitions."""
    rng = np.random.default_rng(3)
    edges = rng.integers(0, 3000, EDGES) ** 2 // 3000, rng.integers(0, 3000, EDGES)
    folder = tmp_path_factory.mktemp("stores")
    for parts in (1, 3, 8):
        gs.ingest(edges, folder / str(parts), partitions=parts, undirected=request.param)
    return {parts: folder / str(parts) for parts in (1, 3, 8)}


@pytest.mark.parametrize("parts", [3, 8])
def test_rows_in_place_are_the_united_rows(stores: dict[int, Path], parts: int) -> None:
    for side in SIDES:
        topology = Topology.of(stores[parts])
        rows, csr = topology.rows(side), Topology.of(stores[parts]).csr(side)
        assert not topology.is_at_hand(side)  # nothing was copied
        assert rows.num_edges == csr.num_edges
        assert rows.num_nodes == csr.num_nodes
        assert np.array_equal(rows.degrees(), csr.degrees())
        for node in range(csr.num_nodes):
            row = rows.indices[rows.begins[node] : rows.ends[node]]
            assert np.array_equal(row, csr.indices[csr.indptr[node] : csr.indptr[node + 1]])


def test_algorithms_find_the_same_in_any_number_of_partitions(
    stores: dict[int, Path],
) -> None:
    every: Options = {
        "bfs": {"source": 7, "parents": True},
        "wcc": {},
        "sssp": {"source": 7},
        "pagerank": {"iterations": 9},
        "triangle_count": {},
        "k_core": {},
        "lcc": {},
    }
    for name, options in every.items():
        first, *others = [
            algorithms.get(name)(path, **options).table.sort_by("id").to_pandas()
            for path in stores.values()
        ]
        for other in others:
            for column in first.columns:
                if first[column].dtype.kind == "f":
                    assert np.allclose(
                        first[column], other[column], rtol=1e-12, equal_nan=True
                    )
                else:
                    assert first[column].equals(other[column]), (name, column)


def test_no_row_is_copied(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    gs.ingest(
        (rng.integers(0, 2000, 1 << 20), rng.integers(0, 2000, 1 << 20)),
        tmp_path / "g",
        partitions=4,
    )
    every: Options = {"bfs": {"source": 5}, "wcc": {}, "pagerank": {}}
    for name, options in every.items():
        algorithms.get(name)(tmp_path / "g", **options)  # compiled
        graph = gs.open(tmp_path / "g")
        tracemalloc.start()
        algorithms.get(name)(graph, **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 20, name  # entries of one direction are 4 MiB


def test_a_plan_counts_two_offsets_a_node(stores: dict[int, Path]) -> None:
    topology = Topology.of(stores[8])
    found = united_bytes(topology, ("out",), in_place=True)
    assert (found.entries, found.nodes) == (0, 8 * topology.num_nodes)
    assert united_bytes(topology, ("out",)).entries >= 4 * EDGES
    lines = algorithms.get("bfs").prepare(stores[8], source=7).explanation()
    assert "mapped" in lines
    assert "united" not in lines


def test_a_reader_keeps_files_that_are_taken_away(tmp_path: Path) -> None:
    edges = np.arange(3000) % 50, np.arange(3000) % 77
    gs.ingest(edges, tmp_path / "g", partitions=3)
    topology = Topology.of(tmp_path / "g")
    expected = topology.csr("out")
    reader = Topology.of(tmp_path / "g")
    assert reader.can_map("out")  # the files are open
    for file in (tmp_path / "g").rglob("*.arrow"):
        file.unlink()
    rows = reader.rows("out")
    assert np.array_equal(rows.indices, expected.indices)
    assert np.array_equal(rows.degrees(), expected.degrees())


def test_other_stores_are_united(tmp_path: Path) -> None:
    several = Topology.of(build("demo", tmp_path / "demo").graph)  # types of nodes
    assert not several.can_map("out")
    rows, csr = several.rows("out"), several.csr("out")
    assert np.array_equal(rows.indices, csr.indices)

    copy = tmp_path / "grown"
    gs.ingest((np.array([1, 2]), np.array([2, 3])), copy, partitions=2)
    grown = gs.open(copy)
    grown.append((np.array([1, 5]), np.array([3, 1])))
    topology = Topology.of(gs.open(copy))
    assert topology.rows("out").num_edges == 4
