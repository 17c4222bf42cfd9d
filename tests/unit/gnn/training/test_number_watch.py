"""Numbers of a training by layer: counts by hand, and no hook where nobody asked."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import graphsys as gs
from graphsys import gnn
from graphsys.gnn.training.number_watch import NumberWatch
from graphsys.training.number_tally import Tally
from graphsys.training.tensorboard import FOLDER
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.training.test_api import config_of


def test_what_16_bits_do_not_hold_is_counted() -> None:
    tally = Tally()
    tally.add(
        torch.tensor([0.0, 1.0, -3.0, 65504.0, 1e5, -1e6, 1e-9, torch.inf, torch.nan])
    )
    tally.add(torch.tensor([[1e-42], [1e39 / 10]]).float())  # both beyond float16
    found = tally.facts()
    assert found["count"] == 11
    assert found["odd_share"] == 2 / 11
    assert found["zero_share"] == 1 / 11
    # 1e5, -1e6 and 1e38; 1e-9 and 1e-42
    assert found["over_float16_share"] == 3 / 11
    assert found["under_float16_share"] == 2 / 11
    # bfloat16 has float32's exponents, and fewer bits below them
    assert found["over_bfloat16_share"] == 0
    assert found["under_bfloat16_share"] == 1 / 11
    assert found["largest"] == pytest.approx(1e38)
    exponents = dict(map(tuple, found["exponents"]))
    assert (exponents[0], exponents[1], exponents[15], exponents[16]) == (1, 1, 1, 1)
    assert sum(exponents.values()) == 8
    tally = Tally()
    tally.add(torch.tensor([3.4e38, 1.0, 2.0]))  # rounding up makes the first infinite
    assert tally.facts()["over_bfloat16_share"] == 1 / 3
    assert Tally().facts()["mean"] is None


def test_means_and_deviations() -> None:
    tally = Tally()
    tally.add(torch.tensor([1.0, 2.0]))
    tally.add(torch.tensor([6.0]))
    found = tally.facts()
    assert found["mean"] == pytest.approx(3)
    assert found["deviation"] == pytest.approx((14 / 3) ** 0.5)


def test_tallies_of_parts_add_up_to_that_of_the_whole() -> None:
    values = torch.tensor([0.0, 1e5, -2e-9, 3.0, torch.inf, 1e38, 1e-42])
    whole, parts = Tally(), Tally()
    whole.add(values)
    for part in (values[:3], values[3:]):
        own = Tally()
        own.add(part)
        parts.merge(own)
    assert parts.facts() == whole.facts()


def test_outputs_gradients_and_parameters_are_seen_by_layer() -> None:
    network = nn.Sequential(nn.Linear(2, 3, bias=False), nn.ReLU(), nn.Linear(3, 1))
    watch = NumberWatch(network)
    network(torch.ones(4, 2)).sum().backward()
    network.eval()
    network(torch.ones(100, 2))  # is not trained
    rows = {(row["kind"], row["layer"]): row for row in watch.end_epoch()}
    assert {key: row["count"] for key, row in rows.items()} == {
        ("gradient", "0.weight"): 6,
        ("gradient", "2.bias"): 1,
        ("gradient", "2.weight"): 3,
        ("output", "0"): 12,
        ("output", "1"): 12,
        ("output", "2"): 4,
        ("parameter", "0.weight"): 6,
        ("parameter", "2.bias"): 1,
        ("parameter", "2.weight"): 3,
    }
    assert rows["gradient", "2.bias"]["mean"] == 4.0
    # the next epoch begins with none
    assert {row["kind"] for row in watch.end_epoch()} == {"parameter"}
    watch.close()
    assert hooks_of(network) == 0


def hooks_of(network: nn.Module) -> int:
    """Count the hooks of modules and of parameters."""
    found = sum(len(module._forward_hooks) for module in network.modules())
    return found + sum(len(it._backward_hooks or {}) for it in network.parameters())


def test_no_hook_is_there_unless_asked_for(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    from graphsys.gnn.training import step

    plain = step.Stepper.train

    def spied(self: Any, *arguments: Any) -> Any:
        seen.append(hooks_of(self.network))
        return plain(self, *arguments)

    monkeypatch.setattr(step.Stepper, "train", spied)
    graph = groups(1)
    report = gnn.train(graph, config_of(epochs=1), tmp_path / "off")
    assert set(seen) == {0}
    assert "numbers" not in report.metrics
    seen.clear()
    with gs.profile() as p:
        report = gnn.train(graph, config_of(epochs=2, numbers=True), tmp_path / "on")
    assert min(seen) > 0
    rows = report.metrics["numbers"]
    assert {row["kind"] for row in rows} == {"output", "gradient", "parameter"}
    told = p.report["numbers"]
    assert {row["epoch"] for row in told} == {1, 2}
    assert [row for row in told if row["epoch"] == 2] == [
        {"epoch": 2, **row} for row in rows
    ]
    # nothing that is trained changes by being watched
    alone = gnn.train(graph, config_of(epochs=2), tmp_path / "alone")
    assert alone.metrics["loss"] == report.metrics["loss"]


def test_numbers_are_written_for_tensorboard(groups: Store, tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    config = config_of(epochs=2, tensorboard=True, numbers=True)
    gnn.train(groups(1), config, tmp_path / "run")
    found = events.EventAccumulator(str(tmp_path / "run" / FOLDER), {"histograms": 0})
    found.Reload()
    tags = found.Tags()
    gradients = [name for name in tags["histograms"] if name.startswith("log2/gradient/")]
    assert gradients
    assert [event.step for event in found.Histograms(gradients[0])] == [1, 2]
    assert any(name.startswith("numbers/under_float16/") for name in tags["scalars"])
