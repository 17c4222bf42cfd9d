"""Nodes that hear from nobody: alone in a batch they are what they are among others."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys import gnn
from graphsys.core.types import EdgeType
from graphsys.gnn import GnnConfig, layerwise_passes
from graphsys.storage import NodeChunk
from tests.stores import edge_chunk, make_store

READS = EdgeType("reader", "reads", "book")
NUM_READERS, NUM_BOOKS, NUM_LONELY = 30, 12, 9


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return readers who read books; the last ones, which read nothing, train too."""
    path: Path = tmp_path_factory.mktemp("lonely") / "library"
    rng = np.random.default_rng(2)
    pairs = rng.integers(0, (NUM_READERS - NUM_LONELY, NUM_BOOKS), (80, 2)).tolist()
    features = rng.normal(0, 1, (NUM_READERS, 5)).astype(np.float32)
    make_store(
        path,
        NodeChunk(
            ids=np.arange(NUM_READERS),
            node_type="reader",
            columns={
                "label": pa.array([f"taste {r % 2}" for r in range(NUM_READERS)]),
                "split": pa.array(["train", "test", "valid"] * (NUM_READERS // 3)),
            },
            features={"x": features},
        ),
        NodeChunk(ids=np.arange(NUM_BOOKS), node_type="book"),
        edge_chunk(pairs, READS),
    )
    return path


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "sage"},
        {"model": "sage", "aggregator": "lstm"},
        {"model": "sage", "aggregator": "max"},
        {"model": "sage", "residual": True},
        {"model": "gcn"},
        {"model": "gat"},
        {"model": "rgcn"},
        {"model": "hgt"},
        {"model": "sage", "norm": "layer"},
        {"model": "sage", "learned_rows": "disk"},
        {"model": "sage", "cache": "lru", "cache_memory": "1kB"},
    ],
    ids=lambda it: " ".join(map(str, it.values())),
)
def test_a_batch_of_lonely_nodes_trains_and_has_rows(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    config = GnnConfig(
        dim=8,
        fanouts=(3, 3),
        batch_size=1,
        epochs=1,
        node_type="reader",
        checkpoint_seconds=3600,
        **settings,
    )
    report = gnn.train(library, config, tmp_path / "run")
    assert np.isfinite(report.metrics["loss"])
    among_others = gnn.open_run(tmp_path / "run").output()
    monkeypatch.setattr(layerwise_passes, "_NODES_AT_A_TIME", 1)
    alone = gnn.open_run(tmp_path / "run").output()
    assert np.isfinite(among_others).all()
    assert alone == pytest.approx(among_others, abs=1e-5)


@pytest.mark.parametrize("model", ["sage", "rgcn", "hgt"])
def test_lonely_nodes_may_be_all_that_is_asked(
    library: Path, tmp_path: Path, model: str
) -> None:
    config = GnnConfig(
        model=model, dim=8, fanouts=(3, 3), batch_size=4, epochs=1, node_type="reader"
    )
    gnn.train(library, config, tmp_path / "run")
    opened = gnn.open_run(tmp_path / "run")
    ids = list(range(NUM_READERS - NUM_LONELY, NUM_READERS))
    lonely = opened.graph.lookup("reader", ids).astype(np.int64)
    alone = opened.output(lonely[:1], node_type="reader")
    assert alone == pytest.approx(opened.output()[lonely[:1]], abs=1e-5)
