"""Small graphs on which trials take a moment, and searches over both trainers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store

EMBEDDING: dict[str, Any] = {
    "trainer": "embedding",
    "settings": {
        "epochs": 3,
        "eval_every": 1,
        "deterministic": True,
        "num_batch_negatives": 0,
        "num_uniform_negatives": 20,
        "init_scale": 0.1,
    },
    "search": {"lr": {"low": 0.001, "high": 0.5, "log": True}, "dim": [4, 8]},
}
GNN: dict[str, Any] = {
    "trainer": "gnn",
    "settings": {"epochs": 4, "batch_size": 0, "deterministic": True},
    "search": {"lr": {"low": 0.001, "high": 0.1, "log": True}, "model": ["sage", "gcn"]},
}


def _pairs() -> Iterator[tuple[int, int]]:
    yield from ((k, (k + step) % 60) for k in range(60) for step in (1, 3, 30))


@pytest.fixture(scope="session")
def ring_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store: a ring with chords, 3 classes, edges and nodes of 3 splits."""
    path = tmp_path_factory.mktemp("tuned") / "ring"
    x = np.random.default_rng(0).random((60, 8), dtype=np.float32)
    x[np.arange(60), np.arange(60) % 3] += 1
    split = pa.array(["train", "train", "valid", "test"] * 15)
    nodes = NodeChunk(
        ids=np.arange(60),
        columns={"label": np.arange(60) % 3, "split": split},
        features={"x": x},
    )
    pairs = list(_pairs())
    held = {"valid": pairs[5::15], "test": pairs[11::15]}
    train = [it for it in pairs if it not in held["valid"] + held["test"]]
    chunks = [edge_chunk(some, split=name) for name, some in held.items()]
    make_store(path, nodes, edge_chunk(train), *chunks, is_directed=False)
    return path


@pytest.fixture
def ring(ring_path: Path) -> Graph:
    """Return that graph."""
    return Graph(ring_path)
