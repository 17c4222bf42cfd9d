"""A killed training of a graph neural network goes on as if nothing had happened."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from graphsys import gnn
from graphsys.storage import Graph, NodeChunk
from tests.marks import slow_but
from tests.stores import edge_chunk, make_store

pytestmark = pytest.mark.kill
SETTINGS = (
    "epochs=40",
    "dim=16",
    "batch_size=16",
    "fanouts=[4,4]",
    "dropout=0.2",
    "deterministic=true",
    "checkpoint_seconds=0",
    "threads=1",
)
DEADLINE_S = 120


def make_graph(path: Path, *, has_features: bool = True) -> Graph:
    """Return 90 nodes of 3 classes on a ring with chords."""
    x = np.random.default_rng(0).random((90, 8), dtype=np.float32)
    nodes = NodeChunk(
        ids=np.arange(90),
        columns={
            "label": np.arange(90) % 3,
            "split": pa.array(["train", "train", "valid"] * 30),
        },
        features={"x": x} if has_features else {},
    )
    pairs = [(k, (k + step) % 90) for k in range(90) for step in (1, 3, 30)]
    make_store(path, nodes, edge_chunk(pairs), is_directed=False)
    return Graph(path)


def progress_of(run: Path) -> tuple[int, int]:
    """Return epochs and batches of the last checkpoint; a commit is one rename."""
    try:
        state = json.loads((run / "run.json").read_text())
    except FileNotFoundError:
        return -1, 0
    return state["epoch"], state["batch"]


@pytest.mark.parametrize("rows", slow_but(["disk"], ["features", "memory", "disk"]))
def test_killed_training_resumes_bit_by_bit(
    tmp_path: Path, graphsys_command: str, rows: str
) -> None:
    """Nodes have features, or rows that are learned in memory or on disk."""
    epoch = 5
    graph = make_graph(tmp_path / "g", has_features=rows == "features")
    run = tmp_path / "run"
    settings = (*SETTINGS, f"learned_rows={'disk' if rows == 'disk' else 'memory'}")
    options = [part for setting in settings for part in ("--set", setting)]
    command = [graphsys_command, "train", "gnn", str(graph.path), "-o", str(run), *options]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    began = time.monotonic()
    while progress_of(run) < (epoch, 1):
        assert process.poll() is None
        assert time.monotonic() - began < DEADLINE_S
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    killed_at, _ = progress_of(run)
    assert epoch <= killed_at < 40
    assert gnn.evaluate(run, split="valid")["metrics"]["num_nodes"] == 30
    report = gnn.train(graph, None, run, resume=True)
    assert report.epochs == 40
    whole = gnn.train(graph, gnn.load_config(overrides=settings), tmp_path / "whole")
    assert report.metrics["loss"] == whole.metrics["loss"]
    opened = [gnn.open_run(path) for path in (run, tmp_path / "whole")]
    assert np.array_equal(opened[0].output(), opened[1].output())
    ours, theirs = (each.context.network.state_dict() for each in opened)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
