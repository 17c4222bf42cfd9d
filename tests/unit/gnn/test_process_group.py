"""Training in several processes: the same losses and weights as one process has."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys import gnn
from graphsys.core.config import to_toml
from graphsys.core.errors import ConfigError
from graphsys.gnn import GnnConfig
from graphsys.gnn.process_group import ProcessGroup
from graphsys.storage import Graph
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.small_graphs import graph_config, rings_and_trees, store_of
from tests.unit.gnn.training.test_api import config_of, weights_of

CHILD = "import sys; from graphsys.cli.main import main; sys.exit(main(sys.argv[1:]))"


def train_in_two(
    graph: Graph, config: GnnConfig, out: Path, *options: str, count: int = 2
) -> None:
    """Train in 2 processes, as torchrun would start the command; the first one reports."""
    file = out.with_suffix(".toml")
    file.write_text(to_toml(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    verb = ["train", "gnn", str(graph.path), "-o", str(out), "--config", str(file)]
    command = [sys.executable, "-c", CHILD, *verb, "--json", *options]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [
        subprocess.Popen(command, env={**os.environ, **told, "RANK": str(rank)}, **pipes)
        for rank in range(count)
    ]
    said = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0] * count, said
    assert json.loads(said[0][0])["epochs"] == config.epochs
    assert said[1][0] == b""


def are_close(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return all(torch.allclose(a[name], b[name], atol=1e-5) for name in a)


def test_two_processes_train_as_one_does(groups: Store, tmp_path: Path) -> None:
    """24 nodes in batches of 7: the last has 3, shared 2 and 1; best epochs are watched."""
    graph = groups(2)
    config = config_of(
        epochs=4, batch_size=7, fanouts=(3, 3), eval_every=1, keep="best", lr=0.01
    )
    report = gnn.train(graph, config, tmp_path / "one")
    train_in_two(graph, config, tmp_path / "two")
    one, two = (gnn.open_run(tmp_path / name) for name in ("one", "two"))
    assert two.state.losses == pytest.approx(one.state.losses, rel=1e-5)
    assert two.state.is_complete
    assert two.state.best_epoch == report.metrics["best_epoch"]
    watched = [[row[:3] for row in run.state.history] for run in (one, two)]
    assert np.allclose(watched[0], watched[1], rtol=1e-4)
    shared = [each["evaluation_bytes"] for each in two.state.metrics["per_worker"]]
    assert len(shared) == 2
    assert two.state.metrics["evaluation_bytes"] == sum(shared) > 0
    assert are_close(weights_of(tmp_path / "one"), weights_of(tmp_path / "two"))


@pytest.mark.slow
def test_graphs_are_shared_out_too(tmp_path: Path) -> None:
    """36 graphs in batches of 8; what one reads of its own adds up to the whole batch."""
    graph = store_of(tmp_path / "g", rings_and_trees())
    config = graph_config(model="diffpool", epochs=3, eval_every=1, keep="best")
    gnn.train(graph, config, tmp_path / "one")
    train_in_two(graph, config, tmp_path / "two")
    one, two = (gnn.open_run(tmp_path / name).state for name in ("one", "two"))
    assert two.losses == pytest.approx(one.losses, rel=1e-4)
    assert [row[2] for row in two.history] == [row[2] for row in one.history]
    assert are_close(weights_of(tmp_path / "one"), weights_of(tmp_path / "two"))


@pytest.mark.slow
def test_links_too_and_resumed(library: Graph, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "task": "link_prediction",
        "dim": 8,
        "batch_size": 67,
        "fanouts": (4, 4),
        "num_negatives": 10,
        "threads": 1,
        "eval_every": 0,
        "keep": "last",
        "lr": 0.01,
    }
    config = GnnConfig(**settings, epochs=3)
    gnn.train(library, config, tmp_path / "one")
    train_in_two(library, config, tmp_path / "two")
    one, two = (gnn.open_run(tmp_path / name).state for name in ("one", "two"))
    assert two.losses == pytest.approx(one.losses, rel=1e-4)
    train_in_two(library, config, tmp_path / "two", "--resume")  # complete: nothing to do
    assert gnn.open_run(tmp_path / "two").state.losses == two.losses


def test_shares_are_disjoint_and_never_empty() -> None:
    teams = [ProcessGroup(rank, 3) for rank in range(3)]
    items = list(range(8))
    assert sorted(k for process_group in teams for k in process_group.share(items)) == items
    assert [process_group.num_own(8) for process_group in teams] == [3, 3, 2]
    assert [len(process_group.share([7])) for process_group in teams] == [1, 1, 1]
    assert [process_group.num_own(1) for process_group in teams] == [1, 0, 0]


def test_processes_that_cannot_be_joined(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        ConfigError, match="WORLD_SIZE is 2, but processes cannot be joined"
    ):
        gnn.train(groups(1), config_of(epochs=1), tmp_path / "run")
