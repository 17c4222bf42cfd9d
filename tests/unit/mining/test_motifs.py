"""Motifs and orbits of stores: by id, whatever the partitions, as features of nodes."""

import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.core.errors import BudgetError, ConfigError, OutputExistsError
from graphsys.core.memory import resident_bytes
from graphsys.core.types import EdgeType
from graphsys.mining import (
    SimpleGraph,
    count,
    motif_census,
    orbits,
    simple_graph,
    store_with_orbits,
)
from graphsys.storage.scratch import ScratchArrays
from tests.conftest import ROOT
from tests.stores import edge_chunk, make_store

EDGES = [(10, 20), (20, 30), (30, 10), (30, 40), (40, 30), (10, 10), (40, 50), (20, 30)]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("is_directed", [True, False])
def test_a_store_counts_as_simple_and_undirected(
    tmp_path: Path, partitions: int, is_directed: bool
) -> None:
    make_store(
        tmp_path / "g", edge_chunk(EDGES), is_directed=is_directed, partitions=partitions
    )
    assert motif_census(tmp_path / "g", 3) == {"3-path": 3, "triangle": 1}
    copies = motif_census(tmp_path / "g", 3, induced="edge")
    assert copies == {"3-path": 6, "triangle": 1}
    table = orbits(gs.open(tmp_path / "g")).to_pydict()
    counted = dict(zip(table["id"], table["orbit_3"], strict=True))
    assert counted == {10: 1, 20: 1, 30: 1, 40: 0, 50: 0}
    degrees = dict(zip(table["id"], table["orbit_0"], strict=True))
    assert degrees == {10: 2, 20: 2, 30: 3, 40: 2, 50: 1}


def test_rows_are_sorted_and_nodes_descend_by_degree(rng: np.random.Generator) -> None:
    edges = rng.integers(0, 80, (400, 2))
    graph = SimpleGraph.of((edges[:, 0], edges[:, 1]))
    expected = nx.Graph((a, b) for a, b in edges.tolist() if a != b)
    degrees = np.diff(graph.indptr)
    assert (np.diff(degrees) <= 0).all()
    ids = graph.ids(np.arange(graph.num_nodes)).to_pylist()
    assert graph.num_edges == expected.number_of_edges()
    for v, node in enumerate(ids):
        row = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        assert (np.diff(row) > 0).all()
        neighbors = set(expected[node]) if node in expected else set()
        assert {ids[w] for w in row.tolist()} == neighbors


def test_nodes_of_several_types_are_told_apart(tmp_path: Path) -> None:
    likes, knows = EdgeType("user", "likes", "item"), EdgeType("user", "knows", "user")
    make_store(
        tmp_path / "g",
        edge_chunk([("a", "x"), ("b", "x")], likes),
        edge_chunk([("a", "b")], knows),
    )
    table = orbits(tmp_path / "g")
    assert table["type"].to_pylist() == ["item", "user", "user"]
    assert table["id"].to_pylist() == ["x", "a", "b"]
    assert table["orbit_3"].to_pylist() == [1, 1, 1]


def test_orbits_of_edges_have_both_ends(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk(EDGES))
    rows = orbits(tmp_path / "g", per="edge").to_pylist()
    triangles = {frozenset((row["src"], row["dst"])): row["triangle"] for row in rows}
    ring = [frozenset(pair) for pair in ((10, 20), (20, 30), (10, 30))]
    assert triangles == dict.fromkeys(ring, 1) | {
        frozenset((30, 40)): 0,
        frozenset((40, 50)): 0,
    }


def test_orbits_become_features_of_a_store(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk(EDGES))
    table = orbits(tmp_path / "g", features=True)
    assert table["orbits"].type == pa.list_(pa.float32(), 15)
    edges = pa.table({"src": [a for a, _ in EDGES], "dst": [b for _, b in EDGES]})
    kind = ("node", "edge", "node")
    gs.ingest(out=tmp_path / "h", nodes={"node": table}, edges={kind: edges})
    graph = gs.open(tmp_path / "h")
    assert graph.feature_names("node") == ["orbits"]
    stored = dict(
        zip(
            graph.node_ids("node").to_pylist(),
            np.asarray(graph.features("node", 0, "orbits")),
            strict=True,
        )
    )
    assert stored[30][0] == pytest.approx(np.log1p(3))
    assert stored[50][3] == 0


def test_what_is_neither_node_nor_edge_is_refused(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk(EDGES))
    with pytest.raises(ConfigError, match="per='graph' is neither 'node' nor 'edge'"):
        orbits(tmp_path / "g", per="graph")  # type: ignore[arg-type]


def test_the_examples_of_the_guide_hold() -> None:
    text = (ROOT / "scripts/documenting/pages/guides/mining.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, {})


def test_within_a_budget_triangles_are_listed_in_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edges = np.array([(a, b) for a in range(9) for b in range(a)])
    made: list[int] = []
    zeros = ScratchArrays.zeros

    def note(self: ScratchArrays, length: int, dtype: Any) -> Any:
        made.append(length)
        return zeros(self, length, dtype)

    monkeypatch.setattr(ScratchArrays, "zeros", note)
    monkeypatch.setattr(simple_graph, "scratch_is_memory", lambda: False)
    ends = edges[:, 0], edges[:, 1]
    free = motif_census(ends, 5)
    assert made == []
    assert motif_census(ends, 5, memory=resident_bytes() + (1 << 30)) == free
    assert made == [3 * 84]  # triangles of a 9-clique; rows are in memory


def test_lists_in_memory_are_refused_within_a_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simple_graph, "scratch_is_memory", lambda: True)
    with pytest.raises(BudgetError, match="memory themselves; set TMPDIR to a folder on"):
        count(
            (np.array([0, 1, 2]), np.array([1, 2, 0])),
            "bull",
            memory=resident_bytes() + (1 << 30),
        )


@pytest.mark.parametrize(
    "work",
    [
        lambda it: motif_census(it, 5, memory="1MB"),
        lambda it: orbits(it, memory="1MB"),
        lambda it: orbits(it, per="edge", memory="1MB"),
        lambda it: count(it, "a!b b-c a-c", memory="1MB"),
    ],
)
def test_a_budget_that_is_too_small_is_refused_with_one_that_is_not(
    work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simple_graph, "scratch_is_memory", lambda: False)
    ends = np.array([0, 1, 2]), np.array([1, 2, 0])
    with pytest.raises(BudgetError, match=r"needs .* give --memory (\d+)MB") as refused:
        work(ends)
    enough = int(str(refused.value).split("(memory='")[1].split("MB")[0]) << 20
    assert enough < resident_bytes() + (1 << 30)  # of this process, which ran other tests


def test_a_budget_counts_what_each_table_of_orbits_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simple_graph, "scratch_is_memory", lambda: False)
    ends = np.arange(0, 200_000, 2), np.arange(1, 200_000, 2)
    needed = []
    for more in ({"per": "edge"}, {"per": "node"}, {"per": "node", "features": True}):
        with pytest.raises(BudgetError, match="give --memory") as refused:
            orbits(ends, memory="1MB", **more)
        needed.append(int(str(refused.value).split("(memory='")[1].split("MB")[0]))
    # 27 MB of edges; 58 of nodes and edges; 20 more for the lists
    assert needed[0] + 15 < needed[1] < needed[2] - 10


def test_an_unknown_device_is_told_before_anything_is_read() -> None:
    with pytest.raises(ConfigError, match="device must be 'cpu' or 'cuda', got 'tpu'"):
        motif_census("no such graph", 3, device="tpu")


def test_a_store_is_written_again_with_orbits_as_features(tmp_path: Path) -> None:
    likes, knows = EdgeType("user", "likes", "item"), EdgeType("user", "knows", "user")
    make_store(
        tmp_path / "g",
        edge_chunk([("a", "x"), ("b", "x"), ("c", "y")], likes),
        edge_chunk([("a", "b"), ("b", "c")], knows),
        edge_chunk([("a", "c")], knows, split="test"),
        partitions=2,
    )
    old = gs.open(tmp_path / "g")
    with store_with_orbits(old, tmp_path / "h").graph as new:
        assert [it.tolist() for it in (new.offsets("user"), new.offsets("item"))] == [
            it.tolist() for it in (old.offsets("user"), old.offsets("item"))
        ]
        assert new.splits(knows) == old.splits(knows)
        found: dict[tuple[str, str], Any] = {}
        for kind in new.node_types:
            for part in range(new.num_partitions(kind)):
                rows, places = new.feature_rows(kind, part, "orbits")
                assert places is None
                ids = new.nodes(kind, part)["id"].to_pylist()
                found |= {(kind, it): row for it, row in zip(ids, rows, strict=True)}
    wanted = orbits(old, features=True).to_pylist()
    assert found.keys() == {(row["type"], row["id"]) for row in wanted}
    for row in wanted:
        np.testing.assert_array_equal(found[row["type"], row["id"]], row["orbits"])
    assert found["user", "a"][3] == np.log1p(np.float32(1))  # a triangle without a-c
    with pytest.raises(OutputExistsError, match="exists; pass --overwrite to replace it"):
        store_with_orbits(old, tmp_path / "h")
