"""Every layer against its formula, written out with dense matrices."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.nn import functional

from graphsys.core.errors import ConfigError
from graphsys.gnn.models import layers
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.gcn_norm import weigh
from graphsys.gnn.ops.sparse_features import SparseFeatures, transform_first

NUM_NODES, NUM_IN, NUM_OUT = 12, 7, 4


@pytest.fixture
def dense() -> npt.NDArray[np.float32]:
    """Return a symmetric adjacency matrix without loops; the last node has no neighbors."""
    rng = np.random.default_rng(11)
    upper = np.triu(rng.random((NUM_NODES, NUM_NODES)) < 0.35, 1)
    upper[:, -1] = False
    return (upper | upper.T).astype(np.float32)


def rows_of(dense: npt.NDArray[np.float32]) -> SparseRows:
    indptr = np.concatenate([[0], np.cumsum((dense > 0).sum(axis=1))]).astype(np.int64)
    indices = np.nonzero(dense)[1].astype(np.int32)
    return SparseRows(indptr, indices, dense.shape[1])


def features(seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(NUM_NODES, NUM_IN, generator=generator)


def sage(layer: layers.SAGE, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    degrees = a.sum(dim=1, keepdim=True).clamp(min=1)
    own = x @ layer.own.weight.T + layer.own.bias
    if layer.aggregator in ("mean", "sum"):
        pooled = a @ x / (degrees if layer.aggregator == "mean" else 1)
    else:
        values = x if layer.pool is None else torch.relu(layer.pool(x))
        pooled = torch.stack(
            [
                values[line > 0].amax(dim=0) if line.any() else torch.zeros(NUM_IN)
                for line in a
            ]
        )
    return own + pooled @ layer.neighbor.weight.T


def gcn(layer: layers.GCN, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    looped = a + torch.eye(NUM_NODES)
    scale = looped.sum(dim=1).rsqrt()
    return scale[:, None] * looped * scale @ x @ layer.linear.weight.T + layer.bias


def gin(layer: layers.GIN, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    summed: torch.Tensor = layer.mlp((1 + layer.eps) * x + a @ x)
    return summed


def attention(
    layer: Any, a: torch.Tensor, x: torch.Tensor, score: Callable[..., torch.Tensor]
) -> torch.Tensor:
    """Softmax over neighbors and self, head by head."""
    looped = a + torch.eye(NUM_NODES)
    messages = (x @ layer.source.weight.T).reshape(NUM_NODES, layer.num_heads, -1)
    heads = []
    for h in range(layer.num_heads):
        scores = score(layer, messages, x, h).masked_fill(looped == 0, -torch.inf)
        heads.append(torch.softmax(scores, dim=1) @ messages[:, h])
    bias: torch.Tensor = layer.bias
    if layer.is_concatenating:
        return torch.cat(heads, dim=1) + bias
    return torch.stack(heads).mean(dim=0) + bias


def gat_score(layer: Any, messages: torch.Tensor, x: torch.Tensor, h: int) -> torch.Tensor:
    of_src, of_dst = messages[:, h] @ layer.of_src[h], messages[:, h] @ layer.of_dst[h]
    return functional.leaky_relu(of_dst[:, None] + of_src[None, :], 0.2)


def gatv2_score(
    layer: Any, messages: torch.Tensor, x: torch.Tensor, h: int
) -> torch.Tensor:
    own = (x @ layer.target.weight.T).reshape(NUM_NODES, layer.num_heads, -1)[:, h]
    both = functional.leaky_relu(own[:, None] + messages[None, :, h], 0.2)
    scores: torch.Tensor = both @ layer.attention[h]
    return scores


def pinsage(layer: layers.PinSage, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    share = a / a.sum(dim=1, keepdim=True).clamp(min=1e-9)
    pooled = share @ torch.relu(x @ layer.message.weight.T + layer.message.bias)
    both = torch.cat([x, pooled], dim=1)
    z = torch.relu(both @ layer.combine.weight.T + layer.combine.bias)
    found: torch.Tensor = z / z.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return found


CASES: dict[str, tuple[Any, Any]] = {
    "sage mean": (lambda: layers.SAGE(NUM_IN, NUM_OUT), sage),
    "sage sum": (lambda: layers.SAGE(NUM_IN, NUM_OUT, "sum"), sage),
    "sage max": (lambda: layers.SAGE(NUM_IN, NUM_OUT, "max"), sage),
    "sage pool": (lambda: layers.SAGE(NUM_IN, NUM_OUT, "pool"), sage),
    "gcn": (lambda: layers.GCN(NUM_IN, NUM_OUT), gcn),
    "gin": (lambda: layers.GIN(NUM_IN, NUM_OUT), gin),
    "gat": (
        lambda: layers.GAT(NUM_IN, NUM_OUT, 3),
        lambda layer, a, x: attention(layer, a, x, gat_score),
    ),
    "gat mean": (
        lambda: layers.GAT(NUM_IN, NUM_OUT, 2, is_concatenating=False),
        lambda layer, a, x: attention(layer, a, x, gat_score),
    ),
    "gatv2": (
        lambda: layers.GATv2(NUM_IN, NUM_OUT, 3),
        lambda layer, a, x: attention(layer, a, x, gatv2_score),
    ),
    "pinsage": (lambda: layers.PinSage(NUM_IN, NUM_OUT), pinsage),
}


@pytest.mark.parametrize("name", CASES)
def test_layers_compute_their_formula(name: str, dense: npt.NDArray[np.float32]) -> None:
    torch.manual_seed(3)
    make, formula = CASES[name]
    layer, a = make(), torch.from_numpy(dense)
    x, own = features().requires_grad_(), features().requires_grad_()
    found, expected = layer(rows_of(dense), x, x), formula(layer, a, own)
    assert torch.allclose(found, expected, atol=1e-5)
    weights = torch.randn(found.shape)
    (found * weights).sum().backward()
    of_layer = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    (expected * weights).sum().backward()
    assert torch.allclose(x.grad, own.grad, atol=1e-4)  # type: ignore[arg-type]
    for grad, parameter in zip(of_layer, layer.parameters(), strict=True):
        assert torch.allclose(grad, parameter.grad, atol=1e-4)


@pytest.mark.parametrize("name", ["sage mean", "sage sum", "gcn"])
@pytest.mark.parametrize("is_first", [True, False])
def test_order_of_transform_and_sum_changes_nothing(
    name: str,
    is_first: bool,
    dense: npt.NDArray[np.float32],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(3)
    make, formula = CASES[name]
    layer = make()
    module = layers.sage if name.startswith("sage") else layers.gcn
    monkeypatch.setattr(module, "transform_first", lambda *given: is_first)
    found = layer(rows_of(dense), features(), features())
    assert torch.allclose(
        found, formula(layer, torch.from_numpy(dense), features()), atol=1e-5
    )


def test_what_costs_less_comes_first(dense: npt.NDArray[np.float32]) -> None:
    rows, x = rows_of(dense), features().requires_grad_()
    assert transform_first(rows, x, 512, 4)  # narrow messages
    assert not transform_first(rows, x, 4, 512)
    few = SparseRows(rows.indptr[:2], rows.indices[: rows.indptr[1]], NUM_NODES)
    assert not transform_first(few, x, 64, 63)  # one row of many sources


def test_importance_weights_are_those_of_the_rows(dense: npt.NDArray[np.float32]) -> None:
    rows = rows_of(dense)
    weight = torch.rand(rows.num_edges)
    weighted = SparseRows(rows.indptr, rows.indices, NUM_NODES, weight=weight)
    layer, x = layers.PinSage(NUM_IN, NUM_OUT), features()
    a = torch.zeros(NUM_NODES, NUM_NODES)
    line = np.repeat(np.arange(NUM_NODES), np.diff(rows.indptr))
    a[torch.from_numpy(line), torch.from_numpy(rows.indices).long()] = weight
    pooled = a @ torch.relu(layer.message(x))
    z = torch.relu(layer.combine(torch.cat([x, pooled], dim=1)))
    assert torch.allclose(layer(weighted, x, x), functional.normalize(z), atol=1e-6)


def test_lightgcn_is_the_normalized_matrix(dense: npt.NDArray[np.float32]) -> None:
    rows, a, x = rows_of(dense), torch.from_numpy(dense), features()
    weigh(rows, rows.degrees, rows.degrees, has_self=False)
    scale = a.sum(dim=1).clamp(min=1).rsqrt()
    expected = scale[:, None] * a * scale @ x
    assert torch.allclose(layers.LightGCN()(rows, x, x), expected, atol=1e-6)


def test_sampled_convolutions_are_right_on_average(dense: npt.NDArray[np.float32]) -> None:
    """Half of each row, many times: the mean is the whole row's sum."""
    torch.manual_seed(0)
    layer, x, rng = layers.GCN(NUM_IN, NUM_OUT), features(), np.random.default_rng(0)
    whole = rows_of(dense)
    expected = layer(rows_of(dense), x, x)
    total = torch.zeros_like(expected)
    for _ in range(3000):
        picks = [
            rng.permutation(whole.indices[begin:end])[: max(1, (end - begin) // 2)]
            for begin, end in zip(whole.indptr[:-1], whole.indptr[1:], strict=True)
        ]
        indptr = np.concatenate([[0], np.cumsum([len(pick) for pick in picks])])
        some = SparseRows(indptr.astype(np.int64), np.concatenate(picks), NUM_NODES)
        weigh(some, whole.degrees, whole.degrees)
        total += layer(some, x, x).detach()
    assert (total / 3000 - expected).abs().max() < 0.05


def test_sparse_features_are_the_dense_ones(dense: npt.NDArray[np.float32]) -> None:
    x = features() * (torch.rand(NUM_NODES, NUM_IN) < 0.08)
    sparse = SparseFeatures.of(x)
    assert isinstance(sparse, SparseFeatures)
    assert isinstance(SparseFeatures.of(features()), torch.Tensor)
    for name in ("gcn", "sage mean", "gat", "gatv2"):
        layer = CASES[name][0]()
        found = layer(rows_of(dense), sparse, sparse)
        assert torch.allclose(found, layer(rows_of(dense), x, x), atol=1e-5)
    torch.manual_seed(0)
    kept = sparse.dropout(0.5, training=True).values
    assert ((kept == 0) | torch.isclose(kept, 2 * sparse.values)).all()
    assert torch.equal(sparse.dropout(0.5, training=False).values, sparse.values)


def test_unknown_aggregator() -> None:
    with pytest.raises(ConfigError, match="aggregator: got 'median', expected mean, sum"):
        layers.SAGE(3, 4, "median")  # type: ignore[arg-type]
