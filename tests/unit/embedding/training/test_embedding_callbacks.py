"""What callbacks see of a training of embeddings, and what ends it."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphsys.cli.train import interrupted_training
from graphsys.core.progress import SILENT
from graphsys.embedding import (
    Callback,
    EmbeddingConfig,
    Training,
    evaluate,
    open_run,
    train,
)
from graphsys.embedding import run as runs
from graphsys.embedding.checkpoints import preserved_epochs
from graphsys.embedding.training.trainer import EmbeddingTrainer
from graphsys.storage import Graph
from graphsys.training.callbacks import Step
from tests.embedding_context import context_of
from tests.trainings import Ends

MakeRing = Callable[[int], Graph]


class Listener(Callback):
    """Notes what it is told, and ends a training after so many epochs."""

    def __init__(self, last: int = 1 << 30) -> None:
        self.calls: list[str] = []
        self.steps: list[Step] = []
        self._last = last

    def on_train_start(self, training: Training) -> None:
        self.calls.append("start")

    def on_epoch_start(self, training: Training) -> None:
        self.calls.append(f"epoch {training.epoch}")

    def on_step_end(self, training: Training, step: Step) -> None:
        self.calls.append("step")
        self.steps.append(step)

    def on_evaluation(self, training: Training, metrics: Mapping[str, Any]) -> None:
        assert 0 <= metrics["test_mrr"] <= 1
        self.calls.append("evaluation")

    def on_epoch_end(self, training: Training) -> None:
        self.calls.append(f"end {training.epoch}")
        if training.epoch == self._last:
            training.stop()

    def on_checkpoint(self, training: Training) -> None:
        self.calls.append("checkpoint")

    def on_train_end(self, training: Training) -> None:
        assert training.path is not None
        assert runs.read_state(training.path).is_complete
        self.calls.append("done")


def content(path: Path) -> dict[str, bytes]:
    names = runs.read_state(path).files
    return {name.rsplit(".", 2)[0]: (path / name).read_bytes() for name in names}


def repeatable(config: EmbeddingConfig, **changes: Any) -> EmbeddingConfig:
    return dataclasses.replace(
        config,
        **{"epochs": 4, "deterministic": True, "checkpoint_seconds": 60.0, **changes},
    )


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_callback_sees_all_and_may_end_the_training(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, partitions: int
) -> None:
    graph, config = make_ring(partitions), dataclasses.replace(ring_config, epochs=5)
    context, listener = context_of(graph, config, tmp_path), Listener(2)
    steps, state = context.steps, context.state
    trainer = EmbeddingTrainer(context, [listener])
    trainer.run(SILENT)
    num_units = len(trainer.schedule)
    assert listener.calls.count("step") == 2 * num_units
    assert sum(step.num_edges for step in listener.steps) == state.num_edges
    assert state.num_edges == 2 * sum(step.num_edges for step in steps)
    assert [step.is_last for step in listener.steps[-num_units:]].index(
        True
    ) == num_units - 1
    assert all(math.isfinite(step.loss) for step in listener.steps)
    found = runs.read_state(tmp_path)
    assert found.is_complete
    assert found.epoch == len(found.losses) == 2


def test_calls_come_in_the_order_of_the_loop(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = repeatable(ring_config, epochs=2, eval_every=2, eval_split="test")
    listener = Listener()
    train(make_ring(1), config, tmp_path / "run", callbacks=[listener])
    assert listener.calls == [
        "start",
        *("epoch 0", "step", "end 1"),
        *("epoch 1", "step", "checkpoint", "evaluation", "end 2"),
        "done",
    ]


@pytest.mark.parametrize("num_steps", [3, 7, 16])
def test_a_run_that_a_callback_ended_is_complete_and_goes_on_to_the_same_bits(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, num_steps: int
) -> None:
    graph, config, run = make_ring(4), repeatable(ring_config), tmp_path / "run"
    train(graph, config, tmp_path / "whole")
    train(graph, config, run, callbacks=[Ends(num_steps)])
    state = runs.read_state(run)
    assert state.is_complete
    assert (state.epoch, state.unit) < (4, 0)
    assert 0 < evaluate(run, split="test")["metrics"]["mrr"] <= 1
    report = train(graph, None, run, resume=True)
    assert report.epochs == 4
    assert content(run) == content(tmp_path / "whole")
    assert runs.read_state(run).losses == runs.read_state(tmp_path / "whole").losses


def test_an_interrupted_resume_of_such_a_run_says_how_to_go_on(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, run = make_ring(4), tmp_path / "run"
    train(graph, ring_config, run, callbacks=[Ends(3)])
    kept = partial(interrupted_training, "embedding", graph.path, run)
    assert kept(is_resuming=True).endswith(
        f"train embedding {graph.path} -o {run} --resume"
    )
    assert kept(is_resuming=False).endswith("stays as it was; begin again")


def test_a_run_ended_before_its_first_step_can_be_opened(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    class Never(Callback):
        def on_train_start(self, training: Training) -> None:
            training.stop()

    graph, config, run = make_ring(1), repeatable(ring_config), tmp_path / "run"
    assert train(graph, config, run, callbacks=[Never()]).epochs == 0
    assert open_run(run).rows(graph.node_types[0], 0).shape[1] == config.dim
    assert train(graph, None, run, resume=True).epochs == 4


def test_what_a_callback_ended_keeps_the_best_until_the_training_is_over(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = repeatable(
        ring_config,
        epochs=6,
        eval_every=1,
        eval_split="test",
        patience=6,
        min_improvement=2,
    )
    graph, run = make_ring(1), tmp_path / "run"
    train(graph, config, tmp_path / "whole")
    train(graph, config, run, callbacks=[Listener(3)])
    assert runs.read_state(run).is_complete
    assert preserved_epochs(run) == [1]  # the run has the last
    train(graph, None, run, resume=True)
    assert content(run) == content(tmp_path / "whole")
    assert preserved_epochs(run) == []


def test_what_a_callback_raises_leaves_the_last_checkpoint(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, run = make_ring(4), tmp_path / "run"
    config = repeatable(ring_config, checkpoint_seconds=0.0)
    train(graph, config, tmp_path / "whole")
    with pytest.raises(ZeroDivisionError):
        train(graph, config, run, callbacks=[Ends(9, ZeroDivisionError())])
    state = runs.read_state(run)
    runs.check_files(run, state)
    assert (state.epoch, state.unit) > (0, 0)
    assert not state.is_complete
    train(graph, None, run, resume=True)
    assert content(run) == content(tmp_path / "whole")
