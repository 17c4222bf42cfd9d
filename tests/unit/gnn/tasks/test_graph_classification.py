"""Classes of graphs: learned, evaluated, predicted, resumed, refused."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys import gnn
from graphsys.core.errors import (
    BudgetError,
    ConfigError,
    InvalidGraphError,
    UnknownNameError,
)
from graphsys.core.types import EdgeType
from graphsys.datasets import recipes
from graphsys.gnn.training.api import build_context
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.small_graphs import (
    FIRST,
    SmallGraph,
    graph_config,
    ring,
    rings_and_trees,
    store_of,
    tree,
)
from tests.unit.gnn.training.test_api import (
    StopAfter,
    StoppedError,
    are_equal,
    weights_of,
)


@pytest.fixture
def rings(tmp_path: Path) -> Graph:
    return store_of(tmp_path / "rings", rings_and_trees())


@pytest.mark.parametrize("readout", ["sum", "mean", "max"])
def test_rings_and_trees_are_told_apart(rings: Graph, tmp_path: Path, readout: Any) -> None:
    """Their numbers of nodes are the same, so that others' nodes tell none."""
    config = graph_config(readout=readout, eval_every=5, keep="best")
    report = gnn.train(rings, config, tmp_path / "run")
    assert report.metrics["valid_accuracy"] == 1
    found = gnn.evaluate(tmp_path / "run")["metrics"]
    assert (found["accuracy"], found["roc_auc"], found["num_graphs"]) == (1, 1, 12)


def test_every_graph_is_given_a_class_and_its_probability(
    rings: Graph, tmp_path: Path
) -> None:
    gnn.train(rings, graph_config(), tmp_path / "run")
    found = gnn.predict(tmp_path / "run")
    assert sorted(found.column("id").to_pylist()) == list(range(FIRST, FIRST + 60))
    assert min(found.column("probability").to_pylist()) > 0.5
    some = gnn.predict(tmp_path / "run", [FIRST + 1, FIRST, FIRST + 1])
    assert some.column("prediction").to_pylist() == ["tree", "ring", "tree"]
    with pytest.raises(UnknownNameError, match="7"):
        gnn.predict(tmp_path / "run", [7])


def test_graphs_that_were_not_there_are_classified(rings: Graph, tmp_path: Path) -> None:
    gnn.train(rings, graph_config(), tmp_path / "run")
    rng = np.random.default_rng(9)
    others = store_of(tmp_path / "new", [ring(11), tree(11, "train", rng), ring(7)])
    found = gnn.predict(tmp_path / "run", [FIRST, FIRST + 1, FIRST + 2], graph=others)
    assert found.column("prediction").to_pylist() == ["ring", "tree", "ring"]


def test_partitions_do_not_change_what_is_learned(tmp_path: Path) -> None:
    """The batches are of the same graphs; sums of floats have another order at most."""
    found = []
    for parts in (1, 3):
        graph = store_of(tmp_path / f"g{parts}", rings_and_trees(), partitions=parts)
        gnn.train(graph, graph_config(epochs=30), tmp_path / f"run{parts}")
        found.append(gnn.evaluate(tmp_path / f"run{parts}")["metrics"]["accuracy"])
    assert found == [1, 1]


@pytest.mark.parametrize("model", ["gin", "sagpool", "diffpool"])
def test_a_resumed_run_is_equal_bit_by_bit(
    rings: Graph, tmp_path: Path, model: str
) -> None:
    settings: dict[str, Any] = {"epochs": 4, "dropout": 0.3, "norm": "batch"}
    settings["model"] = model
    config = graph_config(
        **settings, deterministic=True, checkpoint_seconds=0, eval_every=1, keep="best"
    )
    gnn.train(rings, config, tmp_path / "whole")
    with pytest.raises(StoppedError):
        gnn.train(rings, config, tmp_path / "run", progress=StopAfter(7))
    assert gnn.train(rings, None, tmp_path / "run", resume=True).epochs == 4
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))


def test_a_budget_is_refused_with_one_that_works(rings: Graph, tmp_path: Path) -> None:
    config = graph_config(epochs=1)
    with pytest.raises(BudgetError, match=r"give --memory \d+MB or more") as refused:
        gnn.train(rings, config, tmp_path / "run", memory="1MB")
    assert "disk" not in str(refused.value)  # there are no rows to put there
    enough = re.findall(r"--memory (\d+MB)", str(refused.value))[0]
    gnn.train(rings, config, tmp_path / "run", memory=enough)
    with pytest.raises(BudgetError, match="memory: evaluating needs"):
        gnn.evaluate(tmp_path / "run", memory="1MB")
    assert gnn.evaluate(tmp_path / "run", memory="8GB")["metrics"]["num_graphs"] == 12
    planned = gnn.train(rings, config, tmp_path / "no", dry_run=True).metrics
    assert planned["planned_batches"] == 5  # of 36 graphs
    assert planned["planned_memory_bytes"] > 0


def folds_of(graph: Graph, fold: int, **changes: Any) -> dict[str, set[Any]]:
    """Return the ids of graphs by split."""
    config = graph_config(folds=4, fold=fold, **changes)
    task: Any = build_context(graph, config).task
    return {
        split: set(graph.ids_of("graph", numbers).to_pylist())
        for split, numbers in task.labels.splits.items()
    }


def test_folds_hold_out_every_graph_once_with_as_many_of_each_class(
    tmp_path: Path,
) -> None:
    graphs = [SmallGraph(2, [(0, 1)], "abb"[k % 3], "") for k in range(39)]
    graphs += [SmallGraph(2, [(0, 1)], None, "")]
    graph = store_of(tmp_path / "g", graphs)
    held_out: list[set[Any]] = []
    for fold in range(4):
        splits = folds_of(graph, fold)
        assert splits.keys() == {"train", "test"}
        assert splits["train"] | splits["test"] == set(range(FIRST, FIRST + 39))
        assert not splits["train"] & splits["test"]
        counts = [sum("abb"[(k - FIRST) % 3] == c for k in splits["test"]) for c in "ab"]
        assert counts[0] in (3, 4)
        assert counts[1] in (6, 7)
        assert len(splits["test"]) in (9, 10)
        held_out.append(splits["test"])
    assert sum(map(len, held_out)) == 39
    assert folds_of(graph, 1, seed=1)["test"] != held_out[1]
    other = store_of(tmp_path / "h", graphs, partitions={"graph": 3, "node": 2})
    assert folds_of(other, 1)["test"] == held_out[1]


def trained_folds(graph: Graph, folder: Path, **changes: Any) -> list[Path]:
    paths = [folder / f"run{k}" for k in range(3)]
    for k, path in enumerate(paths):
        config = graph_config(
            **{"folds": 3, "epochs": 3, "eval_every": 1, "eval_split": "test"}
            | {"fold": k}
            | changes
        )
        gnn.train(graph, config, path)
    return paths


def test_one_epoch_is_chosen_for_all_folds(rings: Graph, tmp_path: Path) -> None:
    paths = trained_folds(rings, tmp_path)
    curves = []
    for path in paths:
        history = json.loads((path / "run.json").read_text())["history"]
        curves.append([entry[2] for entry in history])
    found = gnn.average_folds(paths[::-1])
    means = np.mean(curves, axis=0)
    assert found["folds"] == 3
    assert found["epoch"] == 1 + int(np.argmax(means))
    assert found["accuracy"] == pytest.approx(means.max())
    spread = np.std([curve[found["epoch"] - 1] for curve in curves])
    assert found["accuracy_std"] == pytest.approx(spread)
    last = gnn.evaluate(paths[1])["metrics"]
    assert last["accuracy"] == pytest.approx(curves[1][-1])
    with pytest.raises(ConfigError, match=r"got the runs of 0, 2, expected one of each"):
        gnn.average_folds([paths[0], paths[2]])
    with pytest.raises(ConfigError, match=r"got the runs of 0, 0, 2"):
        gnn.average_folds([paths[0], paths[0], paths[2]])
    with pytest.raises(ConfigError, match="got no runs"):
        gnn.average_folds([])


def test_runs_that_are_no_folds_are_refused(rings: Graph, tmp_path: Path) -> None:
    paths = trained_folds(rings, tmp_path / "a", epochs=1)
    other = trained_folds(rings, tmp_path / "b", epochs=1, dim=8)
    with pytest.raises(ConfigError, match="differ in dim; expected fold alone"):
        gnn.average_folds([*paths[:2], other[2]])
    silent = trained_folds(rings, tmp_path / "c", epochs=1, eval_split="valid")
    with pytest.raises(ConfigError, match="was not evaluated on its fold"):
        gnn.average_folds(silent)
    gnn.train(rings, graph_config(epochs=1), tmp_path / "whole")
    with pytest.raises(ConfigError, match=r"has no folds; train it with folds=10"):
        gnn.average_folds([tmp_path / "whole"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, "batch_size: got 0 .* expected at least 1: graphs of a step"),
        ({"fanouts": (4, 4, 4)}, r"fanouts: got \(4, 4, 4\) .* none: all of a graph"),
        ({"sampler": "labor"}, "sampler: got labor .* expected neighbor"),
        ({"learned_rows": "disk"}, "learned_rows: got disk .* expected memory"),
        ({"model": "gatne"}, "model: got gatne .* expected a model of layers"),
        ({"model": "han"}, "model: got han .* expected a model of layers"),
        ({"folds": 1}, "folds: got 1, expected at least 2, or 0"),
        ({"folds": 3, "fold": 3}, "fold: got 3 of 3 folds"),
        ({"fold": 1}, "fold: got 1 of 0 folds"),
        ({"task": "node_classification", "folds": 3}, "expected task graph_classification"),
    ],
)
def test_settings_that_do_not_go_with_graphs_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        graph_config(**changes)


def test_a_store_without_splits_asks_for_folds(tmp_path: Path) -> None:
    graph = store_of(tmp_path / "g", [ring(3, ""), ring(4, "")])
    with pytest.raises(ConfigError, match=r"no column 'split' .* set folds=10 and fold=0"):
        build_context(graph, graph_config())
    with pytest.raises(ConfigError, match=r"folds: got 3, but 2 have a 'label'"):
        build_context(graph, graph_config(folds=3))


def odd_store(path: Path, graph_ids: Any, pairs: Any) -> Graph:
    """Return two labeled graphs of two nodes each, or what is given instead."""
    columns = {"label": np.array([0, 1]), "split": pa.array(["train", "train"])}
    named = {} if graph_ids is None else {"graph_id": pa.array(graph_ids)}
    return make_store(
        path,
        NodeChunk(ids=np.array([5, 6]), node_type="graph", columns=columns),
        NodeChunk(ids=np.arange(4), columns=named),
        edge_chunk(pairs),
        is_directed=False,
    ).graph


@pytest.mark.parametrize(
    ("graph_ids", "pairs", "error", "message"),
    [
        (None, [(0, 1)], ConfigError, "no node type of .* has a column 'graph_id'"),
        ([5, 5, None, 6], [(0, 1)], InvalidGraphError, "1 of 4 nodes .* no 'graph_id': 2"),
        ([5, 5, 7, 6], [(0, 1)], UnknownNameError, "7"),
        (
            [5, 5, 6, 6],
            [(0, 1), (1, 2)],
            InvalidGraphError,
            "between nodes (1 and 2|2 and 1)",
        ),
    ],
)
def test_stores_that_are_no_sets_of_graphs_are_refused(
    tmp_path: Path, graph_ids: Any, pairs: Any, error: Any, message: str
) -> None:
    graph = odd_store(tmp_path / "g", graph_ids, pairs)
    with pytest.raises(error, match=message):
        build_context(graph, graph_config())


def test_edges_of_graphs_themselves_carry_no_messages(tmp_path: Path) -> None:
    """Graphs may be linked to each other: that is not within any of them."""
    columns = {"label": np.array([0, 1]), "split": pa.array(["train", "train"])}
    graph = make_store(
        tmp_path / "g",
        NodeChunk(ids=np.array([5, 6]), node_type="graph", columns=columns),
        NodeChunk(ids=np.arange(4), columns={"graph_id": np.array([5, 5, 6, 6])}),
        edge_chunk([(0, 1)]),
        edge_chunk([(5, 6)], EdgeType("graph", "cites", "graph")),
    ).graph
    context = build_context(graph, graph_config())
    assert {own for _, own, _ in context.message_graph.relations} == {"node"}
    with pytest.raises(ConfigError, match="edge_types: got cites"):
        build_context(graph, graph_config(edge_types=("cites",)))


@pytest.mark.shared
def test_mutag_is_learned(shared_data: Path, tmp_path: Path) -> None:
    """Two thirds are of one class; the tags alone tell more."""
    folder = shared_data / "tud-graphclass/MUTAG"
    with pytest.warns(UserWarning, match="another version"):
        graph = recipes.build(
            "mutag", tmp_path / "g", folder=folder, allow_other_counts=True
        ).graph
    few = ["epochs=40", "dim=16", "eval_every=10", "dropout=0"]
    config = gnn.load_config(preset="mutag-gin", overrides=few)
    report = gnn.train(graph, config, tmp_path / "run")
    assert report.metrics["best_epoch"] in (10, 20, 30, 40)
    assert gnn.evaluate(tmp_path / "run")["metrics"]["num_graphs"] in (18, 19)
    assert gnn.evaluate(tmp_path / "run", split="train")["metrics"]["accuracy"] > 0.8
