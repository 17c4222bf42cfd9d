"""What evaluation says besides the means, against plain Python and torchmetrics."""

import tracemalloc
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
import torch
from torchmetrics.functional.classification import binary_auroc

from graphsys import metrics
from graphsys.cli.main import main
from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT
from graphsys.core.types import EdgeType
from graphsys.embedding import EmbeddingConfig, Embeddings, evaluate, train
from graphsys.embedding.data.candidates import draw_candidates
from graphsys.embedding.data.filtered_queries import held_out_queries
from graphsys.embedding.data.held_out import held_out_edges
from graphsys.embedding.data.relation_stats import relation_categories, training_degrees
from graphsys.embedding.evaluation.ranking import rank_edges
from graphsys.embedding.model import relation_sets
from graphsys.embedding.rows.scorer import Scorer
from graphsys.storage import Graph
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk
from tests.ranking_oracle import ask_all, means, triples
from tests.runs import reseal
from tests.stores import ListSource, edge_chunk
from tests.unit.embedding.triple_graphs import write

FACT = EdgeType("thing", "fact", "thing")
NUM_THINGS = 60


def facts() -> list[Any]:
    """Return four relations over things, one of each category, some edges twice."""
    rng = np.random.default_rng(3)
    rows = [(k, (k + 7) % NUM_THINGS, "one") for k in range(NUM_THINGS)]
    rows += [(k // 6, k, "fan") for k in range(NUM_THINGS)]
    rows += [(k, k % 5, "sink") for k in range(NUM_THINGS)]
    rows += [(a, b, "many") for a, b in rng.integers(0, NUM_THINGS, (240, 2)).tolist()]
    splits = rng.choice(["train", "valid", "test"], len(rows), p=[0.7, 0.1, 0.2])
    chunks = []
    for split in ("train", "valid", "test"):
        some = [row for row, own in zip(rows, splits, strict=True) if own == split]
        some += some[:7] if split == "train" else rows[:3]  # repeated, in two splits too
        chunks.append(
            edge_chunk(
                [(f"t{a}", f"t{b}") for a, b, _ in some],
                FACT,
                split,
                relation=pa.array([name for *_, name in some]),
            )
        )
    return chunks


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Embeddings]:
    """Return one model over the same facts in several layouts."""
    rows = np.random.default_rng(0).normal(size=(NUM_THINGS, 8)).astype(np.float32)
    rows[40:50] = rows[10:20]
    found = []
    for number, (partitions, order) in enumerate(
        ((1, "auto"), (3, "original"), (4, "rcm"))
    ):
        folder = tmp_path_factory.mktemp("facts")
        ingest(
            ListSource(facts()[:: -1 if number == 2 else 1]),
            folder / "graph",
            partitions=partitions,
            order=order,
        )
        graph = Graph(folder / "graph")
        config = EmbeddingConfig(dim=8, epochs=1, operator="diagonal")
        train(graph, config, folder / "run")
        numbers = [int(key[1:]) for key in graph.node_ids("thing").to_pylist()]
        offsets, names = graph.offsets("thing"), graph.relations(FACT)
        assert names is not None
        for name in Embeddings(folder / "run").state.files:
            if name.startswith("rows/"):
                part = int(name.rsplit("part-")[1].split(".")[0])
                own = rows[numbers[offsets[part] : offsets[part + 1]]]
                np.save(folder / "run" / name, own)
            if name.startswith("relations/"):
                table = np.load(folder / "run" / name)
                values = [np.full(8, len(relation) / 4, np.float32) for relation in names]
                table[0] = np.concatenate(values)
                np.save(folder / "run" / name, table)
        reseal(folder / "run")
        found.append(Embeddings(folder / "run"))
    return found


def near(found: dict[str, Any], asked: list[Any]) -> None:
    for name, value in means(asked).items():
        assert found[name] == pytest.approx(value), name


def test_breakdowns_equal_plain_python(runs: list[Embeddings]) -> None:
    found = evaluate(runs[1])["metrics"]
    asked = ask_all(runs[1], "test")
    near(found, asked)
    assert found["num_queries"] == len(asked)
    assert found["candidates"] == "all"
    for side in ("head", "tail"):
        near(found[side], [one for one in asked if one.side == side])
    by_relation, by_degree = defaultdict(list), defaultdict(list)
    for one in asked:
        by_relation[one.relation].append(one)
        low = 2 ** (one.degree.bit_length() - 1) if one.degree else 0
        name = str(low) if low < 2 else f"{low}-{2 * low - 1}"
        by_degree[name].append(one)
    for key, groups in (("by_relation", by_relation), ("by_degree", by_degree)):
        assert set(found[key]) == set(groups)
        for name, group in groups.items():
            near(found[key][name], group)
            assert found[key][name]["num_queries"] == len(group)


def test_categories_are_those_of_bordes(runs: list[Embeddings]) -> None:
    wanted = {"one": "1-1", "fan": "1-n", "sink": "n-1", "many": "n-n"}
    for run in runs:
        (model,) = run.model
        names = relation_categories(run.graph, model)
        assert dict(zip(model.relations, names, strict=True)) == wanted
    found = evaluate(runs[1])["metrics"]["by_category"]
    asked = ask_all(runs[1], "test")
    assert list(found) == ["1-1", "1-n", "n-1", "n-n"]
    for relation, name in wanted.items():
        group = [one for one in asked if one.relation == relation]
        near(found[name], group)
        for side in ("head", "tail"):
            near(found[name][side], [one for one in group if one.side == side])


def test_repeated_edges_do_not_change_a_category(tmp_path: Path) -> None:
    chunk = edge_chunk([(k % 3, k % 3 + 10) for k in range(12)])
    again = edge_chunk([(k, k + 10) for k in range(3)], split="test")
    with pytest.warns(UserWarning, match="9 of the 15 edges of 'edge' repeat another"):
        ingest(ListSource([chunk, again]), tmp_path / "graph")
    train(Graph(tmp_path / "graph"), EmbeddingConfig(dim=2, epochs=1), tmp_path / "run")
    run = Embeddings(tmp_path / "run")
    assert relation_categories(run.graph, run.model[0]) == ["1-1"]


def test_an_undirected_relation_has_equal_sides(tmp_path: Path) -> None:
    star = ListSource([edge_chunk([(0, k) for k in range(1, 9)])], is_directed=False)
    ingest(star, tmp_path / "graph", partitions=2)
    train(Graph(tmp_path / "graph"), EmbeddingConfig(dim=2, epochs=1), tmp_path / "run")
    run = Embeddings(tmp_path / "run")
    # 16 directed pairs over 9 nodes: 1.8 on average
    assert relation_categories(run.graph, run.model[0]) == ["n-n"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"candidates": 20},
        {"candidates": 20, "draw": "degree", "seed": 5},
        {"queries": 60, "seed": 1},
        {"queries": 40, "candidates": 7},
    ],
)
def test_no_layout_thread_or_block_changes_a_number(
    runs: list[Embeddings], monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    wanted = evaluate(runs[0], threads=1, **asked)
    assert evaluate(runs[1], threads=2, **asked) == wanted
    monkeypatch.setattr("graphsys.embedding.rows.batch_memory._CANDIDATES", 7)
    monkeypatch.setattr("graphsys.embedding.evaluation.ranking._QUERY_BLOCK", 5)
    monkeypatch.setattr("graphsys.embedding.data.filtered_queries._BATCH", 11)
    monkeypatch.setattr("graphsys.embedding.data.filtered_queries._PAIRS", 9)
    monkeypatch.setattr("graphsys.embedding.data.edge_stream._PIECE", 4)
    monkeypatch.setattr("graphsys.embedding.data.relation_stats._PIECE", 3)
    assert evaluate(runs[2], threads=2, **asked) == wanted


def test_a_sample_of_everything_is_everything(runs: list[Embeddings]) -> None:
    everything = evaluate(runs[1])["metrics"]
    found = evaluate(runs[1], candidates=10 * NUM_THINGS)["metrics"]
    for key in set(everything) - {"candidates", "confidence"}:
        assert found[key] == everything[key], key
    assert found["candidates"] == {"num": 600, "draw": "uniform", "seed": 0}
    assert evaluate(runs[1], queries=10**6) == evaluate(runs[1])


@pytest.mark.parametrize("comparator", ["dot", "l2", "cos"])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_ranks_within_a_sample_equal_plain_python(
    shop: Graph, tmp_path: Path, comparator: Any, reciprocal: bool
) -> None:
    config = EmbeddingConfig(
        dim=6,
        epochs=1,
        init_scale=1.0,
        operator="linear",
        operator_init="random",
        comparator=comparator,
        reciprocal=reciprocal,
    )
    train(shop, config, tmp_path / "run")
    run = Embeddings(tmp_path / "run")
    pools = {"user": [3, 4, 11, 20, 29], "item": [0, 2, 5, 19]}
    asked = ask_all(run, "test", pools)
    (edges,) = held_out_edges(run.graph, run.model[:1], "test")
    for side, node_type in (("tail", "item"), ("head", "user")):
        ranks = rank_edges(
            Scorer(run, run.model[0], side == "tail"),
            edges,
            samples=[np.array(pools[node_type])],
            threads=1,
            progress=SILENT,
        )
        wanted = [one for one in asked if one.side == side]
        for field in ("filtered", "raw"):
            found = np.sort(getattr(ranks, field))
            assert found.tolist() == sorted(getattr(one, field) for one in wanted)


def test_samples_follow_their_distribution(runs: list[Embeddings]) -> None:
    """Chi-squared over 4000 draws of one node; p < 1e-4 would fail."""
    graph, model = runs[1].graph, runs[1].model
    degrees = np.concatenate([training_degrees(graph, model, "thing", p) for p in range(3)])
    (relations,) = model
    ends = [e for s, _, d in triples(graph, relations.edge_type, "train") for e in (s, d)]
    assert degrees.tolist() == np.bincount(ends, minlength=NUM_THINGS).tolist()
    for draw, weights in (("uniform", np.ones(NUM_THINGS)), ("degree", degrees)):
        drawn = draw_candidates(graph, model, "thing", 1, 4000, draw=draw)  # type: ignore[arg-type]
        counts = np.bincount(np.concatenate(drawn), minlength=NUM_THINGS)
        expected = 4000 * weights / weights.sum()
        assert not counts[expected == 0].any()
        some = expected > 0
        assert scipy.stats.chisquare(counts[some], expected[some]).pvalue > 1e-4
        (larger,) = draw_candidates(graph, model, "thing", 25, 1, draw=draw)  # type: ignore[arg-type]
        assert len(set(larger.tolist())) == 25


def test_auc_equals_torchmetrics(runs: list[Embeddings]) -> None:
    rng = np.random.default_rng(0)
    positive = rng.integers(0, 40, 300) / 8  # ties
    negative = np.append(rng.integers(-10, 30, 200) / 8, np.nan)
    wanted = binary_auroc(
        torch.tensor(np.concatenate([positive, negative[:-1]])),
        torch.tensor([1] * 300 + [0] * 200),
        thresholds=None,
    )
    # torchmetrics squashes scores outside 0..1 by a sigmoid, in float32
    assert metrics.roc_auc(positive, negative) == pytest.approx(float(wanted), abs=1e-3)
    assert metrics.roc_auc(positive, np.array([np.nan])) is None
    found = evaluate(runs[1])["metrics"]["roc_auc"]
    asked = ask_all(runs[1], "test")
    own = np.array([one.positive for one in asked])
    expected = np.mean([np.mean(own[:, None] > np.array(one.wrong)) for one in asked])
    assert found == pytest.approx(expected, abs=0.06)  # one wrong answer of about 50 each


def test_wrong_answers_are_wrong(runs: list[Embeddings]) -> None:
    run = runs[1]
    edges, asked = held_out_edges(run.graph, run.model, "test")[0], ask_all(run, "test")
    for side in ("head", "tail"):
        ranks = rank_edges(
            Scorer(run, run.model[0], side == "tail"),
            edges,
            negatives=[np.arange(NUM_THINGS)],
            threads=1,
            progress=SILENT,
        )
        wanted = [one for one in asked if one.side == side]
        own = sorted(one.positive for one in wanted)
        np.testing.assert_allclose(np.sort(ranks.positive), own, rtol=1e-5, atol=1e-6)
        possible = np.unique(np.concatenate([one.wrong for one in wanted]))
        gap = np.abs(possible[:, None] - ranks.negative).min(axis=0)
        assert gap.max() < 1e-5


def test_an_interval_of_independent_queries_is_students() -> None:
    ranks = np.random.default_rng(0).integers(1, 50, 80).astype(np.float64)
    found = metrics.intervals(ranks, np.arange(80))
    for name, values in (("mrr", 1 / ranks), ("hits@3", ranks <= 3)):
        error = scipy.stats.sem(values)
        wanted = scipy.stats.t.interval(0.95, 79, np.mean(values), error)
        assert found[name] == pytest.approx(wanted)
    assert metrics.intervals(ranks, np.zeros(80, dtype=np.int64))["mrr"] is None


def test_an_interval_of_clusters_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(32), 20)
    hits = 0
    for _ in range(400):
        share = np.repeat(rng.choice([0.2, 0.6], 32), 20)  # what a cluster has in common
        ranks = np.where(rng.random(640) < share, 1.0, 20.0)
        low, high = metrics.intervals(ranks, clusters)["hits@1"]
        hits += low <= 0.4 <= high
    assert 0.92 <= hits / 400 <= 0.98


def test_intervals_of_sampled_queries_cover_the_whole(runs: list[Embeddings]) -> None:
    whole = evaluate(runs[0], breakdown=False)["metrics"]["mrr"]
    bounds = [
        evaluate(runs[0], queries=60, seed=seed)["metrics"]["confidence"]["mrr"]
        for seed in range(40)
    ]
    assert len({low for low, _ in bounds}) > 30
    assert sum(low <= whole <= high for low, high in bounds) >= 34


def test_wrong_counts_are_errors(runs: list[Embeddings]) -> None:
    with pytest.raises(ConfigError, match="candidates: got 0, expected an int >= 1"):
        evaluate(runs[0], candidates=0)
    with pytest.raises(ConfigError, match="queries: got 1, expected an int >= 2"):
        evaluate(runs[0], queries=1)
    with pytest.raises(
        ConfigError, match="draw: got 'deg', expected one of uniform, degree"
    ):
        evaluate(runs[0], candidates=5, draw="deg")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Return a graph of 1.5 million edges in one partition."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("large") / "graph"
    chunks = []
    for split, size in (("train", 1_500_000), ("test", 2_000)):
        ends = rng.integers(0, 20_000, (2, size))
        ends[1] = ends[1] ** 2 // 20_000  # some nodes are known answers very often
        chunks.append(_arrays(ends, split))
    ingest(ListSource(chunks), folder)
    return Graph(folder)


def _arrays(ends: np.ndarray[Any, Any], split: str) -> Any:
    return EdgeChunk(src=ends[0], dst=ends[1], split=split)


def test_known_answers_take_bounded_memory(
    large: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphsys.embedding.data.filtered_queries._PAIRS", 1 << 14)
    monkeypatch.setattr("graphsys.embedding.data.filtered_queries._BATCH", 1 << 10)
    monkeypatch.setattr("graphsys.embedding.data.edge_stream._PIECE", 1 << 14)
    model = relation_sets(large, EmbeddingConfig())
    (edges,) = held_out_edges(large, model, "test", most=500)
    tracemalloc.start()
    total = longest = 0
    for queries in held_out_queries(large, edges, asks_for_dst=False):
        total += int((queries.known_end - queries.known_begin).sum())
        longest = max(longest, len(queries.known))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total > 100_000
    assert longest < 40_000
    # all edges as (node, relation, answer) would be 36 MB
    assert peak < 6e6


MakeRing = Callable[[int], Graph]


def test_a_run_evaluates_while_it_trains_without_the_breakdown(
    make_ring: MakeRing, tmp_path: Path
) -> None:
    config = EmbeddingConfig(dim=8, epochs=2, eval_every=1)
    report = train(make_ring(2), config, tmp_path / "run")
    mrr = evaluate(tmp_path / "run", split="valid", breakdown=False)["metrics"]
    assert set(mrr) == {"mrr", "mr", "hits@1", "hits@3", "hits@10", "unfiltered"}
    assert report.metrics["valid_mrr"][-1] == [2, mrr["mrr"]]


def test_nodes_and_relations_without_a_training_edge_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = [(f"t{k}", "one", f"t{k + 1}") for k in range(6)]
    odd = [("t0", "one", "new"), ("new", "one", "t2"), ("t1", "other", "t2")]
    splits = {"train": known[:-1], "test": [*odd, ("t5", "one", "t0")]}
    write(tmp_path / "graph", splits)
    config = EmbeddingConfig(dim=4, epochs=1, init_scale=1.0)
    with Graph(tmp_path / "graph") as graph:
        train(graph, config, tmp_path / "run")
    found = evaluate(tmp_path / "run")["metrics"]["untrained"]
    assert found == {"nodes": 1, "relations": 1, "edges": 3}
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    assert "1 nodes and 1 relations of test have no training edge; 3 of its edges" in (
        capsys.readouterr().err
    )
