"""Weights of edges reach every model and trainer, or are refused where nothing is drawn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys import embedding, gnn
from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.gnn.model_spec import model_names, spec_of
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store

NUM = 24
Stores = Callable[..., tuple[Graph, Graph]]


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    """Return a function that makes two graphs, in which other edges are heavy."""

    def make(**features: int) -> tuple[Graph, Graph]:
        made = []
        for name, light in (("even", 0), ("odd", 1)):
            rng = np.random.default_rng(0)
            nodes = NodeChunk(
                ids=np.arange(NUM),
                columns={
                    "label": pa.array(["x", "y"] * (NUM // 2)),
                    "split": pa.array(["train", "train", "valid", "test"] * (NUM // 4)),
                },
                features={
                    name: rng.normal(0, 1, (NUM, dim)).astype(np.float32)
                    for name, dim in features.items()
                },
            )
            parts: list[Any] = [nodes]
            for relation in ("likes", "knows"):
                for split, count in (("train", 120), ("valid", 20), ("test", 20)):
                    pairs = rng.integers(0, NUM, (count, 2)).tolist()
                    kind = EdgeType("node", relation, "node")
                    weight = np.where(np.arange(count) % 2 == light, 1e-6, 1.0)
                    columns = {"time": np.arange(count), "weight": weight}
                    parts.append(edge_chunk(pairs, kind, split=split, **columns))
            make_store(tmp_path / name, *parts)
            made.append(Graph(tmp_path / name))
        return made[0], made[1]

    return make


def settings_of(model: str, **changes: Any) -> gnn.GnnConfig:
    """Return settings of a small training that goes with a model."""
    spec = spec_of(model)
    task = "link_prediction" if spec.make_hop is None else "node_classification"
    if spec.make_graph_model is not None:
        task = "graph_classification"
    if spec.make_stream is not None:
        task = "temporal_link_prediction"
    kept: dict[str, Any] = {
        "model": model,
        "task": task,
        "epochs": 2,
        "dim": 8,
        "layers": 2,
        "fanouts": (1, 1),
        "batch_size": 8,
        "deterministic": True,
        "threads": 1,
    }
    if task == "link_prediction" and spec.messages != "relations":
        kept["edge_type"] = "likes"
    if model == "evolving":
        kept["task"] = "change_prediction"
    if model == "bem":
        kept["prior"] = "a"
    return gnn.GnnConfig(**kept | changes)


def losses(graphs: tuple[Graph, Graph], config: gnn.GnnConfig, folder: Path) -> list[float]:
    reports = [
        gnn.train(graph, config, folder / f"run{k}") for k, graph in enumerate(graphs)
    ]
    return [report.metrics["loss"] for report in reports]


@pytest.mark.parametrize("model", model_names())
def test_weights_reach_a_model_or_are_refused(
    model: str, stores: Stores, tmp_path: Path
) -> None:
    spec = spec_of(model)
    graphs = stores(a=3, b=3) if model != "lightgcn" else stores()
    draws = spec.make_stream is None and spec.make_graph_model is None
    draws = draws and spec.messages in ("edges", "relations") and not spec.is_whole_graph
    if not draws:
        with pytest.raises(ConfigError, match=r"weighted: got [tT]rue"):
            settings_of(model, weighted=True, **usual(model))
        return
    plain = losses(graphs, settings_of(model), tmp_path / "plain")
    assert plain[0] == plain[1]
    drawn = losses(graphs, settings_of(model, weighted=True), tmp_path / "drawn")
    assert drawn[0] != drawn[1]
    with pytest.raises(ConfigError, match="weighted: got true with model"):
        settings_of(model, weighted=True, batch_size=0, fanouts=())


@pytest.mark.parametrize("model", ["sage", "gcn"])
@pytest.mark.parametrize("iterations", [0, 1])
def test_weights_reach_nodes_that_share_their_neighbors(
    model: str, iterations: int, stores: Stores, tmp_path: Path
) -> None:
    """Of pairs that are hidden from their own batch, too, and of whole rows."""
    graphs = stores(a=3)
    labor = {"sampler": "labor", "labor_iterations": iterations}
    plain = losses(graphs, settings_of(model, **labor), tmp_path / "plain")
    assert plain[0] == plain[1]
    for fanouts in ((1, 1), (-1, -1)):
        config = settings_of(model, **labor, weighted=True, fanouts=fanouts)
        drawn = losses(graphs, config, tmp_path / f"drawn{fanouts[0]}")
        assert drawn[0] != drawn[1]


def usual(model: str) -> dict[str, Any]:
    """Return what else a model that draws no neighbors wants."""
    if spec_of(model).make_graph_model is not None:
        return {"fanouts": ()}
    return (
        {"batch_size": 0, "fanouts": ()} if spec_of(model).messages == "metapaths" else {}
    )


def test_weights_are_factors_on_the_loss_of_an_embedding(
    stores: Stores, tmp_path: Path
) -> None:
    graphs, found = stores(), {}
    for uses in (True, False):
        config = embedding.EmbeddingConfig(
            dim=8, epochs=2, deterministic=True, edge_weights=uses
        )
        for k, graph in enumerate(graphs):
            run = tmp_path / f"{uses}{k}"
            embedding.train(graph, config, run)
            found[uses, k] = embedding.open_run(run).rows("node", 0)
    assert not np.array_equal(found[True, 0], found[True, 1])
    np.testing.assert_array_equal(found[False, 0], found[False, 1])
