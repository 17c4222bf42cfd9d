"""What callbacks see of a training of a network, and what ends it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graphsys import gnn
from graphsys.gnn import Callback, Training
from graphsys.gnn import run as runs
from graphsys.storage.runs import run_folder
from graphsys.training.callbacks import Step
from tests.trainings import Ends
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.training.test_api import are_equal, config_of, weights_of


class Listener(Callback):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_train_start(self, training: Training) -> None:
        self.calls.append("start")

    def on_epoch_start(self, training: Training) -> None:
        self.calls.append(f"epoch {training.epoch}")

    def on_step_end(self, training: Training, step: Step) -> None:
        assert step.loss > 0 < step.num_edges
        self.calls.append(f"step {step.number}")

    def on_evaluation(self, training: Training, metrics: Mapping[str, Any]) -> None:
        self.calls.append(f"evaluation of {', '.join(sorted(metrics))}")

    def on_epoch_end(self, training: Training) -> None:
        assert len(training.losses) == training.epoch
        self.calls.append(f"end {training.epoch}")

    def on_checkpoint(self, training: Training) -> None:
        self.calls.append("checkpoint")

    def on_train_end(self, training: Training) -> None:
        assert training.path is not None
        assert runs.read_state(training.path).is_complete
        self.calls.append("done")


def test_calls_come_in_the_order_of_the_loop(groups: Store, tmp_path: Path) -> None:
    config, listener = config_of(epochs=2, batch_size=12, eval_every=2), Listener()
    gnn.train(groups(1), config, tmp_path / "run", callbacks=[listener])
    assert listener.calls == [
        "start",
        *("epoch 0", "step 0", "step 1", "end 1"),
        *("epoch 1", "step 0", "step 1"),
        *("evaluation of valid_accuracy, valid_loss", "end 2", "checkpoint"),
        "done",
    ]


@pytest.mark.parametrize("num_steps", [2, 3, 8])
def test_a_run_that_a_callback_ended_is_complete_and_goes_on_to_the_same_bits(
    groups: Store, tmp_path: Path, num_steps: int
) -> None:
    graph, run = groups(2), tmp_path / "run"
    settings = {"epochs": 4, "dropout": 0.3, "eval_every": 1, "keep": "best"}
    config = config_of(**settings, deterministic=True, patience=4)
    whole = gnn.train(graph, config, tmp_path / "whole")
    stopped = gnn.train(graph, config, run, callbacks=[Ends(num_steps)])
    state = runs.read_state(run)
    assert state.is_complete
    assert stopped.epochs == state.epoch == num_steps // 3
    assert gnn.open_run(run).config == config
    report = gnn.train(graph, None, run, resume=True)
    assert report.epochs == 4
    assert are_equal(weights_of(run), weights_of(tmp_path / "whole"))
    assert report.metrics["best_epoch"] == whole.metrics["best_epoch"]


def test_gradients_of_a_step_are_not_cut_in_two_by_an_end(
    groups: Store, tmp_path: Path
) -> None:
    config = config_of(epochs=3, accumulate=2, deterministic=True)
    graph, run = groups(1), tmp_path / "run"
    gnn.train(graph, config, tmp_path / "whole")
    gnn.train(graph, config, run, callbacks=[Ends(1)])
    assert runs.read_state(run).batch == 2
    gnn.train(graph, None, run, resume=True)
    assert are_equal(weights_of(run), weights_of(tmp_path / "whole"))


def test_what_a_callback_raises_leaves_the_last_checkpoint(
    groups: Store, tmp_path: Path
) -> None:
    config = config_of(epochs=4, deterministic=True, checkpoint_seconds=0)
    graph, run = groups(1), tmp_path / "run"
    gnn.train(graph, config, tmp_path / "whole")
    with pytest.raises(ZeroDivisionError):
        gnn.train(graph, config, run, callbacks=[Ends(5, ZeroDivisionError())])
    state = runs.read_state(run)
    run_folder.check_files(run, state.files, state.checksums)
    assert (state.epoch, state.batch) > (0, 0)
    assert not state.is_complete
    gnn.train(graph, None, run, resume=True)
    assert are_equal(weights_of(run), weights_of(tmp_path / "whole"))


def test_a_finished_run_calls_nobody(groups: Store, tmp_path: Path) -> None:
    config, run, listener = config_of(epochs=1), tmp_path / "run", Listener()
    gnn.train(groups(1), config, run)
    gnn.train(groups(1), None, run, resume=True, callbacks=[listener])
    assert listener.calls == []
