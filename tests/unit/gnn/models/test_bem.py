"""BEM against torch's distributions, and on rows whose truth is known."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.gnn import GnnConfig
from graphsys.gnn.data.features import InputShape
from graphsys.gnn.layerwise_inference import infer
from graphsys.gnn.models.bem import Bem
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store

NUM, PRIOR, OBSERVED = 300, 6, 4
Rows = npt.NDArray[np.float32]


def settings(**changes: Any) -> GnnConfig:
    usual: dict[str, Any] = {
        "model": "bem",
        "task": "link_prediction",
        "layers": 1,
        "dim": 32,
        "epochs": 60,
        "batch_size": 100,
        "lr": 0.01,
        "features": ("knowledge", "behavior"),
        "prior": "knowledge",
        "prior_std": 0.5,
        "corrected": "prior",
        "eval_every": 0,
        "keep": "last",
        "threads": 1,
    }
    return GnnConfig(**usual | changes)


@pytest.fixture
def truth() -> Rows:
    return np.random.default_rng(5).normal(size=(NUM, PRIOR)).astype(np.float32)


@pytest.fixture
def knowledge(truth: Rows) -> Rows:
    noise = np.random.default_rng(6).normal(size=truth.shape)
    return (truth + 0.5 * noise).astype(np.float32)


@pytest.fixture
def graph(truth: Rows, knowledge: Rows, tmp_path: Path) -> Graph:
    """Edges between near nodes; both rows are noisy views of the truth."""
    rng = np.random.default_rng(7)
    mixed = truth @ rng.normal(size=(PRIOR, OBSERVED)) / np.sqrt(PRIOR)
    behavior = (mixed + 0.1 * rng.normal(size=mixed.shape)).astype(np.float32)
    distance = np.square(truth[:, None] - truth[None]).sum(-1) + 99 * np.eye(NUM)
    nearest = distance.argsort(axis=1)[:, :5]
    pairs = sorted(
        {(min(v, u), max(v, u)) for v in range(NUM) for u in nearest[v].tolist()}
    )
    nodes = NodeChunk(
        ids=np.arange(NUM),
        columns={},
        features={"knowledge": knowledge, "behavior": behavior},
    )
    make_store(tmp_path / "g", nodes, edge_chunk(pairs), is_directed=False)
    return Graph(tmp_path / "g")


def rows_by_id(run: Path) -> Rows:
    opened = gnn.open_run(run)
    rows = np.empty_like(found := infer(opened.context, "node"))
    rows[opened.graph.node_ids("node")] = found
    return rows


def test_the_bound_is_that_of_torchs_distributions() -> None:
    torch.manual_seed(1)
    dims = (("knowledge", PRIOR), ("behavior", OBSERVED))
    shapes = {"node": InputShape(dim=PRIOR + OBSERVED, dims=dims)}
    model = Bem(settings(), [], shapes).train()
    with torch.no_grad():
        model.log_noise["node"].uniform_(-1, 1)
    x = torch.randn(7, PRIOR + OBSERVED)
    torch.manual_seed(2)
    corrected, bound = model._correct("node", x)
    torch.manual_seed(2)
    noise = torch.randn(7, PRIOR)
    mean, log_std = model.posterior["node"](x).chunk(2, dim=1)
    posterior = Normal(mean, 0.5 * log_std.exp())
    correction = mean + posterior.stddev * noise
    torch.testing.assert_close(corrected, x[:, :PRIOR] + correction)
    observed = Normal(model.project["node"](corrected), model.log_noise["node"].exp())
    density = observed.log_prob(x[:, PRIOR:]).sum()  # type: ignore[no-untyped-call]
    divergence = kl_divergence(posterior, Normal(0.0, 0.5)).sum()
    torch.testing.assert_close(bound, (density - divergence) / OBSERVED)
    model.eval()
    torch.testing.assert_close(model._correct("node", x)[0], x[:, :PRIOR] + mean)


def test_knowledge_corrected_by_behavior_is_nearer_to_the_truth(
    graph: Graph, truth: Rows, knowledge: Rows, tmp_path: Path
) -> None:
    gnn.train(graph, settings(), tmp_path / "run")
    rows = rows_by_id(tmp_path / "run")
    before = np.square(knowledge - truth).mean()
    assert before == pytest.approx(0.25, rel=0.1)
    assert np.square(rows - truth).mean() < 0.8 * before


def test_behavior_rows_come_out_as_knowledge_has_them(graph: Graph, tmp_path: Path) -> None:
    gnn.train(graph, settings(corrected="observed", epochs=2), tmp_path / "run")
    rows = rows_by_id(tmp_path / "run")
    assert rows.shape == (NUM, OBSERVED)


def test_where_the_prior_stands_does_not_matter() -> None:
    x = torch.randn(3, PRIOR + OBSERVED)
    for dims in [
        (("knowledge", PRIOR), ("behavior", OBSERVED)),
        (("a", 1), ("knowledge", PRIOR), ("b", OBSERVED - 1)),
    ]:
        torch.manual_seed(1)
        model = Bem(settings(), [], {"node": InputShape(dim=PRIOR + OBSERVED, dims=dims)})
        for parameter in model.posterior.parameters():
            torch.nn.init.zeros_(parameter)
        first = dims[0][1] if dims[0][0] != "knowledge" else 0
        rows = model.eval().embed({"node": x})["node"]  # nothing is corrected
        torch.testing.assert_close(rows, x[:, first : first + PRIOR])


@pytest.mark.parametrize(
    "changes", [{}, {"prior": "x"}, {"prior": "knowledge", "features": ("knowledge",)}]
)
def test_nodes_without_both_rows_are_refused(
    graph: Graph, changes: dict[str, Any], tmp_path: Path
) -> None:
    config = settings(**{"prior": "", **changes})
    with pytest.raises(ConfigError, match="and one more with those of a behavior graph"):
        gnn.train(graph, config, tmp_path / "run")
