"""Runs over events: bit-equal again and resumed, on disk, planned, and from the shell."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import graphsys as gs
from graphsys.cli import main as cli
from graphsys.core.errors import BudgetError
from graphsys.core.progress import Progress
from graphsys.core.types import EdgeType
from graphsys.gnn.run import load, read_state
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.event_stores import (
    LEARNED,
    STREAMS,
    config_of,
    event_store,
    favorites,
)


class Stop(Progress):
    """Ends a training after some batches."""

    def __init__(self, after: int) -> None:
        self._left = after

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Do nothing."""

    def advance(self, steps: int, **figures: float) -> None:
        """Count a batch."""
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("model", LEARNED)
def test_a_resumed_run_is_equal_bit_by_bit(model: str, tmp_path: Path) -> None:
    """Stopped within the second epoch: memory and weights come from the checkpoint."""
    changes = {"checkpoint_seconds": 0, "dropout": 0.1, "epochs": 3}
    with event_store(tmp_path / "g", favorites(200)) as graph:
        config = config_of(model, **changes)
        gs.gnn.train(graph, config, tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            gs.gnn.train(graph, config, tmp_path / "cut", progress=Stop(10))
        state = read_state(tmp_path / "cut")
        assert (state.epoch, state.batch) == (1, 2)
        gs.gnn.train(graph, config, tmp_path / "cut", resume=True)
    whole, cut = (read_state(tmp_path / name) for name in ("whole", "cut"))
    assert whole.losses == cut.losses
    assert [h[:3] for h in whole.history] == [h[:3] for h in cut.history]
    for stem in ("weights", "best"):
        one, other = (
            load(tmp_path / "whole", whole, stem),
            load(tmp_path / "cut", cut, stem),
        )
        assert one is not None
        assert other is not None
        assert all(one[name].equal(other[name]) for name in one)
        assert int(one["decoder.position"]) == whole_epoch(200)
    assert gs.gnn.evaluate(tmp_path / "whole") == gs.gnn.evaluate(tmp_path / "cut")


def whole_epoch(num_events: int) -> int:
    """Return how many events train."""
    return num_events * 70 // 100


@pytest.mark.parametrize("model", [*LEARNED, "recency"])
def test_a_run_says_on_disk_what_training_said(model: str, tmp_path: Path) -> None:
    with event_store(tmp_path / "g", favorites(200)) as graph:
        report = gs.gnn.train(graph, config_of(model), tmp_path / "run")
    valid = gs.gnn.evaluate(tmp_path / "run", split="valid")["metrics"]
    assert valid["mrr"] == report.metrics["valid_mrr"]
    test = gs.gnn.evaluate(tmp_path / "run")
    assert test == gs.gnn.evaluate(tmp_path / "run")
    assert test["metrics"]["num_edges"] == 30


def test_a_plan_leaves_nothing_and_changes_nothing(tmp_path: Path) -> None:
    with event_store(tmp_path / "g", favorites(200)) as graph:
        config = config_of("tgn")
        plan = gs.gnn.train(graph, config, tmp_path / "run", dry_run=True).metrics
        assert plan["planned_batches"] == 7
        assert not (tmp_path / "run").exists()
        heuristic = config_of("edgebank")
        plan = gs.gnn.train(graph, heuristic, tmp_path / "run", dry_run=True).metrics
        assert plan["planned_batches"] == 0
        with pytest.raises(BudgetError, match="memory: the training takes about"):
            gs.gnn.train(graph, config, tmp_path / "run", memory="10MB")
        gs.gnn.train(graph, config, tmp_path / "run", memory="4GB")
    gs.gnn.evaluate(tmp_path / "run", memory="4GB")


@pytest.mark.parametrize("model", [*LEARNED, "gatne", "mixture"])
def test_rows_beyond_the_budget_are_never_made(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = torch.nn.Embedding.__init__

    def noting(self: Any, size: int, dim: int, **given: Any) -> None:
        make(self, size, dim, **given)
        made.append(self.weight.device.type)

    monkeypatch.setattr(torch.nn.Embedding, "__init__", noting)
    graph = tmp_path / "g"
    if model in LEARNED:
        config = config_of(model)
        event_store(graph, favorites(200)).close()
    else:
        names = "ab" if model == "gatne" else "a"
        kinds = [EdgeType("n", name, "n") for name in names]
        ring = [(v, (v + 1) % 50) for v in range(50)]
        make_store(graph, *(edge_chunk(ring, kind) for kind in kinds))
        config = gs.gnn.GnnConfig(model=model, task="link_prediction", dim=16)
    with pytest.raises(BudgetError, match=r"memory: .* give --memory \d+MB or more"):
        gs.gnn.train(graph, config, tmp_path / "run", memory="10MB")
    assert set(made) == {"meta"}
    assert not (tmp_path / "run").exists()


def test_rows_are_predicted_as_they_are_after_training(tmp_path: Path) -> None:
    with event_store(tmp_path / "g", favorites(200)) as graph:
        gs.gnn.train(graph, config_of("tgn"), tmp_path / "run")
    table = gs.gnn.predict(tmp_path / "run", [3, 5, 3])
    rows = table["embedding"].to_pylist()
    assert table["id"].to_pylist() == [3, 5, 3]
    assert rows[0] == rows[2] != rows[1]
    assert len(rows[0]) == 16


@pytest.mark.parametrize("model", [*STREAMS, "sage"])
def test_users_and_items_with_weights(model: str, tmp_path: Path) -> None:
    """Second ends are ranked among items alone; an item has the number of no user."""
    events = favorites(200)
    table = {
        "src": [f"u{s}" for s, _, _ in events],
        "dst": [f"i{d % 7}" for _, d, _ in events],
        "time": [t for _, _, t in events],
        "weight": [1.0 + s % 3 for s, _, _ in events],
    }
    edges = {("user", "likes", "item"): table}
    with gs.ingest(out=tmp_path / "g", edges=edges, partitions=2).graph as graph:
        gs.gnn.train(graph, config_of(model, num_negatives=5), tmp_path / "run")
    found = gs.gnn.evaluate(tmp_path / "run")["metrics"]
    assert found["num_candidates"] == 7
    assert 1 <= found["mr"] <= 7
    if model in LEARNED:
        rows = gs.gnn.predict(tmp_path / "run", ["i3", "i4"])
        assert rows["id"].to_pylist() == ["i3", "i4"]


def test_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    event_store(tmp_path / "g", favorites(200)).close()
    run = str(tmp_path / "run")
    words = ["train", "gnn", str(tmp_path / "g"), "-o", run, "--preset"]
    assert cli.main([*words, "recency-collegemsg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["valid_mrr"] > 0.2
    assert cli.main(["evaluate", run, "--split", "test", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["metrics"]
    assert {"mrr", "mr", "hits@1", "hits@3", "hits@10", "unfiltered"} <= found.keys()


def test_a_store_without_times_is_one_error_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gs.ingest({"src": [1, 2, 3], "dst": [2, 3, 1]}, tmp_path / "g").graph.close()
    words = ["train", "gnn", str(tmp_path / "g"), "-o", str(tmp_path / "run")]
    for preset in ("tgn-collegemsg", "recency-collegemsg", "sage-collegemsg"):
        assert cli.main([*words, "--preset", preset]) == 2
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1
        assert said[0].startswith("error: edges 'edge' of")
        assert "have no column 'time'" in said[0]
        assert "ingest them with one" in said[0]
