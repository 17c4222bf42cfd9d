from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig, Embeddings, baselines, evaluate, train
from graphsys.embedding import evaluate as evaluate_function
from graphsys.storage import Graph
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, NodeChunk, Source
from tests.embedding_codes import COMPARATOR_CODES, OPERATOR_CODES
from tests.ranking_oracle import ask_all, means
from tests.runs import reseal

MakeRing = Callable[[int], Graph]


def check(path: Path, split: str) -> None:
    run = Embeddings(path)
    found, asked = evaluate(run, split=split), ask_all(run, split)
    metrics = found["metrics"]
    assert found["split"] == split
    for name, value in means(asked).items():
        assert metrics[name] == pytest.approx(value, rel=1e-6)
    for name, value in means(asked, "raw").items():
        assert metrics["unfiltered"][name] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("comparator", list(COMPARATOR_CODES))
@pytest.mark.parametrize("operator", list(OPERATOR_CODES))
def test_ranks_equal_brute_force(
    make_ring: MakeRing, tmp_path: Path, operator: Any, comparator: Any, reciprocal: bool
) -> None:
    config = EmbeddingConfig(
        dim=6,
        epochs=2,
        operator=operator,
        comparator=comparator,
        reciprocal=reciprocal,
        init_scale=1.0,
        lr=0.3,
        deterministic=True,
        batch_size=16,
        num_batch_negatives=8,
        num_uniform_negatives=4,
        checkpoint_seconds=60.0,
    )
    train(make_ring(2), config, tmp_path / "run")
    check(tmp_path / "run", "test")


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("comparator", list(COMPARATOR_CODES))
@pytest.mark.parametrize("operator", ["translation", "affine"])
def test_ranks_with_a_bias_equal_brute_force(
    make_ring: MakeRing, tmp_path: Path, operator: Any, comparator: Any, reciprocal: bool
) -> None:
    config = EmbeddingConfig(
        dim=6,
        epochs=2,
        operator=operator,
        comparator=comparator,
        bias=True,
        reciprocal=reciprocal,
        init_scale=1.0,
        deterministic=True,
        checkpoint_seconds=60.0,
    )
    train(make_ring(2), config, tmp_path / "run")
    check(tmp_path / "run", "test")


def test_ranks_of_several_types_equal_brute_force(shop: Graph, tmp_path: Path) -> None:
    config = EmbeddingConfig(dim=8, epochs=1, init_scale=1.0, operator="diagonal")
    train(shop, config, tmp_path / "run")
    check(tmp_path / "run", "test")


class Twins(Source):
    """An undirected graph on which an untrained model of zero length ties everywhere."""

    name = "twins"
    is_directed = False

    def chunks(self) -> Any:
        yield NodeChunk(ids=np.arange(12))
        yield EdgeChunk(src=np.arange(10), dst=np.arange(10) + 1)
        yield EdgeChunk(src=np.array([0, 3]), dst=np.array([5, 9]), split="test")


def test_undirected_edges_are_known_both_ways(tmp_path: Path) -> None:
    ingest(Twins(), tmp_path / "graph", partitions=3)
    graph = Graph(tmp_path / "graph")
    train(graph, EmbeddingConfig(dim=4, epochs=1, init_scale=1.0), tmp_path / "run")
    check(tmp_path / "run", "test")


def test_equal_rows_share_their_rank(make_ring: MakeRing, tmp_path: Path) -> None:
    for partitions in (1, 4):
        graph, out = make_ring(partitions), tmp_path / f"run{partitions}"
        train(graph, EmbeddingConfig(dim=64, epochs=1, seed=partitions), out)
        run = Embeddings(out)
        for name in run.state.files:
            if name.startswith("rows/"):
                rows = np.load(out / name)
                rows[:] = np.linspace(-1, 1, 64, dtype=np.float32) * 0.37
                np.save(out / name, rows)
        reseal(out)
        metrics = evaluate(out)["metrics"]
        # all 40 candidates tie: rank 1 + 39 / 2 raw, whatever the partitions
        assert metrics["unfiltered"]["mr"] == 20.5
        assert metrics["unfiltered"]["mrr"] == pytest.approx(1 / 20.5)
        assert metrics["hits@10"] == 0.0


def test_ranks_do_not_depend_on_partitions_or_threads(
    make_ring: MakeRing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)
    rows[20:30] = rows[10:20]
    results = []
    for partitions in (1, 2, 4):
        graph, out = make_ring(partitions), tmp_path / f"run{partitions}"
        train(graph, EmbeddingConfig(dim=16, epochs=1, operator="diagonal"), out)
        place = np.argsort(graph.node_ids("entity").to_numpy(zero_copy_only=False))
        number = np.empty(40, dtype=np.int64)
        number[place] = np.arange(40)
        offsets = graph.offsets("entity")
        for name in Embeddings(out).state.files:
            if name.startswith("rows/"):
                part = int(name.rsplit("part-")[1].split(".")[0])
                np.save(out / name, rows[number[offsets[part] : offsets[part + 1]]])
            if name.startswith("relations/"):
                table = np.load(out / name)
                table[0] = np.tile(np.linspace(0.5, 2, 16), 3)
                np.save(out / name, table)
        reseal(out)
        results.append(evaluate(out, threads=1))
        monkeypatch.setattr("graphsys.embedding.rows.batch_memory._CANDIDATES", 7)
        results.append(evaluate(out, threads=2))
        monkeypatch.undo()
    for result in results[1:]:
        assert result == results[0]


def test_a_split_without_edges_is_an_error(make_ring: MakeRing, tmp_path: Path) -> None:
    train(make_ring(1), EmbeddingConfig(dim=4, epochs=1), tmp_path / "run")
    with pytest.raises(
        ConfigError, match="split 'dev' has no edges; the graph has test, tr"
    ):
        evaluate_function(tmp_path / "run", split="dev")


def test_baselines_rank_by_chance_and_by_popularity(make_ring: MakeRing) -> None:
    for partitions in (1, 4):
        found = baselines(make_ring(partitions))
        raw = found["random"]["unfiltered"]
        assert raw["mr"] == 20.5
        assert raw["mrr"] == pytest.approx(sum(1 / k for k in range(1, 41)) / 40)
        assert raw["hits@10"] == pytest.approx(0.25)
        assert found["random"]["mr"] <= raw["mr"]
        # everyone has one edge of each relation: held-out answers have none, and come last
        assert found["popularity"]["unfiltered"]["mr"] > 30


def test_the_popular_answer_comes_first(tmp_path: Path) -> None:
    class Plain(Source):
        name = "star"

        def chunks(self) -> Any:
            yield EdgeChunk(src=np.arange(1, 9), dst=np.zeros(8, dtype=np.int64))
            yield EdgeChunk(src=np.array([9]), dst=np.array([0]), split="test")

    ingest(Plain(), tmp_path / "graph")
    found = baselines(Graph(tmp_path / "graph"))["popularity"]
    # tail: node 0 is first; head: 9 ties with 0 after the eight known answers are left out
    assert found["hits@1"] == 0.5
    assert found["mr"] == pytest.approx((1 + 1.5) / 2)
