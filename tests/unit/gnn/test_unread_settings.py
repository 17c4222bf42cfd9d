"""Settings that nothing reads are told when a training begins, with the reason."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.gnn import GnnConfig
from graphsys.gnn.config_checks import require_drawn, unread_settings
from graphsys.storage import Graph
from tests.unit.gnn.small_graphs import graph_config, rings_and_trees, store_of

LINKS = {"task": "link_prediction"}


def small(**changes: Any) -> GnnConfig:
    settings = {"dim": 8, "epochs": 1, "batch_size": 16, "eval_every": 0, "threads": 1}
    return GnnConfig(**{**settings, **changes})


def unread(config: GnnConfig, *learned: str) -> list[str]:
    return [it.partition("=")[0] for it in unread_settings(config, learned, "node")]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"fanouts": (5, 5), "batch_size": 0}, "fanouts"),
        ({"fanouts": (5, 5), "model": "lightgcn", **LINKS}, "fanouts"),
        ({"fanouts": (5, 5), "model": "bem", **LINKS}, "fanouts"),
        ({"frontier": "new", "batch_size": 0}, "frontier"),
        ({"frontier": "new", "model": "lightgcn", **LINKS}, "frontier"),
        (
            {"frontier": "new", "model": "tgn", "task": "temporal_link_prediction"},
            "frontier",
        ),
        ({"replace": True, "batch_size": 0}, "replace"),
        ({"replace": True, "model": "pinsage", **LINKS}, "replace"),
        ({"replace": True, "task": "graph_classification"}, "replace"),
        ({"accumulate": 2, "batch_size": 0}, "accumulate"),
        ({"epoch_batches": 3, "batch_size": 0}, "epoch_batches"),
        ({"activation": "elu", "model": "hgt"}, "activation"),
        ({"reverse_edges": False, "model": "pinsage"}, "reverse_edges"),
        (
            {"reverse_edges": False, "model": "tgn", "task": "temporal_link_prediction"},
            "reverse_edges",
        ),
        ({"rows_lr": 0.2}, "rows_lr"),
        ({"learned_rows": "disk"}, "learned_rows"),
        ({"row_decay": 0.1}, "row_decay"),
    ],
)
def test_a_setting_without_effect_is_told(settings: dict[str, Any], told: str) -> None:
    assert unread(small(**settings)) == [told]


def test_it_is_told_once_and_the_training_goes_on(
    groups: Callable[..., Graph], tmp_path: Any
) -> None:
    graph, out = groups(), tmp_path / "run"
    config = small(learned_rows="disk", row_decay=0.1)
    with pytest.warns(UserWarning, match="has no effect") as told:
        assert gnn.train(graph, config, out).epochs == 1
    where = "has no effect with model sage, batch_size 16 and task node_classification"
    of_batch = "the nodes of type 'node' of a batch have no learned rows"
    assert [str(it.message) for it in told] == [
        f"learned_rows=disk {where}: all nodes have features, no rows are learned",
        f"row_decay=0.1 {where}: {of_batch}; weight_decay is of weights",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gnn.train(graph, replace(config, epochs=2), out, resume=True).epochs == 2


@pytest.mark.parametrize("settings", [{"fanouts": (5, -1)}, {"model": "hep"}])
def test_all_neighbors_are_not_drawn_with_replacement(settings: dict[str, Any]) -> None:
    """Those of hep are all by default."""
    with pytest.raises(
        ConfigError, match=r"^replace: got True with fanouts .*-1, of which"
    ):
        require_drawn(small(replace=True, **settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"fanouts": (5, 5), "replace": True},
        {"fanouts": (5, 5), "reverse_edges": False},
        {"fanouts": (5, 5), "model": "tgn", "task": "temporal_link_prediction"},
        {"fanouts": (64, 64), "reverse_edges": False, "model": "ahep"},
        {"batch_size": 0, "reverse_edges": False},
        {"learned_rows": "disk", "rows_lr": 0.2},
    ],
)
def test_a_setting_with_effect_is_not_told(settings: dict[str, Any]) -> None:
    assert unread(small(**settings), "node") == []


def test_only_nodes_of_a_batch_have_their_rows_decay(library: Graph, tmp_path: Any) -> None:
    of_books = small(row_decay=0.1, layers=1)
    with pytest.warns(UserWarning, match=r"^row_decay=0.1 .* nodes of type 'book' of"):
        gnn.train(library, of_books, tmp_path / "books")
    of_pairs = replace(of_books, task="link_prediction")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gnn.train(library, of_pairs, tmp_path / "pairs").epochs == 1
    graphs = store_of(tmp_path / "g", rings_and_trees(10))
    of_graphs = graph_config(epochs=1, row_decay=0.1)
    with pytest.warns(UserWarning, match=r"^row_decay=0.1 .* nodes of type 'graph' of"):
        gnn.train(graphs, of_graphs, tmp_path / "graphs")
