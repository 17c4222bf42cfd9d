"""Settings that nothing would read are refused in new trainings, with the reason."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.gnn import GnnConfig
from graphsys.gnn.config_checks import require_read
from graphsys.storage import Graph
from tests.unit.gnn.small_graphs import graph_config, rings_and_trees, store_of

LINKS = {"task": "link_prediction"}


def small(**changes: Any) -> GnnConfig:
    settings = {"dim": 8, "epochs": 1, "batch_size": 16, "eval_every": 0, "threads": 1}
    return GnnConfig(**{**settings, **changes})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"fanouts": (5, 5), "batch_size": 0}, "fanouts: got 5, 5 with model sage"),
        ({"fanouts": (5, 5), "model": "lightgcn", **LINKS}, "fanouts: got 5, 5 with model"),
        ({"fanouts": (5, 5), "model": "bem", **LINKS}, "fanouts: got 5, 5 with model bem"),
        ({"reverse_edges": False, "model": "pinsage"}, "reverse_edges: got False with"),
        (
            {"reverse_edges": False, "model": "tgn", "task": "temporal_link_prediction"},
            "reverse_edges: got False with model tgn",
        ),
        ({"rows_lr": 0.2}, "rows_lr: got 0.2 with model sage"),
    ],
)
def test_a_setting_without_effect_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{re.escape(told)}.*, expected .+: .+"):
        require_read(small(**settings))


@pytest.mark.parametrize("settings", [{"fanouts": (5, -1)}, {"model": "hep"}])
def test_all_neighbors_are_not_drawn_with_replacement(settings: dict[str, Any]) -> None:
    """Those of hep are all by default."""
    with pytest.raises(
        ConfigError, match=r"^replace: got True with fanouts .*-1, of which"
    ):
        require_read(small(replace=True, **settings))


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
def test_a_setting_with_effect_is_taken(settings: dict[str, Any]) -> None:
    require_read(small(**settings))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"learned_rows": "disk"}, "learned_rows: got disk, but no rows are learned"),
        (
            {"row_decay": 0.1},
            "row_decay: got 0.1 with model sage, but the nodes of type 'node' of a batch ",
        ),
        ({"row_decay": 0.1, **LINKS}, "row_decay: got 0.1 with model sage, but the nodes "),
    ],
)
def test_what_is_of_learned_rows_is_refused_where_there_are_none(
    groups: Callable[..., Graph], tmp_path: Any, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(told)}"):
        gnn.train(groups(), small(**settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_only_nodes_of_a_batch_have_their_rows_decay(library: Graph, tmp_path: Any) -> None:
    of_books = small(row_decay=0.1, layers=1)
    with pytest.raises(ConfigError, match=r"^row_decay: got 0.1 .* nodes of type 'book'"):
        gnn.train(library, of_books, tmp_path / "books")
    of_pairs = replace(of_books, task="link_prediction")
    assert gnn.train(library, of_pairs, tmp_path / "pairs").epochs == 1
    graphs = store_of(tmp_path / "g", rings_and_trees(10))
    of_graphs = graph_config(epochs=1, row_decay=0.1)
    with pytest.raises(ConfigError, match=r"^row_decay: got 0.1 .* nodes of type 'graph'"):
        gnn.train(graphs, of_graphs, tmp_path / "graphs")


def test_a_run_of_before_goes_on_with_what_nothing_reads(
    groups: Callable[..., Graph], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, out = groups(), tmp_path / "run"
    config = small(learned_rows="disk", row_decay=0.1, rows_lr=0.2)
    with monkeypatch.context() as before:
        name = "graphsys.gnn.training.api.require_learned"
        before.setattr(name, lambda *arguments: None)
        gnn.train(graph, config, out)
    longer = replace(config, epochs=2)
    assert gnn.train(graph, longer, out, resume=True).epochs == 2
    assert np.isfinite(gnn.evaluate(out, split="train")["metrics"]["loss"])
