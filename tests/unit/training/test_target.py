"""How long a training takes to reach a target, of both trainers."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphsys import embedding, gnn
from graphsys.cli.training_facts import metric_facts
from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.run import read_state
from graphsys.storage import Graph
from tests.unit.embedding.conftest import make_ring as make_ring
from tests.unit.embedding.conftest import ring_config as ring_config
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.conftest import groups as groups
from tests.unit.gnn.training.test_api import config_of

MakeRing = Callable[[int], Graph]
TIMED = {"epochs_to_target", "seconds_to_target", "cpu_seconds_to_target"}


@pytest.fixture
def config(ring_config: EmbeddingConfig) -> EmbeddingConfig:
    return dataclasses.replace(
        ring_config, epochs=6, eval_every=2, eval_split="test", monitor="mr"
    )


def values(history: list[list[float]]) -> list[float]:
    return [value for _, value in history]


def test_the_first_evaluation_that_reaches_a_target_is_timed(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph = make_ring(2)
    watched = dataclasses.replace(config, patience=9)  # so that all ranks are kept
    plain = embedding.train(graph, watched, tmp_path / "plain")
    assert not TIMED & plain.metrics.keys()
    ranks = values(plain.metrics["test_mr"])
    assert ranks[0] > ranks[1]  # lower is better
    timed = dataclasses.replace(watched, target=ranks[1])
    report = embedding.train(graph, timed, tmp_path / "timed")
    assert report.epochs == 6
    found = report.metrics
    assert found["epochs_to_target"] == 4
    assert 0 < found["seconds_to_target"] < report.seconds
    state = read_state(tmp_path / "timed")
    assert 0 < found["cpu_seconds_to_target"] < state.cpu_seconds
    assert values(found["test_mr"]) == ranks


def test_a_training_ends_at_its_target_and_goes_on_by_a_resume(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, run = make_ring(1), tmp_path / "run"
    config = dataclasses.replace(config, target=1e9, stop_at_target=True)
    report = embedding.train(graph, config, run)
    assert report.epochs == report.metrics["epochs_to_target"] == 2
    assert read_state(run).is_complete
    more = embedding.train(graph, None, run, resume=True)
    assert (more.epochs, more.metrics["epochs_to_target"]) == (6, 2)
    assert more.metrics["seconds_to_target"] == report.metrics["seconds_to_target"]


@pytest.mark.parametrize("monitor", ["metric", "loss"])
def test_a_network_is_timed_as_well(groups: Store, tmp_path: Path, monitor: str) -> None:
    watched = config_of(epochs=5, eval_every=1, monitor=monitor)
    gnn.train(groups(1), watched, tmp_path / "plain")
    column = 1 if monitor == "loss" else 2
    measured = [row[column] for row in gnn.run.read_state(tmp_path / "plain").history]
    best = min(measured) if monitor == "loss" else max(measured)
    timed = dataclasses.replace(watched, target=best, stop_at_target=True)
    report = gnn.train(groups(1), timed, tmp_path / "timed")
    assert report.epochs == measured.index(best) + 1
    assert report.metrics["epochs_to_target"] == report.epochs
    assert report.metrics["seconds_to_target"] == report.seconds
    assert report.metrics["cpu_seconds_to_target"] > 0


def test_a_target_that_is_not_reached_is_told(groups: Store, tmp_path: Path) -> None:
    config = config_of(epochs=2, eval_every=1, target=1.5)
    report = gnn.train(groups(1), config, tmp_path / "run")
    assert report.metrics["epochs_to_target"] is None
    assert not {"seconds_to_target", "cpu_seconds_to_target"} & report.metrics.keys()
    assert metric_facts(report.metrics)["epochs to target"] == "not reached"
    assert metric_facts({"seconds_to_target": 83.0}) == {"seconds to target": "83 s"}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"target": 0.3}, r"target: got 0.3 and eval_every 0, .*set eval_every"),
    ({"stop_at_target": True}, r"stop_at_target: got true without target, .*set target"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
@pytest.mark.parametrize("kind", [EmbeddingConfig, gnn.GnnConfig])
def test_a_target_that_cannot_be_reached_is_refused(
    kind: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(**{"eval_every": 0, **settings})


def test_held_out_losses_are_no_target() -> None:
    with pytest.raises(ConfigError, match=r"target: got 1.0 with monitor held_out_loss"):
        EmbeddingConfig(
            target=1.0, monitor="held_out_loss", eval_fraction=0.1, eval_every=1
        )
