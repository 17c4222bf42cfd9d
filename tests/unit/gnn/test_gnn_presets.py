"""Shipped presets train on a tiny graph of their kind, and what they learned is told."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.datasets.generators.pins import pins
from graphsys.gnn import GnnConfig, load_config, preset_names
from graphsys.storage import Graph
from tests.unit.gnn.event_stores import event_store, favorites
from tests.unit.gnn.small_graphs import rings_and_trees, store_of

SMALL = ["epochs=1", "dim=16", "threads=1"]


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


def papers(folder: Path) -> Graph:
    """Return papers with features, two classes and a split; authors and subjects."""
    num = 60
    nodes = pa.table(
        {
            "id": range(num),
            "x": pa.FixedSizeListArray.from_arrays(pa.array(np.ones(240, np.float32)), 4),
            "label": [k % 2 for k in range(num)],
            "split": [("train", "valid", "test")[k % 3] for k in range(num)],
        }
    )
    links = {
        ("paper", "by", "author"): pa.table(
            {"src": range(num), "dst": [k % 7 for k in range(num)]}
        ),
        ("paper", "on", "subject"): pa.table(
            {"src": range(num), "dst": [k % 4 for k in range(num)]}
        ),
    }
    return gs.ingest(out=folder, nodes={"paper": nodes}, edges=links).graph


def bought(folder: Path) -> Graph:
    """Return two kinds of undirected edges between items, some held out with negatives."""
    links = {("item", kind, "item"): edges(40) for kind in ("viewed", "bought")}
    return gs.ingest(
        out=folder, edges=links, undirected=True, split="0.8,0.1,0.1", negatives=1
    ).graph


def boards(folder: Path) -> Graph:
    """Return pins with features on boards."""
    return gs.ingest(pins(120, 30, pins_per_board=10, num_topics=4), folder).graph


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_trains_and_is_measured(name: str, tmp_path: Path) -> None:
    config = load_config(preset=name, overrides=SMALL)
    typed = {"acm": papers, "gatne-amazon-gatne": bought, "pins": boards}
    make = typed.get(name.partition("-")[0], typed.get(name))
    if make is not None:
        graph = make(tmp_path / "g")
    elif config.task in ("temporal_link_prediction", "change_prediction"):
        graph = event_store(tmp_path / "g", favorites(60))
    elif config.task == "graph_classification":
        graph = store_of(tmp_path / "g", rings_and_trees())
    elif config.task == "node_classification":
        graph = labeled(tmp_path / "g", config.split)
    else:
        graph = linked(tmp_path / "g", config.edge_type)
    gs.gnn.train(graph, config, tmp_path / "run")
    found = gs.gnn.evaluate(tmp_path / "run")["metrics"]
    assert 0 <= found[measure(config)] <= 1


def measure(config: GnnConfig) -> str:
    """Return what the run of a preset is measured by."""
    if config.model == "gatne" or config.task == "change_prediction":
        return "roc_auc"
    told = {"recommendation": "recall@20"}
    is_of_classes = config.task.endswith("_classification")
    return "accuracy" if is_of_classes else told.get(config.task, "mrr")
