"""Layers over all relations, the LSTM over neighbors: against loops; whether they learn."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.gnn import GnnConfig
from graphsys.gnn.models import layers
from graphsys.gnn.ops.adjacency import SparseRows, join_rows
from graphsys.gnn.ops.sparse_features import SparseFeatures
from graphsys.storage import Graph
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.training.test_api import config_of

RELATIONS = [
    ("reads", "book", "reader"),
    ("cites", "book", "book"),
    ("owns", "reader", "book"),
]
SIZES = {"book": 5, "reader": 4}


@pytest.fixture
def rows() -> dict[str, SparseRows]:
    rng = np.random.default_rng(3)
    found = {}
    for name, own, other in RELATIONS:
        dense = rng.random((SIZES[own], SIZES[other])) < 0.5
        dense[0] = False  # no neighbors
        indptr = np.concatenate([[0], np.cumsum(dense.sum(axis=1))]).astype(np.int64)
        found[name] = SparseRows(
            indptr,
            np.nonzero(dense)[1].astype(np.int32),
            SIZES[other],
            is_prefix=own == other,
        )
    return found


def features(width: int = 6) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {t: torch.randn(n, width, generator=generator) for t, n in SIZES.items()}


def neighbors(rows: SparseRows, v: int) -> list[int]:
    return [int(u) for u in rows.indices[rows.indptr[v] : rows.indptr[v + 1]]]


@pytest.mark.parametrize("num_bases", [0, 2])
@pytest.mark.parametrize("width", [2, 9])  # of the output: sums are before or after
def test_rgcn_is_its_formula(
    rows: dict[str, SparseRows], num_bases: int, width: int
) -> None:
    torch.manual_seed(0)
    layer, x = layers.RGCN(RELATIONS, 6, width, num_bases), features()
    found = layer(rows, x, x)
    matrices = layer.weights()
    if num_bases:
        assert layer.shares is not None
        assert layer.bases.shape == (2, 6, width)
        wanted = torch.einsum("b,bio->io", layer.shares[1], layer.bases)
        assert torch.allclose(matrices[1], wanted, atol=1e-6)
    for t, size in SIZES.items():
        for v in range(size):
            wanted = layer.own.weight @ x[t][v] + layer.own.bias
            for (name, own, other), matrix in zip(RELATIONS, matrices, strict=True):
                if own == t and (near := neighbors(rows[name], v)):
                    wanted = wanted + x[other][near].mean(dim=0) @ matrix
            assert torch.allclose(found[t][v], wanted, atol=1e-5)


def test_hgt_is_its_formula(rows: dict[str, SparseRows]) -> None:
    torch.manual_seed(0)
    layer, x = layers.HGT(RELATIONS, 6, 6, 2), features()
    for parameter in layer.skip.values():
        parameter.data.fill_(0.3)
    for number, parameter in enumerate(layer.prior.values()):
        parameter.data.fill_(1 + number)
    found = layer(rows, x, x)
    for t, size in SIZES.items():
        for v in range(size):
            query = layer.query[t](x[t][v]).reshape(2, 3)
            heads = []
            for h in range(2):
                scores, messages = [], []
                for name, own, other in RELATIONS:
                    for u in neighbors(rows[name], v) if own == t else []:
                        key = layer.key[other](x[other][u]).reshape(2, 3)[h]
                        value = layer.value[other](x[other][u]).reshape(2, 3)[h]
                        score = key @ layer.attention[name][h] @ query[h]
                        scores.append(score * layer.prior[name][h] / math.sqrt(3))
                        messages.append(value @ layer.message[name][h])
                if scores:
                    shares = torch.softmax(torch.stack(scores), dim=0)
                    heads.append((shares[:, None] * torch.stack(messages)).sum(dim=0))
                else:
                    heads.append(torch.zeros(3))
            new = layer.out[t](functional.gelu(torch.cat(heads)))
            share = 1 / (1 + math.exp(-0.3))
            assert torch.allclose(
                found[t][v], share * new + (1 - share) * x[t][v], atol=1e-5
            )


def test_rgcn_reads_sparse_features(rows: dict[str, SparseRows]) -> None:
    x = {t: functional.one_hot(torch.arange(n), 16).float() for t, n in SIZES.items()}
    torch.manual_seed(0)
    layer = layers.RGCN(RELATIONS, 16, 3)
    sparse = {t: SparseFeatures.of(values) for t, values in x.items()}
    assert isinstance(sparse["book"], SparseFeatures)
    found, wanted = layer(rows, sparse, sparse), layer(rows, x, x)
    assert all(torch.allclose(found[t], wanted[t], atol=1e-6) for t in x)


def test_joined_rows_have_the_entries_of_all(rows: dict[str, SparseRows]) -> None:
    joined = join_rows([rows["reads"], rows["cites"]])
    assert joined.num_src == 4 + 5
    for v in range(5):
        wanted = neighbors(rows["reads"], v) + [4 + u for u in neighbors(rows["cites"], v)]
        assert neighbors(joined, v) == wanted
    assert join_rows([rows["owns"]]) is rows["owns"]


def test_lstm_reads_neighbors_one_by_one(rows: dict[str, SparseRows]) -> None:
    torch.manual_seed(0)
    layer, x = layers.NeighborLSTM(6).eval(), features()["book"].requires_grad_()
    found = layer(rows["cites"], x)
    for v in range(5):
        near = neighbors(rows["cites"], v)
        wanted = layer.lstm(x[near])[1][0][0] if near else torch.zeros(6)
        assert torch.allclose(found[v], wanted, atol=1e-6)
    found.sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
    layer.train()
    torch.manual_seed(1)
    first = layer(rows["cites"], x)
    assert not torch.allclose(first, found, atol=1e-6)  # another order
    torch.manual_seed(1)
    assert torch.equal(layer(rows["cites"], x), first)


@pytest.mark.parametrize("batch_size", [8, 0])
@pytest.mark.parametrize(
    "changes",
    [{"model": "rgcn", "bases": 2}, {"model": "hgt"}, {"aggregator": "lstm"}],
    ids=["rgcn", "hgt", "lstm"],
)
def test_they_overfit_and_infer(
    groups: Store, tmp_path: Path, changes: dict[str, Any], batch_size: int
) -> None:
    config = config_of(epochs=60, batch_size=batch_size, **changes)
    gnn.train(groups(2), config, tmp_path / "run")
    assert gnn.evaluate(tmp_path / "run", split="train")["metrics"]["accuracy"] >= 0.9


@pytest.mark.parametrize("model", ["rgcn", "hgt"])
def test_batches_and_the_whole_graph_agree_over_several_types(
    library: Graph, tmp_path: Path, model: Any
) -> None:
    config = config_of(model=model, epochs=5, batch_size=4, fanouts=(-1, -1))
    gnn.train(library, config, tmp_path / "run")
    opened = gnn.open_run(tmp_path / "run")
    by_layer = opened.output()
    context = opened.context
    with torch.no_grad():
        layer = context.message_graph.whole()
        nodes = {"book": np.arange(24), "reader": np.arange(30)}
        whole = context.network([layer, layer], context.features.gather(nodes))["book"]
    assert np.allclose(by_layer, whole.numpy(), atol=1e-5)


def test_heads_of_hgt_divide_dim() -> None:
    with pytest.raises(ConfigError, match="dim: got 10, expected a multiple of heads, 4"):
        GnnConfig(model="hgt", dim=10, heads=4)
