"""Ranks and recommendations of given rows, and classes of given scores, in plain Python."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.types import EdgeType
from graphsys.gnn import evaluate
from graphsys.gnn.data.positive_pairs import make_pairs, read_pairs
from graphsys.gnn.inference.trained_model import OpenedRun
from graphsys.gnn.tasks.link_prediction import LinkPrediction, Recommendation
from graphsys.gnn.tasks.link_ranking import rank_pairs, read_ends, recommend_pairs
from graphsys.gnn.tasks.task import NodeClassification, class_metrics
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.tasks.test_link_prediction import config_of
from tests.unit.gnn.tasks.test_task import area_of

READS = EdgeType("reader", "reads", "book")
SIZES = {"reader": 9, "book": 26, "node": 14}


@pytest.fixture(params=["books", "directed", "undirected"])
def graph(tmp_path: Path, request: pytest.FixtureRequest) -> Graph:
    """Return edges of two types of nodes, or of one, in three splits."""
    rng = np.random.default_rng(8)
    kind = READS if request.param == "books" else EdgeType("node", "edge", "node")
    num_src, num_dst = SIZES[kind.src_type], SIZES[kind.dst_type]
    every = [(s, d) for s in range(num_src) for d in range(num_dst) if s != d]
    if request.param == "undirected":
        every = [(s, d) for s, d in every if s < d]
    pairs = [every[k] for k in rng.permutation(len(every))[:75]]
    train, rest = pairs[:40], pairs[40:]
    src, dst = map(set, zip(*train, strict=True))
    valid = [(s, d) for s, d in rest if s in src and d in dst][:12]
    test = [pair for pair in rest if pair not in valid]
    types = dict.fromkeys((kind.src_type, kind.dst_type))
    make_store(
        tmp_path / "g",
        *(NodeChunk(ids=np.arange(SIZES[name]), node_type=name) for name in types),
        edge_chunk(train, kind),
        edge_chunk(valid, kind, "valid"),
        edge_chunk(test, kind, "test"),
        is_directed=request.param != "undirected",
        order="original",
    )
    return Graph(tmp_path / "g")


@pytest.fixture(autouse=True, params=[256, 5])
def at_a_time(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr("graphsys.gnn.tasks.link_ranking._AT_A_TIME", request.param)


def rows_of(kind: str = "whole") -> Any:
    """Return rows of small whole numbers, which tie, or of any numbers."""
    rng = np.random.default_rng(2)
    rows = {
        name: torch.from_numpy(
            rng.integers(-2, 3, (size, 2))
            if kind == "whole"
            else rng.normal(size=(size, 3))
        ).float()
        for name, size in SIZES.items()
    }

    def output(node_type: str, nodes: Any) -> torch.Tensor:
        return rows[node_type][nodes]

    return rows, output


def edges_of(graph: Graph, name: str, *splits: str) -> list[tuple[int, int]]:
    return [(int(s), int(d)) for it in splits for s, d in read_pairs(graph, name, it)]


def setting(graph: Graph) -> tuple[str, Any, Any, Any, set[tuple[int, int]]]:
    """Return the edge type, pairs, scores of all pairs, and what output and train are."""
    kind = graph.edge_types[0]
    name = graph.edge_type_name(kind)
    rows, output = rows_of()
    scores = (rows[kind.src_type] @ rows[kind.dst_type].T).numpy()
    return name, kind, scores, output, set(edges_of(graph, name, "train"))


def both_ways(graph: Graph, name: str, pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    if graph.is_directed_type(name):
        return pairs
    return pairs | {(d, s) for s, d in pairs}


def rank_of(scores: Any, own: float, places: list[int]) -> float:
    better = sum(scores[k] > own for k in places)
    equal = sum(scores[k] == own for k in places) - 1
    return float(1 + better + equal / 2)


def test_ranks_are_asked_for_both_ends_among_all_that_is_not_known(graph: Graph) -> None:
    name, _, scores, output, _ = setting(graph)
    known = both_ways(graph, name, set(edges_of(graph, name, "train", "valid", "test")))
    num_src, num_dst = scores.shape
    raw, filtered = [], []
    for s, d in edges_of(graph, name, "test"):
        own = scores[s, d]
        raw += [rank_of(scores[s], own, list(range(num_dst)))]
        raw += [rank_of(scores[:, d], own, list(range(num_src)))]
        tails = [t for t in range(num_dst) if t == d or (s, t) not in known]
        heads = [h for h in range(num_src) if h == s or (h, d) not in known]
        filtered += [rank_of(scores[s], own, tails), rank_of(scores[:, d], own, heads)]
    found = rank_pairs(graph, make_pairs(graph, config_of()), "test", output)
    for told, ranks in ((found, np.array(filtered)), (found["unfiltered"], np.array(raw))):
        assert told["mrr"] == pytest.approx((1 / ranks).mean())
        assert told["mr"] == pytest.approx(ranks.mean())
        hits = {key: value for key, value in told.items() if key.startswith("hits")}
        assert hits == {f"hits@{k}": pytest.approx((ranks <= k).mean()) for k in (1, 3, 10)}
    assert (found["num_edges"], found["num_candidates"]) == (23, num_dst)


def recommended(scores: Any, train: set[Any], wanted: list[Any], num: int = 20) -> Any:
    """Return recall and NDCG of the best of each source, known ones left out."""
    recalls, gains = [], []
    for s in sorted({s for s, _ in wanted}):
        own = {d for a, d in wanted if a == s}
        order = sorted(range(scores.shape[1]), key=lambda d: (-scores[s, d], d))
        best = [d for d in order if (s, d) not in train] + [-1] * scores.shape[1]
        hits = [d in own for d in best[: min(num, scores.shape[1])]]
        recalls.append(sum(hits) / len(own))
        ideal = sum(1 / np.log2(k + 2) for k in range(min(len(own), num)))
        gains.append(sum(hit / np.log2(k + 2) for k, hit in enumerate(hits)) / ideal)
    return pytest.approx((np.mean(recalls), np.mean(gains)))


@pytest.mark.parametrize("way", ["ranked", "recommended"])
@pytest.mark.parametrize("top", [20, 3])
def test_recommendations_are_the_best_that_are_not_of_train(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, way: str, top: int
) -> None:
    monkeypatch.setattr("graphsys.gnn.tasks.link_ranking.TOP", top)
    name, kind, _, _, train = setting(graph)
    rows, output = rows_of("normal")
    scores = (rows[kind.src_type] @ rows[kind.dst_type].T).numpy()
    wanted = edges_of(graph, name, "test")
    pairs = make_pairs(graph, config_of())
    call = rank_pairs if way == "ranked" else recommend_pairs
    found = call(graph, pairs, "test", output)
    told = found[f"recall@{top}"], found[f"ndcg@{top}"]
    assert told == recommended(scores, both_ways(graph, name, train), wanted, top)
    assert 0 < told[1] < 1
    if way == "recommended":
        assert found["num_sources"] == len({s for s, _ in wanted})
        assert (found["num_edges"], found["num_candidates"]) == (23, scores.shape[1])


@pytest.mark.parametrize("own", ["book", "reader"])
@pytest.mark.parametrize("graph", ["books"], indirect=True)
def test_a_source_without_rows_is_the_mean_of_its_neighbors_in_train(
    graph: Graph, own: str
) -> None:
    rows, output = rows_of("normal")
    config = config_of(positives="walks", node_type=own, task="recommendation")
    is_dst = own == "book"
    train, wanted = (
        [(s, d) if is_dst else (d, s) for s, d in edges_of(graph, "reads", split)]
        for split in ("train", "valid")
    )
    other = "reader" if is_dst else "book"
    means = np.zeros((SIZES[other], 3))
    for s in range(SIZES[other]):
        near = [rows[own][d].double().numpy() for a, d in train if a == s]
        means[s] = np.mean(near, axis=0) if near else 0
    assert is_dst or not means.any(axis=1).all()  # a book that nobody reads in train
    scores = means @ rows[own].double().numpy().T
    task = Recommendation(graph, config)
    score = task._score
    ends = read_ends(graph, task.pairs, output, score)
    src, dst = ends.src, ends.dst
    np.testing.assert_allclose(src.numpy(), means, rtol=1e-5, atol=1e-6)
    assert dst.tolist() == rows[own].tolist()
    found = task.measure("valid", output)
    found_recall = found["recall@20"]
    assert (found_recall, found["ndcg@20"]) == recommended(scores, set(train), wanted)
    assert found["num_sources"] == len({s for s, _ in wanted})
    assert (found["num_edges"], found["num_candidates"]) == (12, SIZES[own])
    ranked = rank_pairs(graph, task.pairs, "valid", output)
    known = {
        (s, d) if is_dst else (d, s)
        for split in ("train", "valid", "test")
        for s, d in edges_of(graph, "reads", split)
    }
    ranks = []
    for s, d in wanted:
        for line, own_place, others in (
            (scores[s], d, [e for e in range(SIZES[own]) if (s, e) not in known]),
            (scores[:, d], s, [e for e in range(SIZES[other]) if (e, d) not in known]),
        ):
            rest = line[others]
            better, equal = rest > line[own_place], rest == line[own_place]
            ranks.append(1 + better.sum() + equal.sum() / 2)
    assert ranked["mrr"] == pytest.approx((1 / np.array(ranks)).mean(), rel=1e-4)
    assert ranked["recall@20"] == found_recall


def test_a_split_that_is_not_there_is_named(graph: Graph) -> None:
    _, output = rows_of()
    pairs = make_pairs(graph, config_of())
    for call in (rank_pairs, recommend_pairs):
        with pytest.raises(UnknownNameError, match="unknown split 'dev'"):
            call(graph, pairs, "dev", output)


def f1_of(guess: Any, truth: Any) -> float:
    both = int((guess & truth).sum())
    return 2 * both / max(int(guess.sum() + truth.sum()), 1)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_one_class_a_node_is_measured_as_in_numpy(num_classes: int) -> None:
    rng = np.random.default_rng(num_classes)
    scores = rng.normal(size=(40, num_classes))
    truth = np.where(
        rng.random(40) < 0.5, scores.argmax(1), rng.integers(0, num_classes, 40)
    )
    found = class_metrics(torch.tensor(scores), torch.tensor(truth), is_multi=False)
    guess = scores.argmax(1)
    each = [f1_of(guess == k, truth == k) for k in range(num_classes)]
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    wanted = {
        "accuracy": (guess == truth).mean(),
        "f1_micro": (guess == truth).mean(),
        "f1_macro": np.mean(each),
        "loss": -np.log(chances[np.arange(40), truth]).mean(),
    }
    if num_classes == 2:
        wanted["roc_auc"] = area_of(truth == 1, scores[:, 1] - scores[:, 0])
    assert found == pytest.approx(wanted, rel=1e-5)


def test_several_classes_a_node_are_measured_as_in_numpy() -> None:
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(30, 3))
    truth = (scores + rng.normal(size=(30, 3))) > 0
    scores[0], truth[0] = 0, False  # an even chance is no yes
    target = torch.tensor(truth.astype(float))
    found = class_metrics(torch.tensor(scores), target, is_multi=True)
    guess = scores > 0
    wanted = {
        "accuracy": (guess == truth).all(1).mean(),
        "f1_micro": f1_of(guess, truth),
        "f1_macro": np.mean([f1_of(guess[:, k], truth[:, k]) for k in range(3)]),
        "roc_auc": np.mean([area_of(truth[:, k], scores[:, k]) for k in range(3)]),
        "loss": (np.logaddexp(0, scores) - truth * scores).mean(),
    }
    assert found == pytest.approx(wanted, rel=1e-5)
    assert 0 < found["accuracy"] < 1


class Opened(OpenedRun):
    """A run whose task and output are given."""

    def __init__(self, task: Any, *, is_same: bool = True) -> None:
        self.context = SimpleNamespace(task=task)  # type: ignore[assignment]
        self.budget = None
        self._is_same, self.asked = is_same, list[Any]()

    def require_same_graph(self) -> None:
        if not self._is_same:
            raise ConfigError("another graph")

    def output(self, nodes: Any = None, **options: Any) -> Any:
        self.asked.append(options.get("node_type"))
        name = options.get("node_type") or "node"
        return rows_of("normal")[0][name][nodes].numpy()


@pytest.mark.parametrize("graph", ["books"], indirect=True)
def test_links_are_measured_with_the_output_of_their_types(graph: Graph) -> None:
    task = LinkPrediction(graph, config_of())
    run = Opened(task)
    found = evaluate(run, split="valid")
    wanted = task.measure("valid", rows_of("normal")[1])
    assert found == {"split": "valid", "metrics": wanted}
    assert set(run.asked) == {"reader", "book"}
    with pytest.raises(ConfigError, match="another graph"):
        evaluate(Opened(task, is_same=False))


def test_nodes_of_a_split_are_measured_by_their_classes() -> None:
    nodes, classes = np.array([3, 5, 8, 9]), np.arange(14) % 3
    labels = SimpleNamespace(
        require={"test": nodes}.__getitem__, of=classes.__getitem__, is_multi=False
    )
    task = NodeClassification.__new__(NodeClassification)
    task.node_type, task.labels = "node", labels  # type: ignore[assignment]
    found = evaluate(Opened(task))
    scores = rows_of("normal")[0]["node"][nodes]
    wanted = class_metrics(scores, torch.tensor(classes[nodes]), is_multi=False)
    assert found == {"split": "test", "metrics": wanted | {"num_nodes": 4}}


def test_the_area_of_a_class_that_all_or_none_have_is_left_out() -> None:
    scores = torch.tensor([[1.0, -1.0], [0.5, 2.0], [3.0, 0.0]])
    same = torch.zeros(3, dtype=torch.int64)
    assert "roc_auc" not in class_metrics(scores, same, is_multi=False)
    truth = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    assert class_metrics(scores, truth, is_multi=True)["roc_auc"] == 1  # of the second
    assert "roc_auc" not in class_metrics(scores, torch.ones(3, 2), is_multi=True)
