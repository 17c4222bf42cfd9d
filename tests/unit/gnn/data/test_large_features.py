"""Features of tens of thousands hide the others: a training says so, and trains."""

import re
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import graphsys
from graphsys import gnn
from graphsys.gnn import GnnConfig

NUM_NODES = 60
NODES = range(NUM_NODES)


def users(folder: Path, income: float) -> Path:
    """Store users on a ring whose incomes reach a number, and ages some few."""
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "id": NODES,
            "age": rng.normal(size=NUM_NODES),
            "income": np.linspace(-income, 0, NUM_NODES),
            "label": [k % 2 for k in NODES],
            "split": ["train"] * NUM_NODES,
        }
    )
    graphsys.ingest(
        nodes={"user": table},
        edges={
            ("user", "knows", "user"): pa.table(
                {"src": NODES, "dst": [(k + 2) % NUM_NODES for k in NODES]}
            )
        },
        out=folder,
        columns={"user.money": "age+income"},
    )
    return folder


def test_a_training_says_which_feature_is_large(tmp_path: Path) -> None:
    graph = users(tmp_path / "graph", 54321.0)
    said = "feature 'money' of node type 'user' has numbers as large as 54321, where "
    with pytest.warns(UserWarning, match=f"^{re.escape(said)}"):
        report = gnn.train(graph, GnnConfig(epochs=1, eval_every=0), tmp_path / "run")
    assert report.epochs == 1


@pytest.mark.parametrize(("income", "is_normal"), [(50.0, False), (5e4, True)])
def test_nothing_is_said_of_others(tmp_path: Path, income: float, is_normal: bool) -> None:
    graph = users(tmp_path / "graph", income)
    config = GnnConfig(epochs=1, eval_every=0, normalize_features=is_normal)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        gnn.train(graph, config, tmp_path / "run")
