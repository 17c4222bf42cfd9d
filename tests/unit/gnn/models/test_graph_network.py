"""Scores of graphs: against dense matrices in torch, alone and in batches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graphsys.gnn.data.loader import Loader
from graphsys.gnn.training.api import build_context
from tests.unit.gnn.small_graphs import (
    FIRST,
    SmallGraph,
    graph_config,
    ring,
    rings_and_trees,
    store_of,
)

SOME = [*rings_and_trees(9), SmallGraph(1, [], "ring"), SmallGraph(3, [(0, 0)], "tree")]


def scores(context: Any, graphs: list[int]) -> torch.Tensor:
    """Return the scores of graphs given by their places in the list, in one batch."""
    numbers = context.graph.lookup("graph", [FIRST + k for k in graphs])
    batch = Loader(context.message_graph, context.features, prefetch=0).make(
        {"graph": numbers}, epoch=0, number=0
    )
    found: torch.Tensor = context.network(batch.hops, batch.x)["graph"]
    return found[batch.places["graph"]]


def features(graphs: list[SmallGraph]) -> Any:
    rng = np.random.default_rng(5)
    return rng.normal(size=(sum(graph.size for graph in graphs), 5)).astype(np.float32)


class Dense(nn.Module):
    """GIN over one dense adjacency matrix of all graphs; readouts by masks."""

    def __init__(self, network: Any, readout: str) -> None:
        super().__init__()
        self.network, self.readout = network, readout

    def forward(
        self, x: torch.Tensor, near: torch.Tensor, of: torch.Tensor
    ) -> torch.Tensor:
        found = self.pooled(0, x, of)
        for k, hop in enumerate(self.network.hops):
            gin: Any = next(iter(hop.values()))
            x = torch.relu(gin.mlp((1 + gin.eps) * x + near @ x))
            found = found + self.pooled(k + 1, x, of)
        return found

    def pooled(self, k: int, x: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
        linear: Any = self.network.scores[k]["node"]
        rows = []
        for mask in of:
            own = x[mask]
            made = {"sum": own.sum(0), "mean": own.mean(0), "max": own.max(0).values}
            rows.append(made[self.readout])
        return linear(torch.stack(rows))  # type: ignore[no-any-return]


@pytest.mark.parametrize("readout", ["sum", "mean", "max"])
def test_scores_and_gradients_are_those_of_dense_matrices(
    tmp_path: Path, readout: Any
) -> None:
    x = features(SOME)
    context = build_context(
        store_of(tmp_path / "g", SOME, x=x), graph_config(readout=readout)
    )
    count, begin = len(x), 0
    near, of = torch.zeros(count, count), torch.zeros(len(SOME), count, dtype=torch.bool)
    for k, graph in enumerate(SOME):
        of[k, begin : begin + graph.size] = True
        for a, b in graph.edges:
            near[begin + a, begin + b] = near[begin + b, begin + a] = 1
        begin += graph.size
    chosen = [3, 0, 10, 9, 7, 1]
    found = scores(context, chosen)
    dense = Dense(context.network, readout)
    wanted = dense(torch.from_numpy(x), near, of)[chosen]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    parameters = list(context.network.parameters())
    own = torch.autograd.grad((found * weight).sum(), parameters)
    other = torch.autograd.grad((wanted * weight).sum(), parameters)
    assert len(own) > 10
    for one, two in zip(own, other, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model", ["gin", "gcn", "gat", "sage", "rgcn"])
def test_a_graph_has_the_same_scores_alone_and_in_any_batch(
    tmp_path: Path, model: Any
) -> None:
    graph = store_of(tmp_path / "g", SOME, x=features(SOME), partitions=2)
    context = build_context(graph, graph_config(model=model, norm="batch"))
    context.network.eval()
    with torch.no_grad():
        alone = torch.cat([scores(context, [k]) for k in range(len(SOME))])
        backwards = scores(context, [*range(len(SOME))][::-1]).flip(0)
    torch.testing.assert_close(alone, backwards, rtol=1e-4, atol=1e-5)
    assert float(alone.std(dim=0).min()) > 1e-3  # and they differ


def test_nodes_without_features_are_told_apart_by_their_degrees(tmp_path: Path) -> None:
    star = SmallGraph(5, [(0, k) for k in range(1, 5)], "tree")
    context = build_context(
        store_of(tmp_path / "g", [ring(5), star, ring(5)]), graph_config()
    )
    found = scores(context, [0, 1, 2])
    assert torch.equal(found[0], found[2])
    assert not torch.allclose(found[0], found[1])
    table: Any = context.network.learned["node"]
    found[:2].sum().backward()  # type: ignore[no-untyped-call]
    moved = table.weight.grad.abs().sum(dim=1).nonzero().flatten().tolist()
    assert moved == [1, 2, 4]
    assert len(table.weight) == 256  # and does not grow with the graph


def test_degrees_beyond_the_last_are_one(tmp_path: Path) -> None:
    def star(size: int) -> SmallGraph:
        return SmallGraph(size, [(0, k) for k in range(1, size)], "tree")

    graph = store_of(tmp_path / "g", [star(256), star(400), ring(3)])
    context = build_context(graph, graph_config())
    numbers = graph.lookup("node", [0, 1]).astype(np.int64)
    bags = context.features.gather({"node": numbers})["node"]
    assert bags.values.tolist() == [255, 255]


@pytest.mark.parametrize("residual", [False, True])
def test_recomputed_layers_have_the_same_gradients(tmp_path: Path, residual: bool) -> None:
    graph = store_of(tmp_path / "g", SOME, x=features(SOME))
    found = []
    for recompute in ("none", "all"):
        config = graph_config(recompute=recompute, residual=residual)
        context = build_context(graph, config)
        scores(context, [0, 1, 2]).square().sum().backward()  # type: ignore[no-untyped-call]
        found.append([p.grad for p in context.network.parameters()])
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two)
