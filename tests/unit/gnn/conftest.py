"""Small graphs whose classes can be learned, as stores."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.types import EdgeType
from graphsys.gnn.data.message_graph import MessageGraph
from graphsys.gnn.training.step import Stepper
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.multiplex_graphs import items_store

NUM_NODES = 48
Store = Callable[..., Graph]


@pytest.fixture
def groups(tmp_path: Path) -> Store:
    """Return a function that makes 3 groups of 16 nodes, most edges within a group.

    Features are noisy, labels the groups; 24 nodes train, 12 valid, 12 test.
    """

    def make(partitions: int = 1, **changes: Any) -> Graph:
        rng = np.random.default_rng(7)
        label = np.arange(NUM_NODES) % 3
        pairs = set()
        for v in range(NUM_NODES):
            for u in range(v):
                if rng.random() < (0.3 if label[u] == label[v] else 0.03):
                    pairs.add((u, v))
        x = rng.normal(0, 0.7, (NUM_NODES, 8)).astype(np.float32)
        x[np.arange(NUM_NODES), label] += 1
        split = np.array(["train", "valid", "train", "test"])[np.arange(NUM_NODES) // 3 % 4]
        columns = {"label": label.astype(np.int64), "split": pa.array(split.tolist())}
        nodes = NodeChunk(
            ids=np.arange(100, 100 + NUM_NODES),
            columns={**columns, **changes.pop("columns", {})},
            features={"x": changes.pop("x", x)},
        )
        shifted = [(100 + u, 100 + v) for u, v in sorted(pairs)]
        path = tmp_path / f"groups{partitions}-{len(list(tmp_path.iterdir()))}"
        make_store(
            path,
            nodes,
            edge_chunk(shifted, **changes),
            is_directed=False,
            partitions=partitions,
        )
        return Graph(path)

    return make


@pytest.fixture
def slow_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every batch take 40 ms to sample and 20 ms to train at least."""
    sample, loss = MessageGraph.sample, Stepper._loss

    def slow_sample(*arguments: Any, **keys: Any) -> Any:
        time.sleep(0.04)
        return sample(*arguments, **keys)

    def slow_loss(*arguments: Any) -> Any:
        time.sleep(0.02)
        return loss(*arguments)

    monkeypatch.setattr(MessageGraph, "sample", slow_sample)
    monkeypatch.setattr(Stepper, "_loss", slow_loss)


@pytest.fixture
def library(tmp_path: Path) -> Graph:
    """Return readers who read books (held-out edges too); only books have features.

    Readers and books are of two tastes, and readers read what is of theirs.
    """
    rng = np.random.default_rng(1)
    reads = EdgeType("reader", "reads", "book")
    pairs = [(r, b) for r in range(30) for b in range(24) if (r + b) % 2 == 0]
    pairs = [pairs[k] for k in rng.permutation(len(pairs))[:260]]
    x = rng.normal(0, 0.5, (24, 6)).astype(np.float32)
    x[:, 0] += np.arange(24) % 2
    make_store(
        tmp_path / "library",
        NodeChunk(
            ids=np.arange(24),
            node_type="book",
            columns={
                "label": pa.array([f"taste {b % 2}" for b in range(24)]),
                "split": pa.array(["train"] * 14 + ["valid"] * 4 + ["test"] * 6),
            },
            features={"x": x},
        ),
        NodeChunk(ids=np.arange(30), node_type="reader"),
        edge_chunk(pairs[:200], reads),
        edge_chunk(pairs[200:230], reads, "valid"),
        edge_chunk(pairs[230:], reads, "test"),
        partitions={"book": 2, "reader": 1},
    )
    return Graph(tmp_path / "library")


@pytest.fixture
def items(tmp_path: Path) -> Graph:
    """Return items in two relations that disagree, bought together and viewed together."""
    return items_store(tmp_path / "items")
