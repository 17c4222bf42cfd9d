"""Shipped presets train on a tiny graph of their kind, and what they learned is told."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.gnn import load_config, preset_names
from graphsys.storage.reader import Graph

SMALL = ["epochs=1", "dim=16", "threads=1"]
TYPED = ("acm-", "gatne-", "pins-")
"""Presets of graphs with several types of edges, which have tests of their own models."""
PRESETS = [name for name in preset_names() if not name.startswith(TYPED)]


def edges(size: int) -> pa.Table:
    """Return a ring of chords."""
    pairs = [(k, (k + s) % size) for s in (1, 2, 5) for k in range(size)]
    return pa.table({"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]})


def labeled(folder: Path, split: str) -> Graph:
    """Return nodes with features, two classes and a split."""
    nodes = pa.table(
        {
            "id": range(60),
            "x": pa.FixedSizeListArray.from_arrays(pa.array(np.ones(240, np.float32)), 4),
            "label": [k % 2 for k in range(60)],
            split: [("train", "valid", "test")[k % 3] for k in range(60)],
        }
    )
    links = {("node", "edge", "node"): edges(60)}
    return gs.ingest(out=folder, nodes={"node": nodes}, edges=links).graph


def linked(folder: Path, relation: str) -> Graph:
    """Return edges of which some are held out, of users and items where they are named."""
    ends = ("user", relation, "item") if relation else ("node", "edge", "node")
    return gs.ingest(out=folder, edges={ends: edges(40)}, split="0.8,0.1,0.1").graph


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_trains_and_is_measured(name: str, tmp_path: Path) -> None:
    config = load_config(preset=name, overrides=SMALL)
    is_of_nodes = config.task == "node_classification"
    graph = (
        labeled(tmp_path / "g", config.split)
        if is_of_nodes
        else linked(tmp_path / "g", config.edge_type)
    )
    gs.gnn.train(graph, config, tmp_path / "run")
    found = gs.gnn.evaluate(tmp_path / "run")["metrics"]
    metric = {"node_classification": "accuracy", "link_prediction": "mrr"}
    assert 0 <= found[metric.get(config.task, "recall@20")] <= 1
