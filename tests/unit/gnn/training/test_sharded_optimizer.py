"""Moments that processes share: torch.optim.Adam with all of them is the oracle."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphsys import gnn
from graphsys.distributed.gnn.training import _shared_plan
from graphsys.gnn import GnnConfig
from graphsys.gnn.run import load, read_state
from graphsys.gnn.training.plan import moments_share
from graphsys.storage import Graph
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.test_process_group import train_in_two
from tests.unit.gnn.training.test_api import are_equal, config_of, weights_of

SETTINGS: dict[str, Any] = {
    "task": "link_prediction",
    "dim": 128,  # tensors of more than 4,096 numbers are cut
    "batch_size": 67,
    "fanouts": (4, 4),
    "num_negatives": 10,
    "threads": 1,
    "eval_every": 0,
    "keep": "last",
    "lr": 0.001,
    "checkpoint_seconds": 0.0,  # after every step: all processes give their share
    "sharding": "optimizer",
}


def moments(run: Path) -> dict[str, torch.Tensor]:
    found = load(run, read_state(run), "optimizer")
    assert found is not None
    return dict(found)


def own_bytes(run: Path) -> list[int]:
    return [each["optimizer_bytes"] for each in read_state(run).metrics["per_worker"]]


def test_shares_of_the_moments_make_the_steps_of_whole_ones(
    library: Graph, tmp_path: Path
) -> None:
    """Beside processes that have all moments each, in torch.optim.Adam."""
    config = GnnConfig(**SETTINGS, epochs=3)
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    train_in_two(library, replace(config, sharding="none"), whole)
    train_in_two(library, config, shared)
    assert are_equal(weights_of(whole), weights_of(shared))
    assert are_equal(moments(whole), moments(shared))
    size = sum(value.nbytes for value in moments(whole).values())
    assert own_bytes(whole) == [size, size]
    assert size > 200_000
    for own in own_bytes(shared):
        assert own == pytest.approx(size / 2, rel=0.1)
    # a step's count is with each part
    assert 0 <= sum(own_bytes(shared)) - size <= 4 * len(moments(whole))


@pytest.mark.slow
def test_three_go_on_where_two_stopped_and_one_after_them(
    library: Graph, tmp_path: Path
) -> None:
    config = GnnConfig(**SETTINGS, epochs=2)
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    for run, own in ((whole, replace(config, sharding="none")), (shared, config)):
        train_in_two(library, own, run)
        train_in_two(library, replace(own, epochs=4), run, "--resume", count=3)
    assert len(own_bytes(shared)) == 3
    assert sum(own_bytes(shared)) < 0.4 * sum(own_bytes(whole))
    for run in (whole, shared):  # a resume may change who has which moments
        gnn.train(library, replace(config, epochs=6, sharding="none"), run, resume=True)
    assert are_equal(weights_of(whole), weights_of(shared))
    assert read_state(whole).losses == read_state(shared).losses


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "lamb"},
        {"optimizer": "lars", "lr": 1.0},
        {"sparsity": 0.5, "sparsity_every": 1, "dim": 128},
        {"decay_layers": "first", "weight_decay": 0.1, "clip_norm": 0.5, "accumulate": 2},
    ],
)
def test_whatever_else_moves_the_weights(
    groups: Store, tmp_path: Path, settings: dict[str, Any]
) -> None:
    graph = groups(2)
    base: dict[str, Any] = {"epochs": 6, "batch_size": 7, "fanouts": (3, 3), "lr": 0.01}
    for sharding in ("none", "optimizer"):
        config = config_of(**base | {"sharding": sharding} | settings)
        train_in_two(graph, config, tmp_path / sharding)
    assert are_equal(weights_of(tmp_path / "none"), weights_of(tmp_path / "optimizer"))


def test_a_plan_counts_a_workers_share() -> None:
    config = GnnConfig(**SETTINGS)
    plan = {
        "planned_memory_bytes": 1000,
        "planned_memory_split": {"parameters": 100, "optimizer": 201},
    }
    assert _shared_plan(plan, config, 2) == {
        "planned_memory_bytes": 900,
        "planned_memory_split": {"parameters": 100, "optimizer": 101},
    }
    assert _shared_plan(plan, replace(config, sharding="none"), 2) == {}
    assert moments_share(config, 4) == 0.25
