"""Link prediction: ranks against plain Python, what a batch holds, what a network sees."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.types import EdgeType
from graphsys.gnn import GnnConfig
from graphsys.gnn.data.loader import Loader
from graphsys.gnn.data.message_graph import MessageGraph
from graphsys.gnn.data.positive_pairs import make_pairs, read_pairs, without_pairs
from graphsys.gnn.tasks.link_prediction import LinkPrediction
from graphsys.gnn.tasks.link_ranking import rank_pairs
from graphsys.gnn.tasks.pair_losses import pair_loss
from graphsys.gnn.training.api import build_context
from graphsys.gnn.training.step import Stepper
from graphsys.sampling import NeighborSampler, message_rows
from graphsys.sampling.adjacency import REVERSED
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.conftest import Store


def config_of(**changes: Any) -> GnnConfig:
    is_whole = changes.get("batch_size") == 0 or changes.get("model") == "lightgcn"
    settings: dict[str, Any] = {
        "task": "link_prediction",
        "dim": 16,
        "epochs": 8,
        "batch_size": 50,
        "lr": 0.02,
        "fanouts": () if is_whole else (5, 5),
        "num_negatives": 20,
        "threads": 1,
        "num_walks": 20,
    }
    return GnnConfig(**{**settings, **changes})


@pytest.fixture
def pins(tmp_path: Path) -> Graph:
    """Return 12 boards of 4 topics that hold 6 of 40 pins each, undirected."""
    rng = np.random.default_rng(0)
    pairs = [
        (b, int(p))
        for b in range(12)
        for p in rng.choice(np.arange(b % 4, 40, 4), 6, replace=False)
    ]
    x = rng.normal(0, 0.6, (40, 6)).astype(np.float32)
    x[np.arange(40), np.arange(40) % 4] += 1
    make_store(
        tmp_path / "pins",
        NodeChunk(ids=np.arange(12), node_type="board"),
        NodeChunk(ids=np.arange(40), node_type="pin", features={"x": x}),
        edge_chunk(pairs, EdgeType("board", "holds", "pin")),
        is_directed=False,
    )
    return Graph(tmp_path / "pins")


def test_p_keeps_pairs_of_walks_from_being_one_node_twice(pins: Graph) -> None:
    found = []
    for p in (1.0, 1e9, 1e-9):
        config = config_of(model="pinsage", positives="walks", walk_length=1, p=p)
        found.append(len(make_pairs(pins, config).epoch(0)))
    on_boards = len(np.unique(read_pairs(pins, "holds")[:, 1]))
    assert found[1] == on_boards > found[0] > found[2] == 0


def test_ranks_are_those_of_plain_python(library: Graph) -> None:
    config = config_of()
    pairs = make_pairs(library, config)
    generator = torch.Generator().manual_seed(0)
    rows = {
        "reader": torch.randint(-2, 3, (30, 3), generator=generator).float(),
        "book": torch.randint(-2, 3, (24, 3), generator=generator).float(),
    }
    found = rank_pairs(library, pairs, "test", lambda name, nodes: rows[name][nodes])
    known = {
        (int(s), int(d))
        for split in ("train", "valid", "test")
        for s, d in read_pairs(library, "reads", split)
    }
    scores = rows["reader"] @ rows["book"].T
    ranks = []
    for s, d in read_pairs(library, "reads", "test"):
        tails = [t for t in range(24) if t == d or (int(s), t) not in known]
        heads = [h for h in range(30) if h == s or (h, int(d)) not in known]
        for others, own in (
            (scores[s, tails], scores[s, d]),
            (scores[heads, d], scores[s, d]),
        ):
            better, equal = (others > own).sum().item(), (others == own).sum().item() - 1
            ranks.append(1 + better + equal / 2)
    assert found["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)))
    assert found["hits@10"] == pytest.approx(np.mean(np.array(ranks) <= 10))
    assert found["mr"] == pytest.approx(np.mean(ranks))
    assert found["unfiltered"]["mrr"] < found["mrr"]
    recalls = []
    for s in {int(s) for s, _ in read_pairs(library, "reads", "test")}:
        wanted = {int(d) for a, d in read_pairs(library, "reads", "test") if a == s}
        train = {int(d) for a, d in read_pairs(library, "reads") if a == s}
        order = [int(d) for d in torch.argsort(scores[s], descending=True, stable=True)]
        best = [d for d in order if d not in train][:20]
        recalls.append(len(wanted & set(best)) / len(wanted))
    # ties at the border may fall either way
    assert found["recall@20"] == pytest.approx(np.mean(recalls), abs=0.1)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "sage", "loss": "logistic"},
        {"model": "gcn", "negatives": "degree"},
        {"model": "sage", "batch_size": 0, "epochs": 60},
    ],
)
def test_links_of_readers_and_books_are_learned(
    library: Graph, tmp_path: Path, changes: dict[str, Any]
) -> None:
    report = gnn.train(library, config_of(**{"epochs": 25, **changes}), tmp_path / "run")
    found = gnn.evaluate(tmp_path / "run")
    assert found["split"] == "test"
    # books of the right taste are half of 24: chance is an MRR of about 0.16
    assert found["metrics"]["mrr"] > 0.25
    assert found["metrics"]["num_edges"] == 30
    assert "valid_mrr" in report.metrics
    table = gnn.predict(tmp_path / "run")
    assert table["embedding"][0].as_py().__len__() == 16


def test_batches_hold_ends_and_shared_negatives(library: Graph) -> None:
    task = LinkPrediction(library, config_of())
    batches = task.seeds(0)
    assert len(batches) == 4  # 200 edges
    seen = []
    for number in range(4):
        seeds = batches[number]
        assert len(seeds["reader"]) == 50
        assert len(seeds["book"]) == 50 + 20
        seen += list(
            zip(seeds["reader"].tolist(), seeds["book"][:50].tolist(), strict=True)
        )
    assert sorted(seen) == sorted(map(tuple, read_pairs(library, "reads").tolist()))
    again = task.seeds(0)[1]
    assert all((again[name] == batches[1][name]).all() for name in again)
    assert (task.seeds(1)[1]["reader"] != batches[1]["reader"]).any()


def test_the_batch_s_own_edges_are_hidden(library: Graph, groups: Store) -> None:
    sampler = NeighborSampler(message_rows(library), [-1, -1])
    pairs = read_pairs(library, "reads")[:40]
    sample = sampler.sample({"reader": pairs[:, 0], "book": pairs[:, 1]})
    hidden = {(int(s), int(d)) for s, d in pairs}
    layers = without_pairs(sample.layers, "reads", pairs[:, 0], pairs[:, 1])
    for before, after in zip(sample.layers, layers, strict=True):
        for name, block in after.items():
            rows = np.repeat(block.dst_nodes, np.diff(block.indptr))
            others = block.src_nodes[block.indices]
            ends = (others, rows) if name == "reads" else (rows, others)
            found = set(zip(*(part.tolist() for part in ends), strict=True))
            assert not found & hidden
            assert before[name].num_edges - block.num_edges <= len(hidden)
            assert block.edge is not None
            assert len(block.edge) == block.num_edges
    graph = groups(1)
    one = NeighborSampler(graph, [-1]).sample(np.arange(48))
    some = read_pairs(graph, "edge")[:9]
    block = without_pairs(one.layers, "edge", some[:, 0], some[:, 1], is_symmetric=True)[0][
        "edge"
    ]
    assert one.blocks[0].num_edges - block.num_edges == 2 * 9  # both directions


def edges_seen(layers: Any, name: str) -> set[tuple[int, int]]:
    """Return the edges in blocks, in the direction of the messages."""
    found = set()
    for layer in layers:
        if name in layer:
            block = layer[name]
            rows = np.repeat(block.dst_nodes, np.diff(block.indptr))
            others = block.src_nodes[block.indices]
            found |= set(zip(others.tolist(), rows.tolist(), strict=True))
    return found


@pytest.mark.parametrize("kind", ["library", "groups"])
def test_a_network_in_training_never_sees_the_edges_of_its_batch(
    library: Graph,
    groups: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """Whatever is left out, between the objective and the network: no label leaks."""
    graph = library if kind == "library" else groups(1)
    wrap, make, train_one = MessageGraph.wrap, Loader.make, Stepper.train
    shown: dict[int, Any] = {}
    trained, others = [], [0]

    def seen_wrap(self: MessageGraph, layers: Any) -> Any:
        shown[-1] = layers
        return wrap(self, layers)

    def seen_make(self: Loader, *arguments: Any, **keys: Any) -> Any:
        batch = make(self, *arguments, **keys)
        shown[id(batch.hops)] = shown.pop(-1)
        return batch

    def seen_train(self: Stepper, epoch: int, batch: Any, count: int) -> Any:
        layers = shown.pop(id(batch.hops))
        if kind == "library":
            src = batch.seeds["reader"]
            dst = batch.seeds["book"][: len(src)]
            found = edges_seen(layers, "reads")
            found |= {(d, s) for s, d in edges_seen(layers, "reads" + REVERSED)}
        else:  # sources, destinations, and 20 negatives of all
            both = batch.seeds["node"]
            src, dst = np.split(both[:-20], 2)
            found = edges_seen(layers, "edge")
            found |= {(d, s) for s, d in found}
        hidden = set(zip(src.tolist(), dst.tolist(), strict=True))
        assert hidden
        assert not hidden & found
        others[0] += len(found)
        trained.append(len(hidden))
        return train_one(self, epoch, batch, count)

    monkeypatch.setattr(MessageGraph, "wrap", seen_wrap)
    monkeypatch.setattr(Loader, "make", seen_make)
    monkeypatch.setattr(Stepper, "train", seen_train)
    config = config_of(epochs=2, eval_every=0, keep="last", prefetch=0, fanouts=(-1, -1))
    gnn.train(graph, config, tmp_path / "run")
    assert len(trained) >= 4
    assert others[0] > 0  # and other edges are there


def test_pinsage_learns_pins_of_one_topic(pins: Graph, tmp_path: Path) -> None:
    config = config_of(
        model="pinsage",
        positives="walks",
        walk_length=2,
        hard_negatives=2,
        hard_ranks=(5, 20),
        epochs=15,
        lr_warmup_epochs=1,
        lr_decay=0.95,
        batch_size=20,
    )
    gnn.train(pins, config, tmp_path / "run")
    table = gnn.predict(tmp_path / "run")
    rows = np.array(table["embedding"].to_pylist())
    topic = np.array(table["id"].to_pylist()) % 4
    scores = rows @ rows.T
    np.fill_diagonal(scores, -np.inf)
    best = np.argsort(-scores, axis=1)[:, :5]
    assert (topic[best] == topic[:, None]).mean() > 0.6  # chance: 0.23
    with pytest.raises(UnknownNameError, match="unknown split 'test'; known: train"):
        gnn.evaluate(tmp_path / "run")


def test_hard_negatives_follow_the_curriculum(pins: Graph) -> None:
    config = config_of(
        model="pinsage",
        positives="walks",
        hard_negatives=3,
        hard_ranks=(2, 6),
        batch_size=10,
    )
    task = LinkPrediction(pins, config)
    assert [task.num_hard(epoch) for epoch in range(6)] == [0, 1, 2, 3, 3, 3]
    assert len(task.seeds(0)[0]["pin"]) == 2 * 10 + 20
    seeds = task.seeds(2)[0]["pin"]
    assert len(seeds) == 2 * 10 + 20 + 2 * 10
    ranker = task._ranks
    assert ranker is not None
    indptr, ranked, _ = ranker.neighborhoods(seeds[:10], 4, skip=2)
    hard = seeds[40:].reshape(10, 2)
    for k in range(10):
        assert set(hard[k].tolist()) <= set(ranked[indptr[k] : indptr[k + 1]].tolist())


def test_margin_loss_is_the_paper_s(library: Graph) -> None:
    task = LinkPrediction(library, config_of(batch_size=3, num_negatives=2, margin=0.5))
    seeds = task.seeds(0)[0]
    q, i = torch.tensor([[1.0], [2.0], [0.0]]), torch.tensor([[1.0], [1.0], [3.0]])
    negatives = torch.tensor([[0.9], [2.0]])
    rows = {"reader": q, "book": torch.cat([i, negatives])}
    places = {"reader": torch.arange(3), "book": torch.arange(5)}
    batch = gnn_batch(seeds, places)
    expected = np.mean(
        [max(0, a * n - a * b + 0.5) for a, b in ((1, 1), (2, 1), (0, 3)) for n in (0.9, 2)]
    )
    assert task.loss(rows, batch).item() == pytest.approx(expected)


@pytest.mark.parametrize("loss", ["margin", "bpr", "softmax", "logistic"])
def test_the_batch_s_other_pairs_are_negatives(library: Graph, loss: Any) -> None:
    config = config_of(batch_size=3, num_negatives=0, in_batch=True, loss=loss)
    task = LinkPrediction(library, config)
    seeds = task.seeds(0)[0]
    assert len(seeds["book"]) == 3
    q = torch.tensor([[1.0], [2.0], [0.5]], requires_grad=True)
    rows = {"reader": q, "book": torch.tensor([[1.0], [3.0]])}
    places = {"reader": torch.arange(3), "book": torch.tensor([0, 1, 0])}
    found = task.loss(rows, gnn_batch(seeds, places))
    beaten = -1e9  # the pair's own book
    negative = torch.tensor([[beaten, 3, beaten], [2, beaten, 2], [beaten, 1.5, beaten]])
    positive = torch.tensor([[1.0], [6.0], [0.5]])
    assert found.item() == pytest.approx(pair_loss(config, positive, negative).item())
    found.backward()  # type: ignore[no-untyped-call]
    assert q.grad is not None
    assert torch.isfinite(q.grad).all()


def test_a_budget_tries_no_batch_without_negatives(library: Graph, tmp_path: Path) -> None:
    config = config_of(batch_size=32, num_negatives=0, in_batch=True, epochs=1)
    gnn.train(library, config, tmp_path / "run", memory="4GB")


def test_in_batch_negatives_need_shared_ones() -> None:
    with pytest.raises(ConfigError, match="in_batch: got true with model sage and neg"):
        config_of(in_batch=True, negatives_of="pair")
    with pytest.raises(ConfigError, match="in_batch: got true with batch_size 1 and num"):
        config_of(in_batch=True, num_negatives=0, batch_size=1)
    with pytest.raises(ConfigError, match="num_negatives: got 0, expected at least 1"):
        config_of(num_negatives=0)


def gnn_batch(seeds: Any, places: Any) -> Any:
    from graphsys.gnn.data.loader import Batch

    return Batch(number=0, seeds=seeds, places=places, hops=[], x={}, num_edges=0)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"edge_type": "likes"},
            UnknownNameError,
            "unknown edge type 'likes'; known: reads",
        ),
        ({"model": "pinsage"}, ConfigError, "model pinsage has rows for one node type"),
        (
            {"positives": "walks", "node_type": "shelf"},
            ConfigError,
            "node_type: got 'shelf', but edges 'reads' join 'reader' and 'book'",
        ),
    ],
)
def test_links_that_cannot_be_learned(
    library: Graph, tmp_path: Path, changes: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        gnn.train(library, config_of(**changes), tmp_path / "run")


@pytest.mark.parametrize("kind", ["library", "groups"])
def test_negatives_like_the_positive(
    kind: str, library: Graph, groups: Store, tmp_path: Path
) -> None:
    graph = library if kind == "library" else groups(2)
    config = config_of(alike_negatives=3, alike="label", epochs=2, eval_every=0)
    task = LinkPrediction(graph, config)
    dst_type = task.pairs.dst_type
    pairs = task.seeds(0).pairs_of(0)
    seeds = task.seeds(0)[0]
    others = seeds[dst_type]
    if kind == "groups":  # sources before, of the same type
        others = others[len(pairs) :]
    alike = others[len(pairs) + config.num_negatives :].reshape(len(pairs), 3)
    labels = np.array(graph.node_column(dst_type, "label").to_pylist())
    assert (labels[alike] == labels[pairs[:, 1]][:, None]).all()
    report = gnn.train(graph, config, tmp_path / "run")
    assert np.isfinite(report.metrics["loss"])
    sample = build_context(graph, config).message_graph.sample(seeds, epoch=0, batch=0)
    trimmed = task._trim(sample, 0)
    hidden = without_pairs(
        sample.layers, task.pairs.edge_type, *pairs.T, is_symmetric=kind == "groups"
    )
    for found, expected in zip(trimmed, hidden, strict=True):
        assert {n: b.num_edges for n, b in found.items()} == {
            n: b.num_edges for n, b in expected.items()
        }
    with pytest.raises(ConfigError, match="alike_negatives: got 2 with column ''"):
        config_of(alike_negatives=2)
