"""Settings that nothing reads are told when a training begins, with the reason."""

import copy
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from graphsys import gnn
from graphsys.core.config import to_toml
from graphsys.core.errors import ConfigError
from graphsys.gnn import GnnConfig
from graphsys.gnn.config_checks import require_drawn, unread_settings
from graphsys.storage import Graph
from tests.unit.gnn.small_graphs import graph_config, rings_and_trees, store_of

LINKS = {"task": "link_prediction"}
TIMES = {"task": "temporal_link_prediction"}
CHANGES = {"task": "change_prediction"}
BY_TIME = ("jodie", "edgebank", "recency")


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
        ({"bases": 2}, "bases"),
        ({"heads": 4, "model": "gcn"}, "heads"),
        ({"readout": "max"}, "readout"),
        ({"edge_type": "buys"}, "edge_type"),
        ({"side_tasks": {"content": 1}, "temperature": 0.2, **LINKS}, ""),
        ({"temperature": 0.2, **LINKS}, "temperature"),
        ({"temperature": 0.2, "decoder": "cosine", **LINKS}, ""),
        ({"margin": 0.2}, "margin"),
        ({"margin": 0.2, "loss": "bpr", **LINKS}, "margin"),
        ({"walk_length": 5, **LINKS}, "walk_length"),
        ({"label": "kind", **LINKS}, "label"),
        ({"sparsity_every": 5}, "sparsity_every"),
        ({"lr_patience": 5}, "lr_patience"),
        *(({"fanouts": (5, 5), "model": name, **TIMES}, "fanouts") for name in BY_TIME),
        ({"fanouts": (5, 5), "model": "evolving", **CHANGES}, "fanouts"),
    ],
)
def test_a_setting_without_effect_is_told(settings: dict[str, Any], told: str) -> None:
    assert unread(small(**settings)) == ([told] if told else [])


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
        {"bases": 2, "model": "rgcn"},
        {"margin": 0.2, "model": "hep"},
        {"margin": 0.2, **LINKS},
        {"walk_length": 5, "p": 2, "positives": "walks", "node_type": "a", **LINKS},
        {"window": 3, "q": 2, "node_type": "a", "model": "gatne", **LINKS},
        {"sparsity": 0.5, "sparsity_every": 5},
        {"gradient_compression": "int8"},
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


def test_a_model_of_others_may_read_every_setting(tmp_path: Any) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n"
        "    def __init__(self, num_in, num_out):\n"
        "        super().__init__()\n"
        "        self.map = torch.nn.Linear(num_in, num_out)\n\n"
        "    def forward(self, rows, x_src, x_dst):\n"
        "        return self.map(x_dst)\n"
    )
    own = small(model=f"{tmp_path / 'net.py'}:Net", bases=2, heads=4, readout="max")
    assert unread(own) == ["readout"]


def test_what_a_preset_chose_is_not_told() -> None:
    """``acm-rgcn`` has bases of its own; what its user sets on top is told."""
    chosen = gnn.load_config(preset="acm-rgcn", overrides=["model=sage"])
    assert chosen.bases
    assert unread(chosen) == []
    own = gnn.load_config(preset="acm-rgcn", overrides=["model=sage", "bases=3"])
    assert unread(own) == ["bases"]
    assert own == replace(own, bases=3)


def test_what_a_preset_chose_is_not_told_of_a_copy_either() -> None:
    preset = gnn.load_config(preset="acm-rgcn")
    chosen = replace(preset, model="sage", epochs=3)
    assert unread(chosen) == []
    assert unread(copy.copy(chosen)) == []
    assert unread(pickle.loads(pickle.dumps(chosen))) == []
    assert unread(replace(chosen, bases=preset.bases + 1)) == ["bases"]
    assert unread(replace(chosen, heads=4)) == ["heads"]
    assert chosen == replace(chosen, of_preset=())
    assert "of_preset" not in to_toml(chosen)


@pytest.mark.parametrize("preset", gnn.preset_names())
def test_presets_set_nothing_that_their_own_model_leaves_unread(preset: str) -> None:
    config = replace(gnn.load_config(preset=preset), of_preset=())
    assert unread_settings(config, ["node"], "") == []
