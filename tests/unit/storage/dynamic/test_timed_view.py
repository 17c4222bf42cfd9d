"""Views of times: what every room gives is what a store of those edges alone gives."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.facade.graph import Graph
from graphsys.storage import EdgeChunk, NodeChunk
from graphsys.storage.verify.verify import verify
from tests.deltas import append_chunks, assert_same_arrays, same_numbers
from tests.stores import edge_chunk, make_store, pairs_of

ROWS = [(1, 2, 10), (1, 2, 20), (2, 3, 30), (3, 1, 40), (3, 3, 40)]


def timed(rows: list[tuple[int, int, int]]) -> EdgeChunk:
    return edge_chunk([row[:2] for row in rows], time=[row[2] for row in rows])


@pytest.fixture(params=[1, 2])
def graph(tmp_path: Path, request: Any) -> Iterator[Graph]:
    """Five edges; one comes late and is older; one pair goes at 35 and one for ever."""
    store = tmp_path / "g"
    make_store(store, timed(ROWS), partitions=request.param).graph.close()
    append_chunks(store, timed([(5, 1, 15)]), deletes=[edge_chunk([(1, 2)], time=[35])])
    append_chunks(store, timed([(1, 2, 50)]), deletes=[edge_chunk([(3, 3)])])
    with Graph(store) as opened:
        yield opened


def pairs_at(graph: Graph, time: int) -> Counter[Any]:
    return pairs_of(graph.at(time))


def test_at_shows_what_was_there(graph: Graph) -> None:
    assert pairs_at(graph, 9) == Counter()
    assert pairs_at(graph, 10) == Counter([(1, 2)])
    assert pairs_at(graph, 15) == Counter([(1, 2), (5, 1)])
    assert pairs_at(graph, 34) == Counter([(1, 2), (1, 2), (5, 1), (2, 3)])
    assert pairs_at(graph, 35) == Counter([(5, 1), (2, 3)])
    assert pairs_at(graph, 2**62) == pairs_of(graph)
    assert pairs_of(graph) == Counter([(5, 1), (2, 3), (3, 1), (1, 2)])


def test_between_shows_what_came_and_stayed(graph: Graph) -> None:
    assert pairs_of(graph.between(15, 30)) == Counter([(1, 2), (5, 1)])
    assert pairs_of(graph.between(15, 36)) == Counter([(5, 1), (2, 3)])
    assert pairs_of(graph.between(40, 40)) == Counter()
    assert pairs_of(graph.at(34).between(20, 99)) == Counter([(1, 2), (2, 3)])


def test_rolling_windows_follow_each_other(graph: Graph) -> None:
    windows = [view.window for view in graph.rolling(window=20)]
    assert windows == [(15, 35), (35, 55)]  # what was deleted began at 10
    found = [view.num_edges for view in graph.rolling(window=20, step=10)]
    assert found == [3, 2, 2, 1]
    assert [w.num_edges for w in graph.at(34).rolling(window=15)] == [3, 1]


def test_counts_and_rows_are_those_of_the_edges_shown(graph: Graph) -> None:
    view = graph.at(34)
    assert (view.num_nodes, view.num_edges) == (4, 4)
    assert view.bucket_counts("edge").sum() == 4
    assert sorted(view.neighbors(1)) == [2, 2]
    assert view.degree(1, direction="in") == 1
    assert view.neighbors(5) == [1]
    assert "times None to before 35" in repr(view)
    assert view.fingerprint != graph.fingerprint != graph.at(35).fingerprint
    view.close()
    assert graph.num_edges == 4


@pytest.mark.parametrize("is_directed", [True, False])
def test_a_view_is_number_by_number_a_store_of_its_edges(
    tmp_path: Path, is_directed: bool
) -> None:
    """With columns, relations, splits, several types and partitions."""
    rng = np.random.default_rng(2)
    kind = EdgeType("user", "buys", "item")

    def chunk(size: int, split: str) -> EdgeChunk:
        return EdgeChunk(
            src=rng.integers(0, 25, size),
            dst=rng.integers(0, 15, size),
            edge_type=kind,
            split=split,
            columns={
                "time": rng.integers(0, 100, size),
                "weight": rng.integers(1, 9, size).astype(float),
                "relation": pa.array([f"r{k}" for k in rng.integers(0, 3, size)]),
                "note": pa.array([f"x{k}" for k in range(size)]),
            },
        )

    knows = EdgeChunk(
        src=np.arange(25),
        dst=np.arange(25)[::-1].copy(),
        edge_type=EdgeType("user", "knows", "user"),
    )
    store = tmp_path / "g"
    options: dict[str, Any] = {"partitions": 2, "is_directed": is_directed}
    first = [chunk(120, "train"), chunk(30, "test"), knows]
    make_store(store, *first, **options).graph.close()
    append_chunks(store, chunk(40, "train"), is_directed=is_directed)
    with Graph(store) as graph:
        for view in (graph.at(60), graph.between(20, 70), graph.at(-1), graph.at(99)):
            with same_numbers(view, tmp_path / f"s{view.window}") as same:
                assert verify(same.path).ok
                assert_same_arrays(view, same)
        assert graph.at(-1).num_edges == 25  # what has no time is there


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Graph, Graph]]:
    """Return a view and a store of its edges, of nodes with labels and features."""
    folder, rng = tmp_path_factory.mktemp("views"), np.random.default_rng(1)
    ids = np.arange(40)
    nodes = NodeChunk(
        ids=ids,
        columns={"label": ids % 2, "split": pa.array(["train", "test"] * 20)},
        features={"x": rng.normal(size=(40, 3)).astype(np.float32)},
    )
    ends = rng.integers(0, 40, (300, 2))
    edges = edge_chunk(ends.tolist(), time=rng.permutation(300))
    make_store(folder / "g", nodes, edges, partitions=2).graph.close()
    gone = edge_chunk(
        np.unique(ends[:30], axis=0).tolist(),
        time=[120] * len(np.unique(ends[:30], axis=0)),
    )
    append_chunks(folder / "g", deletes=[gone], missing_deletes="count")
    with Graph(folder / "g") as graph:
        view = graph.at(150)
        with same_numbers(view, folder / "same") as same:
            assert 0 < same.num_edges < 151
            yield view, Graph.of(same)


def test_every_room_takes_a_view(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    view, same = pair

    def answers(graph: Graph, run: Path) -> dict[str, Any]:
        algorithms = gs.algorithms
        embedding = gs.embedding.EmbeddingConfig(
            dim=8, epochs=2, threads=1, deterministic=True
        )
        gs.embedding.train(graph, embedding, run / "e")
        network = gs.gnn.GnnConfig(
            model="sage", dim=8, epochs=2, threads=1, features=("x",)
        )
        gs.gnn.train(graph, network, run / "n")
        return {
            "bfs": algorithms.bfs(graph, source=3).table.to_pydict(),
            "pagerank": algorithms.pagerank(graph, num_threads=1).table.to_pydict(),
            "wcc": algorithms.wcc(graph, implementation="program").table.to_pydict(),
            "triangles": gs.mining.count(graph, "triangle"),
            "motifs": gs.mining.motif_census(graph, 4),
            "networkx": sorted(graph.to_networkx().edges(data="time")),
            "scipy": graph.to_scipy().toarray().tolist(),
            # a run knows the view that it was trained on
            "ranks": gs.embedding.evaluate(run / "e", split="train", threads=1)["metrics"],
            "near": gs.embedding.nearest(run / "e", 3, k=5).to_pydict(),
            "classes": gs.gnn.evaluate(run / "n", split="test")["metrics"],
        }

    assert answers(view, tmp_path / "v") == answers(same, tmp_path / "s")


def test_pyg_takes_a_view(pair: tuple[Graph, Graph]) -> None:
    pytest.importorskip("torch_geometric")
    found, wanted = (graph.to_pyg() for graph in pair)
    assert found.edge_index.equal(wanted.edge_index)


def test_a_view_can_be_written_as_a_graph(graph: Graph, tmp_path: Path) -> None:
    with gs.ingest(graph.at(34), tmp_path / "then").graph as then:
        assert pairs_of(then) == pairs_of(graph.at(34))
        assert then.num_nodes == graph.num_nodes


def test_a_view_shows_its_span(tmp_path: Path) -> None:
    def chunk(name: str, times: Any) -> EdgeChunk:
        edge_type = EdgeType("node", name, "node")
        return edge_chunk([(1, 2), (2, 3)], edge_type, time=times)

    days = np.array(["2024-05-01", "2024-05-03"], "datetime64[D]")
    with make_store(tmp_path / "one", chunk("a", days)).graph as graph:
        assert repr(graph.at("2024-05-02")).endswith("times None to before 2024-05-03)")
    both = [chunk("a", days), chunk("b", days.astype("datetime64[s]"))]
    with make_store(tmp_path / "two", *both).graph as graph:
        with pytest.raises(ConfigError, match="times in different units: "):
            graph.at("2024-05-02")
        assert repr(graph.between(5, 9)).endswith("times 5 to before 9)")


def test_a_run_of_a_view_is_not_one_of_the_graph(graph: Graph, tmp_path: Path) -> None:
    config = gs.embedding.EmbeddingConfig(dim=4, epochs=1)
    gs.embedding.train(graph.at(34), config, tmp_path / "run")
    with pytest.raises(ConfigError, match="was trained on another graph"):
        gs.embedding.evaluate(tmp_path / "run", graph=graph, split="train")


def test_what_is_no_span_of_time_is_refused(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="time: got 'soon', expected a whole number"):
        graph.at("soon")
    with pytest.raises(ConfigError, match="have no known unit, expected a whole number"):
        graph.at("2024-05-01")
    with pytest.raises(ConfigError, match="have no known unit, expected a whole number"):
        graph.rolling(window="7d")
    with pytest.raises(ConfigError, match="window: got 0, expected a length above 0"):
        graph.rolling(window=0)
    with pytest.raises(ConfigError, match="step: got -1, expected"):
        graph.rolling(window=5, step=-1)
    with make_store(tmp_path / "plain", edge_chunk([(1, 2)])).graph as plain:
        for ask in (lambda: plain.at(3), lambda: plain.rolling(window=3)):
            with pytest.raises(ConfigError, match="have no column 'time', which views"):
                ask()
