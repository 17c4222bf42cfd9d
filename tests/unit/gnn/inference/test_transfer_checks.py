"""Networks on graphs that have changed since: with new nodes, or with other features."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphsys import gnn
from graphsys.cli import main as cli
from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.core.types import EdgeType
from graphsys.storage import Graph, NodeChunk
from graphsys.storage.ingest.append import append
from graphsys.storage.manifest import checksum_of
from tests.stores import ListSource, edge_chunk, make_store, pairs_of
from tests.unit.gnn.conftest import NUM_NODES, Store
from tests.unit.gnn.training.test_api import config_of

NEW = np.arange(900, 906)


def grown(graph: Graph, path: Path, x: Any = None, **columns: Any) -> Graph:
    """Return the groups with 6 more nodes, two of each group, without labels."""
    group = np.arange(6) % 3
    if x is None:
        x = np.eye(8, dtype=np.float32)[group] + 0.1
    node = NodeChunk(
        ids=NEW,
        columns={
            "label": pa.array(columns.get("label", [None] * 6), pa.int64()),
            "split": pa.array(columns.get("split", [None] * 6), pa.string()),
        },
        features={"x": x},
    )
    old = {g: [v for v in range(NUM_NODES) if v % 3 == g] for g in range(3)}
    pairs = [(int(NEW[k]), 100 + v) for k in range(6) for v in old[k % 3][:5]]
    append(graph, ListSource([node, edge_chunk(pairs)], is_directed=False), path)
    return Graph(path)


def test_new_nodes_are_classified_by_what_they_are_near(
    groups: Store, tmp_path: Path
) -> None:
    graph = groups(2)
    gnn.train(graph, config_of(model="gcn"), tmp_path / "run")
    before = gnn.predict(tmp_path / "run", [100 + v for v in range(20, 40)])
    more = grown(graph, tmp_path / "more")
    found = gnn.predict(tmp_path / "run", NEW.tolist(), graph=more)
    assert found["id"].to_pylist() == NEW.tolist()
    assert found["prediction"].to_pylist() == [0, 1, 2, 0, 1, 2]
    after = gnn.predict(tmp_path / "run", before["id"].to_pylist(), graph=more)
    assert after["prediction"].to_pylist() == before["prediction"].to_pylist()

    (tmp_path / "new.txt").write_text("\n".join(map(str, NEW)) + "\n")
    out = tmp_path / "new.parquet"
    words = ["predict", tmp_path / "run", "--graph", more.path, "--nodes"]
    assert not cli.main([*map(str, words), str(tmp_path / "new.txt"), "-o", str(out)])
    assert pq.read_table(out).equals(found)


def test_a_network_is_evaluated_on_the_graph_trained_on(
    groups: Store, tmp_path: Path
) -> None:
    graph = groups(1)
    gnn.train(graph, config_of(epochs=1), tmp_path / "run")
    more = grown(graph, tmp_path / "more")
    with pytest.raises(ConfigError, match="was trained on another graph"):
        gnn.evaluate(tmp_path / "run", graph=more)


def test_numbers_keep_the_units_of_the_training(groups: Store, tmp_path: Path) -> None:
    graph = groups(1)
    config = config_of(task="regression", epochs=3)
    gnn.train(graph, config, tmp_path / "run")
    labeled: Any = {"label": [1000] * 6, "split": ["train"] * 6}
    more = grown(graph, tmp_path / "more", **labeled)
    opened = gnn.open_run(tmp_path / "run", graph=more)
    task = opened.context.task
    train = np.array([v % 3 for v in range(NUM_NODES) if v // 3 % 4 in (0, 2)])
    assert task.units == pytest.approx([train.mean(), train.std()])


def bare(graph: Graph, path: Path) -> Graph:
    """Return a graph with the nodes, features and edges of another, and no columns."""
    x = np.concatenate(
        [graph.features("node", p, "x") for p in range(graph.num_partitions("node"))]
    )
    nodes = NodeChunk(ids=graph.node_ids("node").to_numpy(), features={"x": x})
    edges = edge_chunk(pairs_of(graph).elements())
    return make_store(path, nodes, edges, is_directed=False).graph


@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        ({}, {}),
        ({"task": "regression"}, {}),
        ({"class_weights": "balanced"}, {"label": [[v % 3, 3] for v in range(NUM_NODES)]}),
    ],
    ids=["classes", "numbers", "several classes"],
)
def test_a_graph_needs_no_labels_to_be_predicted(
    groups: Store, tmp_path: Path, settings: Any, columns: Any
) -> None:
    graph = groups(2, columns=columns)
    gnn.train(graph, config_of(epochs=4, **settings), tmp_path / "run")
    known = gnn.predict(tmp_path / "run")
    found = gnn.predict(tmp_path / "run", graph=bare(graph, tmp_path / "bare"))
    assert found.schema == known.schema
    wanted, got = (table.sort_by("id")["prediction"] for table in (known, found))
    if settings == {"task": "regression"}:
        np.testing.assert_allclose(got, wanted, rtol=1e-4)
    else:
        assert got.to_pylist() == wanted.to_pylist()


def test_another_graph_has_nodes_of_the_type(groups: Store, tmp_path: Path) -> None:
    gnn.train(groups(1), config_of(epochs=1), tmp_path / "run")
    reader = NodeChunk(ids=NEW, node_type="reader")
    kind = EdgeType("reader", "knows", "reader")
    other = make_store(tmp_path / "other", reader, edge_chunk([(900, 901)], kind)).graph
    with pytest.raises(ConfigError, match=r"has nodes of type reader, the run .*'node'"):
        gnn.predict(tmp_path / "run", graph=other)


def test_labels_of_another_graph_are_not_looked_at(groups: Store, tmp_path: Path) -> None:
    graph = groups(1)
    gnn.train(graph, config_of(model="gcn"), tmp_path / "run")
    more = grown(graph, tmp_path / "more", label=[7] * 6)
    found = gnn.predict(tmp_path / "run", NEW.tolist(), graph=more)
    assert found["prediction"].to_pylist() == [0, 1, 2, 0, 1, 2]


def test_runs_that_do_not_say_whose_rows_they_have_look_at_labels(
    groups: Store, tmp_path: Path
) -> None:
    graph = groups(1)
    gnn.train(graph, config_of(epochs=1), tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    state = json.loads(file.read_text())
    assert (state.pop("node_type"), state.pop("is_multi")) == ("node", False)
    del state["checksum"]
    file.write_text(json.dumps(state | {"checksum": checksum_of(state)}))
    more = grown(graph, tmp_path / "more", label=[7] * 6)
    with pytest.raises(ConfigError, match="has classes 0, 1, 2, 7, the run"):
        gnn.predict(tmp_path / "run", NEW.tolist(), graph=more)


@pytest.mark.parametrize(
    ("settings", "changes", "message"),
    [
        ({}, {"x": np.full((6, 8), np.nan, np.float32)}, "of 6 of 54 nodes"),
    ],
)
def test_graphs_that_do_not_fit(
    groups: Store, tmp_path: Path, settings: Any, changes: Any, message: str
) -> None:
    graph = groups(1)
    gnn.train(graph, config_of(epochs=1, **settings), tmp_path / "run")
    more = grown(graph, tmp_path / "more", **changes)
    with pytest.raises((ConfigError, InvalidGraphError), match=re.escape(message)):
        gnn.predict(tmp_path / "run", NEW.tolist(), graph=more)


def test_rows_and_features_are_of_the_graph_trained_on(
    groups: Store, library: Graph, tmp_path: Path
) -> None:
    graph = groups(1)
    gnn.train(graph, config_of(epochs=1), tmp_path / "run")
    wide = groups(1, x=np.ones((NUM_NODES, 5), np.float32))
    with pytest.raises(ConfigError, match="does not fit the network of the run"):
        gnn.predict(tmp_path / "run", graph=wide)
    config = gnn.GnnConfig(
        task="link_prediction", dim=8, epochs=1, num_negatives=5, threads=1
    )
    gnn.train(library, config, tmp_path / "links")
    append(
        library,
        ListSource([NodeChunk(ids=np.arange(50, 53), node_type="reader")]),
        tmp_path / "more",
    )
    with pytest.raises(ConfigError, match="a learned row for each node of type 'reader'"):
        gnn.predict(tmp_path / "links", graph=Graph(tmp_path / "more"))
