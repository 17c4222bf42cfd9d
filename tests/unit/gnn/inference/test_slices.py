"""Rows of a few nodes: what they need is computed, not what all nodes need."""

from pathlib import Path

import numpy as np
import pytest

import graphsys as gs
from graphsys import gnn
from graphsys.core.progress import Progress
from graphsys.datasets.recipes.build import build

NODES = 3000


class Totals(Progress):
    """Remembers how many nodes each stage went over."""

    def __init__(self) -> None:
        self.seen: list[int | None] = []

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        self.seen.append(total)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> gs.Graph:
    """A ring, so that two hops around a node are five nodes."""
    numbers = np.arange(NODES)
    folder = tmp_path_factory.mktemp("ring") / "g"
    edges = numbers, (numbers + 1) % NODES
    gs.ingest(edges, folder, undirected=True, partitions=2)
    return gs.open(folder)


@pytest.mark.parametrize("model", ["sage", "gat", "pinsage"])
def test_rows_of_some_nodes_are_those_of_all(
    ring: gs.Graph, tmp_path: Path, model: str
) -> None:
    config = gnn.GnnConfig(
        task="link_prediction",
        model=model,
        dim=8,
        epochs=1,
        batch_size=512,
        epoch_batches=2,
        num_negatives=8,
        eval_every=0,
        fanouts=(2, 2),
    )
    gnn.train(ring, config, tmp_path / "run")
    wanted = [1500, 7, 2999, 7]
    whole = gnn.predict(tmp_path / "run").to_pandas().set_index("id")["embedding"]
    totals = Totals()
    found = gnn.predict(tmp_path / "run", wanted, progress=totals).to_pandas()
    assert found["id"].tolist() == wanted
    for row, node in zip(found["embedding"], wanted, strict=True):
        assert np.allclose(row, whole[node], atol=1e-6)
    assert len(totals.seen) == 2
    assert totals.seen[1] == 4
    assert 6 <= int(totals.seen[0] or 0) <= 9  # three nodes and their neighbors


def test_types_that_are_not_read_are_left_out(tmp_path: Path) -> None:
    graph = build("demo", tmp_path / "demo").graph
    config = gnn.GnnConfig(
        task="link_prediction",
        model="rgcn",
        dim=8,
        epochs=1,
        epoch_batches=2,
        edge_type=graph.edge_type_name(graph.edge_types[0]),
        num_negatives=8,
        eval_every=0,
    )
    gnn.train(graph, config, tmp_path / "run")
    whole = gnn.predict(tmp_path / "run").to_pandas().set_index("id")["embedding"]
    some = whole.index[:3].tolist()
    found = gnn.predict(tmp_path / "run", some).to_pandas()
    for row, node in zip(found["embedding"], some, strict=True):
        assert np.allclose(row, whole[node], atol=1e-6)
