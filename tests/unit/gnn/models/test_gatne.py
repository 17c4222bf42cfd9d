"""GATNE against formulas written out; what it learns, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.gnn.data.features import InputShape
from graphsys.gnn.data.loader import Loader
from graphsys.gnn.data.positive_pairs import read_pairs
from graphsys.gnn.layerwise_inference import infer
from graphsys.gnn.models.gatne import Gatne
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.tasks.multiplex_links import MultiplexLinks
from graphsys.gnn.training.api import build_context
from graphsys.metrics import pair_metrics
from graphsys.storage import Graph
from tests.conftest import Call
from tests.unit.gnn.multiplex_graphs import (
    NUM,
    RELATIONS,
    config_of,
    disagreeing,
    neighbors_of,
    numbers,
    shop_store,
)
from tests.unit.gnn.training.test_api import StopAfter, StoppedError, are_equal, weights_of


def plain_gatne(
    base: Any, edge: Any, neighbors: list[list[list[int]]], num_layers: int, w: Any
) -> npt.NDArray[np.float64]:
    """Equations 2 to 6 of the paper, node by node, for one node type."""
    u = edge.reshape(len(base), len(neighbors), -1)
    for _ in range(num_layers):
        before = u.copy()
        for r, lists in enumerate(neighbors):
            for i, own in enumerate(lists):
                if own:
                    u[i, r] = np.mean([before[j, r] for j in own], axis=0)
    rows = np.empty((len(base), len(neighbors), base.shape[1]))
    for i in range(len(base)):
        for r in range(len(neighbors)):
            scores = w["scores"][r] @ np.tanh(w["hidden"][r].T @ u[i].T)
            share = np.exp(scores) / np.exp(scores).sum()
            v = base[i] + w["spread"][r].T @ (u[i].T @ share)
            rows[i, r] = v / np.linalg.norm(v)
    return rows.reshape(len(base), -1)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_rows_are_those_of_plain_numpy(items: Graph, num_layers: int) -> None:
    config = config_of(layers=num_layers, fanouts=(-1,) * num_layers, epochs=1)
    context = build_context(items, config)
    w = numbers(context.network)
    wanted = plain_gatne(
        w["learned.item.weight"], w["edge.item.weight"], neighbors_of(items), num_layers, w
    )
    found = infer(context, "item")
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    seeds = {"item": np.array([7, 31, 2])}
    with context.message_graph.sample(seeds, epoch=0, batch=0) as sample:
        hops = context.message_graph.wrap(sample.layers)
        rows = context.network(hops, context.features.gather(sample.nodes))["item"]
    rows = rows[torch.from_numpy(sample.seed_places["item"])].detach()
    np.testing.assert_allclose(rows, wanted[[7, 31, 2]], atol=1e-5)


def test_a_node_without_neighbors_by_a_relation_keeps_its_own_row() -> None:
    config = config_of()
    relations = [("a", "n", "n"), ("b", "n", "n")]
    model = Gatne(config, relations, {"n": InputShape(dim=0, num_learned=3)})
    offsets = {"a": [0, 2, 2], "b": [0, 0, 1]}
    entries = {"a": [1, 2], "b": [0]}
    rows = {
        name: SparseRows(np.array(offsets[name]), np.array(entries[name], np.int32), 3)
        for name in offsets
    }
    w = numbers(model)
    lists = [[[1, 2], [], []], [[], [0], []]]
    wanted = plain_gatne(w["learned.n.weight"], w["edge.n.weight"], lists, 1, w)
    found = model([rows], {"n": torch.arange(3)})["n"].detach()
    np.testing.assert_allclose(found, wanted[:2], atol=1e-6)


def test_gradients_are_those_of_a_dense_formula(items: Graph) -> None:
    context = build_context(items, config_of(fanouts=(-1,), loss="logistic"))
    task, model = context.task, context.network
    assert isinstance(task, MultiplexLinks)
    seeds = task.seeds(0)[0]
    batch = Loader(context.message_graph, context.features, 0).make(
        seeds, epoch=0, number=0
    )
    loss = task.loss(model(batch.hops, batch.x), batch)
    loss.backward()  # type: ignore[no-untyped-call]
    dense = {n: p.detach().double().requires_grad_() for n, p in model.named_parameters()}
    edge = dense["edge.item.weight"].view(NUM, 2, -1)
    means = []
    for r, lists in enumerate(neighbors_of(items)):
        a = torch.zeros(NUM, NUM, dtype=torch.float64)
        for i, own in enumerate(lists):
            for j in own:
                a[i, j] += 1 / len(own)
        means.append(torch.where(a.sum(1, keepdim=True) > 0, a @ edge[:, r], edge[:, r]))
    u = torch.stack(means, dim=1)
    rows = []
    for r in range(2):
        share = torch.softmax(
            torch.tanh(u @ dense["hidden"][r]) @ dense["scores"][r], dim=1
        )
        mixed = (share[:, :, None] * u).sum(1) @ dense["spread"][r]
        v = dense["learned.item.weight"] + mixed
        rows.append(v / v.norm(dim=1, keepdim=True))
    others = dense["decoder.rows.item"]
    (group,) = seeds.groups
    assert isinstance(group.negatives, SparseRows)
    positive: list[torch.Tensor] = []
    negative: list[torch.Tensor] = []
    for place, node in enumerate(seeds["item"]):
        for r in range(2):
            row = 2 * place + r
            for part, into in ((group.rows, positive), (group.negatives, negative)):
                for other in part.indices[part.indptr[row] : part.indptr[row + 1]]:
                    into.append(rows[r][node] @ others[other])
    wanted = -(
        torch.nn.functional.logsigmoid(torch.stack(positive)).mean()
        + torch.nn.functional.logsigmoid(-torch.stack(negative)).mean()
    )
    assert len(negative) == 4 * len(positive) == 4 * seeds.num_pairs
    wanted.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(wanted.item(), abs=1e-5)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        wanted_grad = dense[name].grad
        assert wanted_grad is not None
        assert wanted_grad.abs().max() > 0, name
        assert torch.allclose(parameter.grad.double(), wanted_grad, atol=1e-6), name


def test_relations_that_disagree_have_rows_that_do(items: Graph, tmp_path: Path) -> None:
    report = gnn.train(items, config_of(epochs=40), tmp_path / "run")
    found = gnn.evaluate(tmp_path / "run")["metrics"]
    assert found["roc_auc"] > 0.9
    assert set(found["relations"]) == set(RELATIONS)
    each = [found["relations"][name] for name in RELATIONS]
    for metric in ("roc_auc", "pr_auc", "f1"):
        assert found[metric] == pytest.approx(np.mean([it[metric] for it in each]))
    assert found["num_edges"] == sum(it["num_edges"] for it in each)
    assert report.metrics["valid_roc_auc"] > 0.9
    bought, viewed = (set(disagreeing(name)) for name in ("bought", "viewed"))
    tables = {name: gnn.predict(tmp_path / "run", relation=name) for name in RELATIONS}
    for name, own, other in (
        (RELATIONS[0], bought - viewed, viewed - bought),
        (RELATIONS[1], viewed - bought, bought - viewed),
    ):
        ids = tables[name]["id"].to_pylist()
        rows = np.array(tables[name]["embedding"].to_pylist())[np.argsort(ids)]
        assert rows.shape == (NUM, 12)
        score = rows @ rows.T
        told = pair_metrics(
            np.array([score[pair] for pair in own]),
            np.array([score[pair] for pair in other]),
        )
        assert told["roc_auc"] > 0.95
    some = gnn.predict(tmp_path / "run", [3, 11], relation="also/viewed")
    assert some["id"].to_pylist() == [3, 11]


def test_a_resumed_run_is_equal_bit_by_bit(items: Graph, tmp_path: Path) -> None:
    config = config_of(deterministic=True, checkpoint_seconds=0, epochs=3, layers=2)
    gnn.train(items, config, tmp_path / "whole")
    with pytest.raises(StoppedError):
        gnn.train(items, config, tmp_path / "run", progress=StopAfter(3))
    gnn.train(items, None, tmp_path / "run", resume=True)
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))
    two = config_of(deterministic=False, threads=2, epochs=3, layers=2)
    gnn.train(items, two, tmp_path / "two")
    for name, value in weights_of(tmp_path / "two").items():
        assert torch.allclose(value, weights_of(tmp_path / "whole")[name], atol=1e-4)


def test_features_make_rows_of_several_types(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    x[3] = x[5]
    graph = shop_store(tmp_path / "shop", x)
    config = config_of(fanouts=(-1,), epochs=3, node_type="item", row_decay=1e-3)
    context = build_context(graph, config)
    w = numbers(context.network)
    assert {"linear.item.weight", "learned.user.weight"} <= set(w)
    assert "learned.item.weight" not in w
    order = graph.node_ids("item").to_pylist()
    found = infer(context, "item")
    base, share = x[order] @ w["linear.item.weight"].T, w["edge.user.weight"]
    edge = (x[order] @ w["edge.item.weight"].T).reshape(10, 2, 4)
    assert isinstance(context.network, Gatne)
    for r, name in enumerate(context.network.names["item"]):
        for item in range(10):
            own = [u for u, i in read_pairs(graph, name).tolist() if i == item]
            if own:
                edge[item, r] = share.reshape(8, 2, 4)[own, r].mean(axis=0)
    wanted = plain_gatne(base, edge, [[[]] * 10] * 2, 0, w)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    gnn.train(graph, config, tmp_path / "run")
    table = gnn.predict(tmp_path / "run", [5], relation="buys")
    assert len(table["embedding"][0].as_py()) == 12
    measured = gnn.evaluate(tmp_path / "run")["metrics"]
    assert list(measured["relations"]) == ["buys"]
    assert measured["num_edges"] == 2


TRAIN = ("--set", "model=gatne", "--set", "task=link_prediction", "--set", "epochs=1")


def test_the_command_line_trains_evaluates_and_predicts(
    items: Graph, tmp_path: Path, call: Call
) -> None:
    run, out = tmp_path / "run", tmp_path / "rows.parquet"
    train = ("train", "gnn", items.path, "-o", run, *TRAIN)
    assert "batches per epoch" in call(*train, "--dry-run")[1]
    report = json.loads(call(*train, "--json")[1])
    assert 0 <= report["metrics"]["valid_roc_auc"] <= 1
    found = json.loads(call("evaluate", run, "--json")[1])["metrics"]
    assert {"roc_auc", "pr_auc", "f1", "relations", "num_edges"} == set(found)
    assert call("predict", run, "-o", out, "--relation", "also/viewed")[0] == 0
    out.unlink()
    code, _, error = call("predict", run, "-o", out)
    assert code == 2
    assert "also/bought, also/viewed; choose one with --relation" in error
    code, _, error = call("predict", run, "-o", out, "--relation", "also/sold")
    assert code == 2
    assert "unknown relation 'also/sold'; known: also/bought, also/viewed" in error


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("task=node_classification",), "task: got node_classification with model gatne"),
        (("batch_size=0",), "batch_size: got 0 with model gatne, expected at least 1"),
        (("decoder=mlp",), "decoder: got mlp with model gatne, expected dot"),
        (
            ("learned_rows=disk",),
            "learned_rows: got disk with model gatne, expected memory",
        ),
        (("reverse_edges=false",), "reverse_edges: got False with model gatne"),
        (
            ("alike_negatives=2", "alike=kind"),
            "alike_negatives: got 2 with model gatne, expected 0",
        ),
        (("features=['x']",), "unknown feature 'x'"),
        (("edge_types=['sold']",), "unknown edge type 'sold'"),
        (("node_type=user",), "unknown node type 'user'; known: item"),
    ],
)
def test_what_does_not_fit_is_one_line(
    items: Graph, tmp_path: Path, call: Call, settings: tuple[str, ...], message: str
) -> None:
    chosen = [word for setting in settings for word in ("--set", setting)]
    arguments = ("train", "gnn", items.path, "-o", tmp_path / "run", *TRAIN, *chosen)
    code, said, error = call(*arguments)
    assert (code, said) == (2, "")
    assert message in error.splitlines()[-1]


def test_one_relation_is_too_few(tmp_path: Path) -> None:
    graph = shop_store(tmp_path / "shop")
    config = config_of(edge_types=("buys",))
    with pytest.raises(ConfigError, match="there is only buys; take model sage, or more"):
        gnn.train(graph, config, tmp_path / "run")
