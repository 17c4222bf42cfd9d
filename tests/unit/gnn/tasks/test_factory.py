"""Regression and decoders: against formulas, and whether they learn."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.gnn.data.positive_pairs import make_pairs
from graphsys.gnn.tasks.decoders import MLP, Cosine, DistMult, Dot
from graphsys.gnn.tasks.link_ranking import rank_pairs
from graphsys.storage import Graph
from graphsys.training.history import history
from tests.unit.gnn.conftest import NUM_NODES, Store
from tests.unit.gnn.tasks.test_link_prediction import config_of as link_config
from tests.unit.gnn.training.test_api import config_of


def numbers() -> np.ndarray[Any, Any]:
    return 100 + 20 * (np.arange(NUM_NODES) % 3) + np.arange(NUM_NODES) % 2.0


@pytest.mark.parametrize("batch_size", [8, 0])
def test_numbers_of_nodes_are_learned(
    groups: Store, tmp_path: Path, batch_size: int
) -> None:
    graph = groups(2, columns={"price": pa.array(numbers())})
    config = config_of(
        task="regression", label="price", epochs=120, batch_size=batch_size, eval_every=20
    )
    report = gnn.train(graph, config, tmp_path / "run")
    found = gnn.evaluate(tmp_path / "run", split="train")["metrics"]
    table = gnn.predict(tmp_path / "run")
    ids = np.array(table["id"].to_pylist()) - 100
    guess, wanted = np.array(table["prediction"].to_pylist()), numbers()[ids]
    train = ids // 3 % 4 % 2 == 0
    error = guess[train] - wanted[train]
    assert found["rmse"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-4)
    assert found["mae"] == pytest.approx(np.abs(error).mean(), rel=1e-4)
    assert found["r2"] == pytest.approx(1 - error.var() / wanted[train].var(), abs=0.02)
    assert found["r2"] > 0.8
    assert "valid_r2" in report.metrics
    assert report.metrics["loss"] < 0.3  # in units of the deviation


def test_of_labels_without_spread_the_loss_is_watched(
    groups: Store, tmp_path: Path
) -> None:
    price = np.where(np.arange(NUM_NODES) // 3 % 4 % 2 == 0, numbers(), 50.0)  # the others
    graph = groups(columns={"price": pa.array(price)})
    config = config_of(task="regression", label="price", epochs=6, eval_every=1, lr=0.01)
    with pytest.warns(UserWarning, match="'valid' have one label, of which r2 .*: loss is"):
        report = gnn.train(graph, config, tmp_path / "run")
    evaluated = history(tmp_path / "run").table().to_pydict()
    losses = evaluated["valid_loss"]
    assert report.metrics["best_epoch"] == 1 + losses.index(min(losses)) > 1
    found = gnn.evaluate(tmp_path / "run", split="valid")["metrics"]
    assert found["r2"] is None
    assert found["mae"] > 0


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        (
            ["a"] * NUM_NODES,
            ConfigError,
            "task regression: column 'price' of node type 'node'",
        ),
        (
            [1.0, float("nan"), None] * (NUM_NODES // 3),
            InvalidGraphError,
            (
                "16 of 24 nodes of split 'train' have no 'price' that is finite and fits "
                "float32: 101"
            ),
        ),
        (
            [1e300] + [1.0] * (NUM_NODES - 1),
            InvalidGraphError,
            "1 of 24 nodes of split 'train' have no 'price' that is finite and fits",
        ),
    ],
)
def test_columns_that_hold_no_numbers(
    groups: Store, tmp_path: Path, column: Any, error: Any, message: str
) -> None:
    graph = groups(1, columns={"price": pa.array(column)})
    config = config_of(task="regression", label="price")
    with pytest.raises(error, match=re.escape(message)):
        gnn.train(graph, config, tmp_path / "run")


def test_decoders_are_their_formulas() -> None:
    torch.manual_seed(0)
    query, others = torch.randn(3, 4), torch.randn(5, 4)
    diagonal = DistMult(4)
    diagonal.weight.data = torch.tensor([1.0, -2.0, 0.5, 3.0])
    mlp = MLP(4)
    cases: list[tuple[Any, Any]] = [
        (Dot(), lambda q, o: q @ o),
        (diagonal, lambda q, o: (q * diagonal.weight * o).sum()),
        (mlp, lambda q, o: mlp.layers(q * o)[0]),
        (Cosine(0.2), lambda q, o: q @ o / (q.norm() * o.norm()) / 0.2),
    ]
    for decoder, score in cases:
        found = decoder(query, others)
        for i in range(3):
            for j in range(5):
                assert torch.allclose(found[i, j], score(query[i], others[j]), atol=1e-6)
        own = decoder.own(query, others[None].expand(3, 5, 4))
        assert torch.allclose(own, found, atol=1e-6)


@pytest.mark.parametrize(
    ("decoder", "loss"),
    [("mlp", "logistic"), ("distmult", "logistic"), ("cosine", "softmax")],
)
def test_decoders_learn_and_rank_with_their_weights(
    library: Graph, tmp_path: Path, decoder: str, loss: str
) -> None:
    config = link_config(decoder=decoder, epochs=25, loss=loss)
    gnn.train(library, config, tmp_path / "run")
    found = gnn.evaluate(tmp_path / "run")["metrics"]
    assert found["mrr"] > 0.25  # chance: .16
    opened = gnn.open_run(tmp_path / "run")

    def output(node_type: str, nodes: Any) -> torch.Tensor:
        return torch.from_numpy(opened.output(nodes, node_type=node_type))

    plain = rank_pairs(library, make_pairs(library, config), "test", output)
    assert plain["mrr"] != found["mrr"]
