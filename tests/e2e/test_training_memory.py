"""``train embedding --memory`` is kept where the rows of nodes are larger than it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from graphsys.core.memory import parse_bytes
from graphsys.datasets import recipes
from graphsys.storage import EdgeChunk, NodeChunk
from tests.conftest import Run
from tests.e2e.test_memory import SLACK, peak_of
from tests.stores import make_store

pytestmark = pytest.mark.e2e

BUDGET = "380MB"
NUM_NODES, DIM = 1 << 16, 1600


def test_the_buffer_keeps_the_budget(
    tmp_path: Path, run_installed: Run, graphsys_command: str
) -> None:
    graph, out = tmp_path / "graph", tmp_path / "run"
    recipes.build("rmat", graph, scale=16, edge_factor=1, partitions=8)
    settings = {
        "dim": DIM,
        "epochs": 1,
        "batch_size": 500,
        "num_batch_negatives": 10,
        "num_uniform_negatives": 10,
        "checkpoint_seconds": 600,
        "threads": 1,
    }
    words = ["train", "embedding", graph, "-o", out, "--memory", BUDGET, "--json"]
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]
    run_installed(*words, "--dry-run")  # compiles what is missing
    peak, printed = peak_of(graphsys_command, *words)
    told = json.loads(printed)["metrics"]
    assert parse_bytes(BUDGET) + SLACK < 4 * DIM * NUM_NODES  # of all rows
    assert told["swaps"] > 0
    assert told["buffer_partitions"] > 2  # what is kept without a budget
    assert told["planned_memory_bytes"] <= parse_bytes(BUDGET)
    assert peak <= told["planned_memory_bytes"]  # without torch, closer than promised


def test_learned_rows_are_refused_before_they_are_trained_with_an_amount_near_the_peak(
    tmp_path: Path, run_installed: Run, graphsys_command: str
) -> None:
    graph, num = tmp_path / "graph", 60_000
    ends = np.random.default_rng(0).integers(0, num, (2, 2 * num))
    split = np.array(["train"] * num, dtype=object)
    split[::5] = "valid"
    columns = {"label": np.arange(num) % 5, "split": split.tolist()}
    nodes = NodeChunk(ids=np.arange(num), columns=columns)
    make_store(graph, nodes, EdgeChunk(src=ends[0], dst=ends[1]), is_directed=False)
    words = ["train", "gnn", graph, "-o", tmp_path / "run", "--json"]
    for each in ("dim=256", "epochs=1", "epoch_batches=2", "threads=1"):
        words += ["--set", each]
    run_installed(*words, "--dry-run")  # compiles what is missing
    table = 4 * 256 * num
    budget = 300_000_000
    command = f'{graphsys_command} "$@"; test $? = 2'
    peak, refusal = peak_of(
        "sh", "-c", f"{{ {command}; }} 2>&1", "sh", *words, "--memory", budget
    )
    assert peak <= budget + 250_000_000  # a first batch took six tables: 690 MB
    named = re.search(r"give --memory (\d+MB) or more", refusal)
    assert named is not None, refusal
    assert not (tmp_path / "run").exists()
    peak, _ = peak_of(graphsys_command, *words, "--memory", named[1])
    assert 10 * table < peak <= parse_bytes(named[1]) <= 1.25 * peak


@pytest.mark.parametrize("model", ["gcn", "gat", "gin"])
def test_the_amount_that_a_refusal_names_is_enough(
    model: str, tmp_path: Path, shared_data: Path, run_installed: Run
) -> None:
    recipes.build("cora", tmp_path / "cora", folder=shared_data / "planetoid")
    words = ["train", "gnn", tmp_path / "cora", "-o", tmp_path / "run", "--json"]
    words += ["--set", f"model={model}", "--set", "epochs=3", "--memory"]
    refused = run_installed(*words, "100MB")
    named = re.search(r"give --memory (\d+MB) or more", refused.stderr)
    assert named is not None, refused.stderr
    done = run_installed(*words, named[1])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["peak_memory_bytes"] <= parse_bytes(named[1])


@pytest.mark.slow
def test_a_plan_of_a_network_counts_what_is_evaluated(
    tmp_path: Path, run_installed: Run, graphsys_command: str
) -> None:
    graph, out = tmp_path / "graph", tmp_path / "run"
    recipes.build("planted", graph, num_nodes=1 << 16, dim=64)
    settings = {"model": "sage", "dim": 256, "epochs": 1, "batch_size": 64, "threads": 2}
    words = ["train", "gnn", graph, "-o", out, "--json"]
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]

    def planned(*changes: str) -> int:
        done = run_installed(*words, *changes, "--dry-run")
        return int(json.loads(done.stdout)["metrics"]["planned_memory_bytes"])

    told = planned()
    peak, _ = peak_of(graphsys_command, *words)
    rows = 4 * 256 << 16
    assert told > planned("--set", "eval_every=0") + rows
    assert 0.75 * told <= peak <= told
