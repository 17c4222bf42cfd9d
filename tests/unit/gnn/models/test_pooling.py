"""SAGPool and DiffPool: against dense matrices of each graph by itself, and in training."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.gnn.data.loader import Loader
from graphsys.gnn.training.api import build_context
from graphsys.gnn.training.step import Stepper
from graphsys.storage import NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.small_graphs import (
    FIRST,
    SmallGraph,
    graph_config,
    ring,
    rings_and_trees,
    store_of,
)

SOME = [*rings_and_trees(9), SmallGraph(1, [], "ring"), SmallGraph(3, [(0, 0)], "tree")]
Matrices = list[tuple[torch.Tensor, torch.Tensor]]


def made(folder: Path, **changes: Any) -> tuple[Any, Matrices]:
    """Return a training on random features, and features and adjacency of each graph."""
    rng = np.random.default_rng(5)
    count = sum(graph.size for graph in SOME)
    x = rng.normal(size=(count, 5)).astype(np.float32)
    context = build_context(store_of(folder / "g", SOME, x=x), graph_config(**changes))
    matrices, begin = [], 0
    for graph in SOME:
        near = torch.zeros(graph.size, graph.size)
        for a, b in graph.edges:
            near[a, b] = near[b, a] = 1
        matrices.append((torch.from_numpy(x[begin : begin + graph.size]), near))
        begin += graph.size
    return context, matrices


def batch_of(context: Any, chosen: list[int]) -> Any:
    numbers = context.graph.lookup("graph", [FIRST + k for k in chosen])
    loader = Loader(context.message_graph, context.features, prefetch=0)
    return loader.make({"graph": numbers}, epoch=0, number=0)


def scores(context: Any, chosen: list[int]) -> torch.Tensor:
    batch = batch_of(context, chosen)
    found: torch.Tensor = context.network(batch.hops, batch.x)["graph"]
    return found[batch.places["graph"]]


def layer_of(modules: Any, k: int) -> Any:
    return next(iter(modules[k].values()))


def gcn(layer: Any, x: torch.Tensor, near: torch.Tensor) -> Any:
    near = near + torch.eye(len(near))
    scale = near.sum(1).rsqrt()
    return layer.linear(scale[:, None] * near * scale @ x) + layer.bias


def sage(layer: Any, x: torch.Tensor, near: torch.Tensor) -> Any:
    mean = near @ x / near.sum(1, keepdim=True).clamp(min=1)
    return layer.own(x) + layer.neighbor(mean)


def dense_sagpool(network: Any, x: torch.Tensor, near: torch.Tensor) -> Any:
    found = layer_of(network.scores, 0)(x.sum(0))
    for k in range(network.config.layers):
        x = torch.relu(gcn(layer_of(network.hops, k), x, near))
        z = gcn(layer_of(network.attention, k), x, near)[:, 0]
        kept = z.topk(math.ceil(network.config.pool_ratio * len(x))).indices
        x, near = x[kept] * torch.tanh(z[kept])[:, None], near[kept][:, kept]
        found = found + layer_of(network.scores, k + 1)(x.sum(0))
    return found


def dense_diffpool(
    network: Any, x: torch.Tensor, near: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scores and the loss besides of one graph."""
    found, z, s = layer_of(network.scores, 0)(x.sum(0)), x, x
    for k in range(network.config.layers):
        z = torch.relu(sage(layer_of(network.hops, k), z, near))
        s = torch.relu(sage(layer_of(network.assigner.hops, k), s, near))
        found = found + layer_of(network.scores, k + 1)(z.sum(0))
    s = torch.softmax(network.assign(s), dim=1)
    clusters, between = s.T @ z, s.T @ near @ s
    mean = between @ clusters / between.sum(1, keepdim=True).clamp(min=1e-12)
    made = torch.relu(network.own(clusters) + network.near(mean))
    size = len(x)
    link = torch.linalg.norm(near - s @ s.T) / size**2
    entropy = -(s * s.log()).sum() / size
    return found + network.cluster_scores(made.sum(0)), link + entropy


def require_equal(found: torch.Tensor, wanted: torch.Tensor, network: Any) -> None:
    """Compare numbers, and their gradients by all parameters."""
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    parameters = list(network.parameters())
    pairs = [
        torch.autograd.grad((it * weight).sum(), parameters, allow_unused=True)
        for it in (found, wanted)
    ]
    for one, two in zip(*pairs, strict=True):
        if two is None:
            assert one is None or not one.abs().any()
            continue
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("ratio", [0.5, 0.8, 1.0])
def test_sagpool_is_that_of_dense_matrices(tmp_path: Path, ratio: float) -> None:
    context, matrices = made(tmp_path, model="sagpool", pool_ratio=ratio)
    chosen = [3, 0, 10, 9, 7, 1]
    network = context.network
    wanted = torch.stack([dense_sagpool(network, *matrices[k]) for k in chosen])
    require_equal(scores(context, chosen), wanted, network)


def test_diffpool_is_that_of_dense_matrices(tmp_path: Path) -> None:
    context, matrices = made(tmp_path, model="diffpool", clusters=4)
    chosen = [3, 0, 10, 9, 7, 1]
    network = context.network
    network.train()
    wanted = torch.stack([dense_diffpool(network, *matrices[k])[0] for k in chosen])
    require_equal(scores(context, chosen), wanted, network)
    scores(context, chosen)
    besides = network.side_loss
    losses = [dense_diffpool(network, *matrices[k])[1] for k in chosen]
    require_equal(besides, torch.stack(losses).mean(), network)
    assert besides.item() > 0.1
    network.eval()
    scores(context, chosen)
    assert network.side_loss is None  # it is of training


def test_the_loss_of_a_step_has_what_diffpool_adds(tmp_path: Path) -> None:
    context, _ = made(tmp_path, model="diffpool", clusters=4)
    batch = batch_of(context, [0, 1, 2])
    rows = context.network(batch.hops, batch.x)
    plain = context.task.loss(rows, batch).item()
    besides = context.network.side_loss.item()
    value, _ = Stepper(context).train(0, batch, 1)
    assert value == pytest.approx(plain + besides, rel=1e-5)


@pytest.mark.parametrize("model", ["sagpool", "diffpool"])
def test_a_pooled_graph_has_the_same_scores_alone_and_in_any_batch(
    tmp_path: Path, model: Any
) -> None:
    context, _ = made(tmp_path, model=model)
    context.network.eval()
    with torch.no_grad():
        alone = torch.cat([scores(context, [k]) for k in range(len(SOME))])
        backwards = scores(context, [*range(len(SOME))][::-1]).flip(0)
    torch.testing.assert_close(alone, backwards, rtol=1e-4, atol=1e-5)
    assert float(alone.std(dim=0).min()) > 1e-3


@pytest.mark.parametrize("model", ["sagpool", "diffpool"])
def test_rings_and_trees_are_told_apart_by_pooling(tmp_path: Path, model: Any) -> None:
    graph = store_of(tmp_path / "g", rings_and_trees())
    config = graph_config(model=model, layers=2, epochs=20, eval_every=20, readout="mean")
    gnn.train(graph, config, tmp_path / "run", memory="4GB")
    found = gnn.evaluate(tmp_path / "run")["metrics"]
    assert found["accuracy"] == 1
    others = store_of(tmp_path / "new", [ring(9), SOME[1]])
    answer = gnn.predict(tmp_path / "run", [FIRST, FIRST + 1], graph=others)
    assert answer.column("prediction").to_pylist() == ["ring", "tree"]


def test_pooling_is_of_graphs_alone() -> None:
    with pytest.raises(ConfigError, match=r"sagpool, whose output is of whole graphs"):
        gnn.GnnConfig(model="sagpool")


def test_diffpool_has_one_node_type(tmp_path: Path) -> None:
    """SAGPool takes the best nodes of each type."""
    kinds = [
        NodeChunk(
            ids=np.arange(4), node_type=kind, columns={"graph_id": np.array([5, 5, 6, 6])}
        )
        for kind in ("atom", "bond")
    ]
    pairs = [(0, 0), (1, 1), (1, 0), (2, 2), (2, 3)]
    graph = make_store(
        tmp_path / "g",
        NodeChunk(
            ids=np.array([5, 6]), node_type="graph", columns={"label": np.array([0, 1])}
        ),
        *kinds,
        edge_chunk(pairs, EdgeType("atom", "has", "bond")),
    ).graph
    with pytest.raises(ConfigError, match="nodes of types atom, bond, expected one type"):
        build_context(graph, graph_config(model="diffpool", folds=2))
    context = build_context(graph, graph_config(model="sagpool", folds=2))
    batch = Loader(context.message_graph, context.features, prefetch=0).make(
        {"graph": np.array([0, 1])}, epoch=0, number=0
    )
    assert context.network(batch.hops, batch.x)["graph"].shape == (2, 2)
