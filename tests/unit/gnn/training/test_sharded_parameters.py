"""Weights that processes share out: processes that have all of them are the oracle.

Sums of gradients are in another order, so that numbers are close and not equal.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.distributed.gnn.training import _shared_plan
from graphsys.gnn import GnnConfig
from graphsys.gnn.models.network import Network
from graphsys.gnn.process_group import ProcessGroup
from graphsys.gnn.run import read_state
from graphsys.gnn.training.api import build_context
from graphsys.gnn.training.sharded_parameters import REST, ShardedParameters
from graphsys.storage import Graph
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.test_process_group import are_close, train_in_two
from tests.unit.gnn.training.test_api import config_of, weights_of
from tests.unit.gnn.training.test_sharded_optimizer import SETTINGS, moments

CUT: dict[str, Any] = {**SETTINGS, "sharding": "parameters"}
DEEP: dict[str, Any] = {  # whose second layer is cut
    "layers": 3,
    "fanouts": (3, 3, 3),
    "dim": 96,
    "batch_size": 7,
    "lr": 0.003,
    "dropout": 0.0,
}
LEAST_CUT = 4096


def workers(run: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_state(run).metrics["per_worker"]
    return found


def sizes(run: Path) -> tuple[int, int]:
    """Return the bytes of a run's weights that are cut, and of the others."""
    every = [value.numel() for value in weights_of(run).values()]
    cut = sum(4 * size for size in every if size >= LEAST_CUT)
    return cut, 4 * sum(every) - cut


def test_shares_make_the_steps_of_whole_weights(library: Graph, tmp_path: Path) -> None:
    """Several node types, whose relations not every share of a batch has."""
    config = GnnConfig(**CUT, epochs=3)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train_in_two(library, replace(config, sharding="none"), whole)
    train_in_two(library, config, cut)
    assert read_state(cut).losses == pytest.approx(read_state(whole).losses, rel=1e-5)
    assert are_close(weights_of(whole), weights_of(cut))
    assert moments(whole).keys() == moments(cut).keys()
    assert are_close(moments(whole), moments(cut))
    large, small = sizes(whole)
    assert large > 200_000
    for each in workers(whole):
        assert each["parameter_bytes"] == each["gradient_bytes"] == large + small
        assert each["gathered_bytes"] == 0
    for each in workers(cut):
        # a run is filled up by less than a number for each weight
        assert 0 <= each["parameter_bytes"] - (large / 2 + small) <= 4 * 40
        assert each["gradient_bytes"] == each["parameter_bytes"]
        assert each["optimizer_bytes"] < 0.6 * workers(whole)[0]["optimizer_bytes"]
        assert 0 < each["gathered_bytes"] < 2 * large


def test_the_run_is_evaluated_and_goes_on_with_other_shares(
    groups: Store, tmp_path: Path
) -> None:
    """Two processes, three, one and two again leave what one leaves alone."""
    graph, one, run = groups(2), tmp_path / "one", tmp_path / "run"
    config = config_of(**DEEP, eval_every=1, keep="best", sharding="parameters")
    gnn.train(graph, replace(config, epochs=8), one)
    train_in_two(graph, replace(config, epochs=2), run)
    assert workers(run)[1]["gathered_bytes"] > 0
    train_in_two(graph, replace(config, epochs=4), run, "--resume", count=3)
    gnn.train(graph, replace(config, epochs=6, sharding="none"), run, resume=True)
    train_in_two(graph, replace(config, epochs=8), run, "--resume")
    whole, cut = gnn.open_run(one).state, gnn.open_run(run).state
    assert cut.losses == pytest.approx(whole.losses, rel=1e-4)
    assert np.allclose(
        [row[:3] for row in cut.history], [row[:3] for row in whole.history], rtol=1e-3
    )
    assert cut.best_epoch == whole.best_epoch
    kinds = [{it.split(".")[0]: n for it, n in s.files.items()} for s in (whole, cut)]
    assert kinds[0] == kinds[1]  # also in bytes
    assert kinds[0].keys() == {"weights", "optimizer", "best"}
    found = [gnn.evaluate(each)["metrics"]["accuracy"] for each in (one, run)]
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"model": "gat", "heads": 2},
        {"model": "sage", "aggregator": "lstm"},
        {"recompute": "all", "norm": "batch", "residual": True},
        {"precision": "bfloat16"},
        {"decay_layers": "first", "weight_decay": 0.1, "clip_norm": 0.05, "accumulate": 2},
    ],
)
def test_whatever_the_layers_are(
    groups: Store, tmp_path: Path, settings: dict[str, Any]
) -> None:
    graph = groups(2)
    base = {**DEEP, "epochs": 4}
    for sharding in ("none", "parameters"):
        config = config_of(**base | {"sharding": sharding} | settings)
        train_in_two(graph, config, tmp_path / sharding)
    assert workers(tmp_path / "parameters")[0]["gathered_bytes"] > 0
    whole, cut = (weights_of(tmp_path / name) for name in ("none", "parameters"))
    atol = 0.05 if "precision" in settings else 1e-4
    assert all(torch.allclose(whole[name], cut[name], atol=atol) for name in whole)


TIED = """
from torch import nn

ONE = nn.Linear({dim}, {dim})


class Net(nn.Module):
    def __init__(self, num_in, num_out):
        super().__init__()
        self.own = ONE if num_in == num_out else nn.Linear(num_in, num_out)

    def forward(self, rows, x_src, x_dst):
        return self.own(x_dst)
"""


@pytest.fixture
def alone() -> ProcessGroup:
    """Return a group of one process, whose exchanges change nothing."""
    return ProcessGroup(0, 1)


def network_of(graph: Graph, **changes: Any) -> Network:
    config = config_of(**{**DEEP, "layers": 4, "fanouts": (3, 3, 3, 3), **changes})
    network = build_context(graph, config).network
    assert isinstance(network, Network)
    return network


def test_a_layer_in_common_is_refused(groups: Store, tmp_path: Path) -> None:
    model = tmp_path / "tied.py"
    model.write_text(TIED.format(dim=DEEP["dim"]))
    network = network_of(groups(1), model=f"{model}:Net")
    name = re.escape("'hops.1.edge.own.weight'")
    with pytest.raises(ConfigError, match=f"sharding: got parameters, .* {name} of model"):
        ShardedParameters(network, ProcessGroup(0, 2))


def test_weights_are_there_while_their_part_runs(
    groups: Store, alone: ProcessGroup
) -> None:
    """Also in the backward pass; of a weight that is returned itself, a copy is."""
    network = network_of(groups(1))
    cut = network.hops[1]["edge"].own  # type: ignore[index]
    cut = cut if isinstance(cut, nn.Linear) else pytest.fail("no linear layer")
    before = cut.weight.detach().clone()
    shards = ShardedParameters(network, alone)
    assert cut.weight.dim() == 1

    def double(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"rows": x @ cut.weight.T, "itself": cut.weight}

    x = torch.randn(5, len(before))
    found = shards.run(1, double, x)
    assert shards.addresses == set()
    torch.testing.assert_close(found["itself"], before)
    loss = found["rows"].square().sum() + found["itself"].sum()
    shards.tie(loss).backward()  # type: ignore[no-untyped-call]
    whole = before.clone().requires_grad_()
    ((x @ whole.T).square().sum() + whole.sum()).backward()  # type: ignore[no-untyped-call]
    assert cut.weight.grad is not None
    assert whole.grad is not None
    torch.testing.assert_close(cut.weight.grad.view_as(whole), whole.grad)
    assert shards.addresses == set()
    assert shards.peak_bytes >= 2 * before.nbytes
    # what did not run has a gradient too: other processes may have run it
    with shards.gathered(2), shards.gathered(REST):
        pass
    shards.tie(torch.ones((), requires_grad=True)).backward()  # type: ignore[no-untyped-call]
    other = network.hops[2]["edge"].own.weight  # type: ignore[index]
    assert other.grad is not None
    assert not other.grad.any()
    with shards.whole():
        torch.testing.assert_close(cut.weight, before)
    assert cut.weight.dim() == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"task": "graph_classification", "model": "gin", "fanouts": ()},
            "task: got graph_classification with sharding parameters",
        ),
        (
            {"model": "mixture", "task": "link_prediction"},
            "model: got mixture with sharding parameters, where no",
        ),
        (
            {"model": "lightgcn", "task": "link_prediction"},
            "a model of layers that samples, or sharding optimizer",
        ),
        ({"batch_size": 0, "fanouts": ()}, "batch_size: got 0 with sharding parameters"),
        ({"optimizer": "lamb"}, "optimizer: got lamb with sharding parameters, where no"),
        ({"sparsity": 0.5}, "sparsity: got 0.5 with sharding parameters"),
        ({"gradient_compression": "int8"}, "expected none, or sharding optimizer or none"),
        ({"numbers": True}, "numbers: got True with sharding parameters"),
        ({"learned_rows": "disk"}, "learned_rows: got disk with sharding parameters"),
    ],
)
def test_what_needs_whole_weights_is_refused(changes: dict[str, Any], message: str) -> None:
    config_of(**{**changes, "sharding": "none"})
    with pytest.raises(ConfigError, match=re.escape(message)):
        config_of(**{**changes, "sharding": "parameters"})


def test_a_plan_counts_a_workers_shares() -> None:
    config = GnnConfig(**CUT)
    split = {"parameters": 101, "gradients": 100, "optimizer": 200}
    plan = {
        "planned_memory_bytes": 1000,
        "planned_memory_split": split,
        "planned_gathered_bytes": 30,
    }
    assert _shared_plan(plan, config, 2) == {
        "planned_memory_bytes": 830,
        "planned_memory_split": {"parameters": 51, "gradients": 50, "optimizer": 100},
    }
    assert _shared_plan(plan, config, 1) == {}


def test_a_dry_run_tells_what_is_whole_at_once(library: Graph, tmp_path: Path) -> None:
    plans = [
        gnn.train(library, GnnConfig(**CUT | more), tmp_path / "no", dry_run=True).metrics
        for more in ({}, {"eval_every": 1})
    ]
    step, evaluation = (plan["planned_gathered_bytes"] for plan in plans)
    assert evaluation == plans[0]["planned_parameter_bytes"]
    assert step > 2 * 4 * LEAST_CUT
