"""Learning rates over time, against torch's schedulers; lengths of gradients."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys import embedding, gnn
from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.training.trainer import EmbeddingLoop
from graphsys.gnn.training.trainer import GnnTrainer
from graphsys.storage import Graph
from graphsys.training.callbacks import Callback, Step, Training
from graphsys.training.learning_rate import plateau_factor, schedule_factor
from tests.unit.embedding.conftest import make_ring as make_ring
from tests.unit.embedding.conftest import ring_config as ring_config
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.conftest import groups as groups
from tests.unit.gnn.training.test_api import config_of

MakeRing = Callable[[int], Graph]


@pytest.mark.parametrize("is_lower_better", [False, True])
@pytest.mark.parametrize("min_improvement", [0.0, 0.05])
@pytest.mark.parametrize("patience", [1, 2, 4])
def test_the_rate_falls_on_a_plateau_as_torchs_does(
    patience: int, min_improvement: float, is_lower_better: bool
) -> None:
    values = np.random.default_rng(patience).random(60).round(2).tolist()
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer,
        mode="min" if is_lower_better else "max",
        factor=0.5,
        patience=patience - 1,  # torch counts the evaluations that it bears
        threshold=min_improvement,
        threshold_mode="abs",
        eps=0.0,
    )
    for done in range(1, len(values) + 1):
        scheduler.step(values[done - 1])
        found = plateau_factor(
            values[:done],
            patience=patience,
            factor=0.5,
            min_improvement=min_improvement,
            is_lower_better=is_lower_better,
        )
        assert found == optimizer.param_groups[0]["lr"]
    assert found < 0.5  # it fell several times


def test_no_value_and_no_number_leave_the_rate() -> None:
    assert plateau_factor([], patience=1, factor=0.1) == 1.0
    assert plateau_factor([0.5, float("nan"), 0.6], patience=2, factor=0.1) == 1.0


def test_half_a_wave_is_torchs() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    for epoch in range(11):
        rate = optimizer.param_groups[0]["lr"]
        assert schedule_factor("cosine", epoch / 10) == pytest.approx(rate, abs=1e-12)
        optimizer.step()
        scheduler.step()


def test_a_linear_fall_ends_at_zero_and_a_constant_rate_stays() -> None:
    assert [schedule_factor("linear", done) for done in (0, 0.25, 1)] == [1, 0.75, 0]
    assert schedule_factor("constant", 0.7) == schedule_factor("plateau", 0.7) == 1


class StopAfter(Callback):
    """Ends a training after so many epochs."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_epoch_end(self, training: Training) -> None:
        """End it."""
        if training.epoch == self.epochs:
            training.stop()


class Rates(Callback):
    """Keeps what epochs and steps were trained with."""

    def __init__(self) -> None:
        self.rates: dict[int, float] = {}
        self.lengths: list[float] = []

    def on_step_end(self, training: Training, step: Step) -> None:
        """Keep the rate of an epoch, and how long the gradients of a step are."""
        if isinstance(training, EmbeddingLoop):
            self.rates[training.epoch] = float(step.work[0].settings.lr)
            return
        assert isinstance(training, GnnTrainer)
        self.rates[training.epoch] = training.stepper.optimizer.param_groups[0]["lr"]
        gradients = [p.grad for p in training.network.parameters() if p.grad is not None]
        self.lengths.append(float(torch.cat([g.flatten() for g in gradients]).norm()))


NEVER_BETTER = 1e9
PLATEAU: dict[str, Any] = {
    "lr": 0.1,
    "lr_schedule": "plateau",
    "lr_patience": 1,
    "lr_factor": 0.5,
}


def test_the_rate_of_an_embedding_falls_where_no_evaluation_is_better(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, whole, rest = make_ring(1), Rates(), Rates()
    config = replace(
        ring_config,
        epochs=4,
        eval_every=1,
        eval_split="test",
        min_improvement=NEVER_BETTER,
        **PLATEAU,
    )
    embedding.train(graph, config, tmp_path / "whole", callbacks=[whole])
    assert whole.rates == pytest.approx({0: 0.1, 1: 0.1, 2: 0.05, 3: 0.025})
    run = tmp_path / "run"
    embedding.train(graph, config, run, callbacks=[StopAfter(2)])
    embedding.train(graph, None, run, resume=True, callbacks=[rest])
    assert rest.rates == pytest.approx({2: 0.05, 3: 0.025})
    with pytest.raises(ConfigError, match="lr_schedule: got plateau with monitor mrr and"):
        replace(config, eval_every=0)


def test_the_rate_of_a_network_falls_by_its_schedule(groups: Store, tmp_path: Path) -> None:
    graph = groups()
    for schedule, wanted in [
        ("cosine", [(1 + np.cos(np.pi * epoch / 4)) / 2 for epoch in range(4)]),
        ("linear", [1, 0.75, 0.5, 0.25]),
    ]:
        seen = Rates()
        config = config_of(epochs=4, lr=1e-3, lr_schedule=schedule, batch_size=10_000)
        gnn.train(graph, config, tmp_path / schedule, callbacks=[seen])
        assert list(seen.rates.values()) == pytest.approx(np.multiply(wanted, 1e-3))
    with pytest.raises(ConfigError, match="lr_schedule: got plateau and eval_every 0"):
        config_of(lr_schedule="plateau", eval_every=0)


def test_a_networks_rate_falls_on_a_plateau(groups: Store, tmp_path: Path) -> None:
    # a rate too small to change an accuracy: no evaluation is better than the first
    config = config_of(epochs=4, eval_every=1, monitor="metric", **PLATEAU | {"lr": 1e-12})
    seen = Rates()
    gnn.train(groups(), config, tmp_path / "run", callbacks=[seen])
    assert list(seen.rates.values()) == pytest.approx([1e-12, 1e-12, 5e-13, 2.5e-13])


def test_gradients_are_as_long_as_clip_norm_at_most(groups: Store, tmp_path: Path) -> None:
    free, clipped = Rates(), Rates()
    graph = groups()
    gnn.train(graph, config_of(epochs=2), tmp_path / "free", callbacks=[free])
    assert min(free.lengths) > 0.01
    config = config_of(epochs=2, clip_norm=0.01)
    gnn.train(graph, config, tmp_path / "clipped", callbacks=[clipped])
    assert clipped.lengths == pytest.approx([0.01] * len(clipped.lengths), rel=1e-3)
