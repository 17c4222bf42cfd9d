"""LightGCN and recommendations: against formulas written out, and whether it learns."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.gnn import GnnConfig
from graphsys.gnn.data.positive_pairs import make_pairs, read_pairs
from graphsys.gnn.layerwise_inference import whole_input
from graphsys.gnn.tasks.link_prediction import LinkPrediction, Recommendation
from graphsys.gnn.tasks.link_ranking import recommend_pairs
from graphsys.gnn.tasks.pair_losses import pair_loss
from graphsys.gnn.training.api import build_context
from graphsys.storage import Graph
from tests.unit.gnn.training.test_api import StopAfter, StoppedError, are_equal, weights_of


def config_of(**changes: Any) -> GnnConfig:
    settings: dict[str, Any] = {
        "task": "recommendation",
        "model": "lightgcn",
        "loss": "bpr",
        "dim": 8,
        "negatives_of": "pair",
        "num_negatives": 1,
        "batch_size": 40,
        "epochs": 40,
        "lr": 0.02,
        "layers": 3,
        "threads": 1,
        "features": (),
    }
    return GnnConfig(**{**settings, **changes})


@pytest.fixture
def ratings(library: Graph, tmp_path: Path) -> Graph:
    """Return the library without features of books: all rows are learned."""
    from graphsys.core.types import EdgeType
    from graphsys.storage import NodeChunk
    from tests.stores import edge_chunk, make_store

    reads = EdgeType("reader", "reads", "book")
    splits = {name: read_pairs(library, "reads", name) for name in ("train", "valid")}
    splits["test"] = read_pairs(library, "reads", "test")
    make_store(
        tmp_path / "ratings",
        NodeChunk(ids=np.arange(24), node_type="book"),
        NodeChunk(ids=np.arange(30), node_type="reader"),
        *(edge_chunk(pairs.tolist(), reads, name) for name, pairs in splits.items()),
    )
    return Graph(tmp_path / "ratings")


def test_lightgcn_is_the_mean_of_its_layers(ratings: Graph) -> None:
    context = build_context(ratings, config_of())
    pairs = read_pairs(ratings, "reads")
    a = torch.zeros(54, 54, dtype=torch.float64)
    a[pairs[:, 0], 30 + pairs[:, 1]] = 1
    a += a.T.clone()
    scale = a.sum(dim=1).clamp(min=1).rsqrt()
    a = scale[:, None] * a * scale
    tables: Any = {name: table.weight for name, table in context.network.learned.items()}
    x = torch.cat([tables["reader"], tables["book"]]).double().detach().requires_grad_()
    wanted = (x + a @ x + a @ a @ x + a @ a @ a @ x) / 4
    numbers = {"reader": np.arange(30), "book": np.arange(24)}
    given = whole_input(context.network.config, context.features.gather(numbers))
    found = context.network([context.message_graph.whole()] * 3, given)
    both = torch.cat([found["reader"], found["book"]])
    assert torch.allclose(both.double(), wanted, atol=1e-6)
    weights = torch.randn(54, 8, dtype=torch.float64)
    (both * weights).sum().backward()  # type: ignore[no-untyped-call]
    (wanted * weights).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert torch.allclose(tables["reader"].grad.double(), x.grad[:30], atol=1e-6)


def test_lightgcn_learns_and_resumes_bit_by_bit(ratings: Graph, tmp_path: Path) -> None:
    config = config_of(
        deterministic=True, checkpoint_seconds=0, row_decay=1e-4, eval_every=10
    )
    report = gnn.train(ratings, config, tmp_path / "whole")
    assert report.metrics["valid_recall@20"] > 0.9
    found = gnn.evaluate(tmp_path / "whole")["metrics"]
    # 5 of 17 unread books are of the reader's taste: chance is .36
    assert found["ndcg@20"] > 0.5
    assert found["num_sources"] <= 30
    with pytest.raises(StoppedError):
        gnn.train(ratings, config, tmp_path / "run", progress=StopAfter(8))
    gnn.train(ratings, None, tmp_path / "run", resume=True)
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))
    history = gnn.open_run(tmp_path / "run").state.history
    assert [int(row[0]) for row in history] == [10, 20, 30, 40]
    assert all(a[4] < b[4] for a, b in pairwise(history))


def test_recommendations_are_those_of_plain_python(library: Graph) -> None:
    pairs = make_pairs(library, config_of())
    generator = torch.Generator().manual_seed(0)
    rows = {
        "reader": torch.randn(30, 3, generator=generator),
        "book": torch.randn(24, 3, generator=generator),
    }
    found = recommend_pairs(library, pairs, "test", lambda name, nodes: rows[name][nodes])
    scores = rows["reader"] @ rows["book"].T
    train = {(int(s), int(d)) for s, d in read_pairs(library, "reads")}
    test = read_pairs(library, "reads", "test").tolist()
    recalls, gains = [], []
    for s in sorted({s for s, _ in test}):
        wanted = {d for a, d in test if a == s}
        best = [
            d for d in scores[s].argsort(descending=True).tolist() if (s, d) not in train
        ]
        hits = [d in wanted for d in best[:20]]
        recalls.append(sum(hits) / len(wanted))
        ideal = sum(1 / np.log2(k + 2) for k in range(len(wanted)))
        gains.append(sum(hit / np.log2(k + 2) for k, hit in enumerate(hits)) / ideal)
    assert found["recall@20"] == pytest.approx(np.mean(recalls))
    assert found["ndcg@20"] == pytest.approx(np.mean(gains))
    assert found["num_sources"] == len(recalls)


def test_own_negatives_are_no_known_answers(library: Graph) -> None:
    task = LinkPrediction(library, config_of(num_negatives=3))
    known = set(map(tuple, read_pairs(library, "reads").tolist()))
    seeds = task.seeds(0)[0]
    assert len(seeds["reader"]) == 40
    assert len(seeds["book"]) == 40 + 3 * 40
    queries = np.repeat(seeds["reader"], 3).tolist()
    drawn = set(zip(queries, seeds["book"][40:].tolist(), strict=True))
    assert not drawn & known


def test_losses_of_pairs_are_their_formulas(library: Graph) -> None:
    positive, negative = torch.tensor([[1.0], [0.0]]), torch.tensor([[0.5, -1], [2.0, 0.1]])
    gaps = np.array([1 - 0.5, 1 + 1, 0 - 2, 0 - 0.1])
    found = pair_loss(config_of(loss="bpr"), positive, negative).item()
    assert found == pytest.approx(-np.log(1 / (1 + np.exp(-gaps))).mean(), rel=1e-5)
    chances = [np.e / (np.e + np.exp(0.5) + np.exp(-1)), 1 / (1 + np.exp(2) + np.exp(0.1))]
    found = pair_loss(config_of(loss="softmax"), positive, negative).item()
    assert found == pytest.approx(-np.log(chances).mean(), rel=1e-5)
    # the loss of a batch compares each pair with its own negatives
    task = LinkPrediction(library, config_of(batch_size=2, num_negatives=2))
    task.seeds(0)
    query, book = (
        torch.tensor([[1.0], [2.0]]),
        torch.tensor([[1.0], [2], [3], [4], [5], [6]]),
    )
    from tests.unit.gnn.tasks.test_link_prediction import gnn_batch

    batch = gnn_batch({}, {"reader": torch.arange(2), "book": torch.arange(6)})
    gaps = np.array([1 - 3, 1 - 4, 4 - 10, 4 - 12])
    found = task.loss({"reader": query, "book": book}, batch).item()
    assert found == pytest.approx(np.log1p(np.exp(-gaps)).mean(), rel=1e-5)


def test_row_penalty_is_half_the_mean_square(ratings: Graph) -> None:
    network = build_context(ratings, config_of(row_decay=0.1)).network
    network.embed({"reader": torch.tensor([3, 1]), "book": torch.tensor([5, 2])})
    places = {"reader": torch.tensor([0, 0]), "book": torch.tensor([0])}
    tables: Any = network.learned
    rows = [tables[n].weight[k] for n, k in (("reader", 3), ("book", 5))]
    wanted = (2 * rows[0].square().sum() + rows[1].square().sum()) / 2 / 3
    assert torch.allclose(network.row_penalty(places), wanted)


def test_lightgcn_does_not_classify() -> None:
    with pytest.raises(ConfigError, match="got node_classification with model lightgcn"):
        GnnConfig(model="lightgcn")


def test_pinsage_recommends_to_readers_by_the_mean_of_what_they_read(
    ratings: Graph, tmp_path: Path
) -> None:
    config = config_of(
        model="pinsage",
        positives="walks",
        node_type="book",
        loss="softmax",
        negatives_of="batch",
        num_negatives=8,
        layers=1,
        fanouts=(5,),
        num_walks=10,
        walk_length=2,
        epochs=30,
        eval_every=10,
        threads=1,
        eval_split="test",
        keep="last",
    )
    report = gnn.train(ratings, config, tmp_path / "run")
    found = gnn.evaluate(tmp_path / "run", graph=ratings)["metrics"]
    assert found["recall@20"] == pytest.approx(report.metrics["valid_recall@20"])
    rows = gnn.open_run(tmp_path / "run", graph=ratings).output()
    test = read_pairs(ratings, "reads", "test")
    train = read_pairs(ratings, "reads")
    recalls = []
    for reader in np.unique(test[:, 0]):
        read = train[train[:, 0] == reader, 1]
        scores = rows @ (rows[read].mean(axis=0) if len(read) else np.zeros(8))
        scores[read] = -np.inf
        wanted = test[test[:, 0] == reader, 1]
        recalls.append(np.isin(wanted, np.argsort(-scores)[:20]).mean())
    assert found["recall@20"] == pytest.approx(np.mean(recalls), abs=0.02)
    assert found["num_candidates"] == 24


def test_link_prediction_on_walks_over_another_type_ranks_its_nodes(
    ratings: Graph,
) -> None:
    config = config_of(
        task="link_prediction",
        model="pinsage",
        positives="walks",
        node_type="book",
        negatives_of="batch",
        num_negatives=8,
    )
    task = LinkPrediction(ratings, config)
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(24, 8))).float()
    found = task.measure("test", lambda _, nodes: rows[nodes])
    assert 0 < found["mrr"] <= 1
    as_lists = Recommendation(ratings, replace(config, task="recommendation"))
    same = as_lists.measure("test", lambda _, nodes: rows[nodes])
    assert found["recall@20"] == same["recall@20"]


@pytest.mark.parametrize("known", ["drop", "mark", "keep"])
@pytest.mark.parametrize("model", ["lightgcn", "pinsage"])
def test_readers_are_told_books_that_they_have_not_read(
    ratings: Graph, tmp_path: Path, model: str, known: Any
) -> None:
    of_walks: dict[str, Any] = {
        "positives": "walks",
        "node_type": "book",
        "layers": 1,
        "fanouts": (5,),
        "num_walks": 10,
        "walk_length": 2,
        "negatives_of": "batch",
        "num_negatives": 8,
    }
    config = config_of(
        model=model,
        epochs=2,
        eval_every=0,
        keep="last",
        **(of_walks if model == "pinsage" else {}),
    )
    gnn.train(ratings, config, tmp_path / "run")
    run = gnn.open_run(tmp_path / "run", graph=ratings)
    gnn.export(run, tmp_path / "rows.safetensors")
    rows = safetensors.torch.load_file(tmp_path / "rows.safetensors")
    assert {name: tuple(it.shape) for name, it in rows.items()} == {
        "book": (24, 8),
        "reader": (30, 8),
    }
    scores = (rows["reader"] @ rows["book"].T).double().numpy()
    read = {
        (int(s), int(d))
        for split in ("train", "valid", "test")
        for s, d in read_pairs(ratings, "reads", split)
    }
    found = gnn.recommend(run, [7, 3], k=5, known=known).to_pydict()
    assert found["query"] == [0] * 5 + [1] * 5
    assert found["rank"] == [1, 2, 3, 4, 5] * 2
    assert set(found["relation"]) == {"reads"}
    for place, reader in enumerate((7, 3)):
        books = [b for b in range(24) if known != "drop" or (reader, b) not in read]
        best = sorted(books, key=lambda b: (-scores[reader, b], b))[:5]
        some = slice(5 * place, 5 * place + 5)
        assert found["head"][some] == [reader] * 5
        np.testing.assert_allclose(found["score"][some], scores[reader, best], rtol=1e-5)
        told = found["tail"][some]
        np.testing.assert_allclose(scores[reader, told], scores[reader, best], rtol=1e-5)
        if known == "mark":
            assert found["known"][some] == [(reader, b) in read for b in told]
    assert ("known" in found) == (known == "mark")
    whole = gnn.recommend(run, k=24, known="drop")
    answers = zip(whole["head"].to_pylist(), whole["tail"].to_pylist(), strict=True)
    assert set(answers) == {(s, d) for s in range(30) for d in range(24)} - read


def test_nearest_rows_are_those_of_the_largest_cosine(
    ratings: Graph, tmp_path: Path
) -> None:
    gnn.train(ratings, config_of(epochs=2, eval_every=0, keep="last"), tmp_path / "run")
    run = gnn.open_run(tmp_path / "run", graph=ratings)
    for node_type, size in (("book", 24), ("reader", 30)):
        rows = run.output(node_type=node_type)
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        cosine = unit @ unit[5]
        cosine[5] = -2
        found = gnn.nearest(run, 5, 4, node_type=node_type).to_pydict()
        assert found["id"] == np.argsort(-cosine)[:4].tolist()
        assert found["score"] == pytest.approx(np.sort(cosine)[::-1][:4])
        assert len(gnn.nearest(run, 5, 99, node_type=node_type)) == size - 1
    with pytest.raises(ConfigError, match=r"of several types \(reader, book\)"):
        gnn.nearest(run, 5)
    with pytest.raises(ConfigError, match="k: got 0"):
        gnn.nearest(run, 5, 0, node_type="book")
    with pytest.raises(ConfigError, match="known: got 'some'"):
        gnn.recommend(run, known="some")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="k: got 0"):
        gnn.recommend(run, k=0)
