import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.core.progress import SILENT
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding import run as runs
from graphsys.embedding.data.schedule import BucketTask
from graphsys.embedding.training.hook import Hook, Training
from graphsys.embedding.training.trainer import EmbeddingTrainer
from graphsys.storage import Graph
from tests.embedding_context import context_of

MakeRing = Callable[[int], Graph]


class Listener(Hook):
    """Trains every second edge, and ends after two epochs."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def before_bucket(
        self, trainer: Training, epoch: int, step: BucketTask, order: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint32]:
        assert len(order) == step.num_edges
        self.calls.append("bucket")
        return order[::2].copy()

    def after_unit(self, trainer: Training) -> None:
        self.calls.append("unit")

    def after_epoch(self, trainer: Training) -> bool:
        self.calls.append("epoch")
        return trainer.context.state.epoch == 2


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_hook_sees_all_and_may_leave_edges_out_and_end_the_training(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, partitions: int
) -> None:
    graph, config = make_ring(partitions), dataclasses.replace(ring_config, epochs=5)
    context, hook = context_of(graph, config, tmp_path), Listener()
    steps, state = context.steps, context.state
    trainer = EmbeddingTrainer(context, hooks=[hook])
    trainer.run(SILENT)
    num_units = len(trainer.schedule)
    assert hook.calls.count("bucket") == 2 * len(steps)
    assert hook.calls.count("unit") == 2 * num_units
    assert hook.calls[-2:] == ["unit", "epoch"]
    assert state.num_edges == 2 * sum(-(-step.num_edges // 2) for step in steps)
    found = runs.read_state(tmp_path)
    assert found.is_complete
    assert found.epoch == len(found.losses) == 2
