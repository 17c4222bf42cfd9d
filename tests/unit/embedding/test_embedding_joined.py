import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import BudgetError, ConfigError
from graphsys.core.progress import Progress
from graphsys.embedding import EmbeddingConfig, evaluate, open_run, train
from graphsys.storage import Graph

MakeRing = Callable[[int], Graph]


def test_joined_partitions_learn_what_one_partition_learns(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = dataclasses.replace(ring_config, join_partitions=True)
    found = {}
    for partitions in (1, 4):
        report = train(make_ring(partitions), config, tmp_path / str(partitions))
        assert report.metrics["swaps"] == 0
        found[partitions] = evaluate(report.run, split="test")["metrics"]["mrr"]
    assert found[4] > 0.9 * found[1] > 0.4
    sizes = np.diff(make_ring(4).offsets("entity"))
    names = [name for name in open_run(tmp_path / "4").state.files if "rows" in name]
    assert len(names) == len(sizes) == 4  # stored by the graph's own partitions


class Interrupt(Progress):
    """Stops a training in its third epoch."""

    def __init__(self) -> None:
        self.epochs = 0

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        self.epochs += 1

    def advance(self, steps: int, **figures: float) -> None:
        if self.epochs == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"optimizer": "adagrad"},
        {"mode": "kvsall", "loss": "logistic"},
        {"mode": "1vsall", "optimizer": "adam", "lr": 0.003},
    ],
)
def test_a_joined_run_that_was_interrupted_goes_on_to_the_same_bits(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    changes: dict[str, Any],
) -> None:
    config = dataclasses.replace(
        ring_config, join_partitions=True, epochs=5, checkpoint_seconds=0.0, **changes
    )
    graph = make_ring(4)
    train(graph, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(graph, config, tmp_path / "broken", progress=Interrupt())
    assert open_run(tmp_path / "broken").state.epoch == 2
    train(graph, config, tmp_path / "broken", resume=True)
    whole, broken = open_run(tmp_path / "whole"), open_run(tmp_path / "broken")
    for part in range(4):
        assert np.array_equal(whole.table("entity", part), broken.table("entity", part))


def test_what_joined_partitions_cannot_do_is_refused(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"eval_fraction: got 0\.1 with join_partitions"):
        dataclasses.replace(ring_config, join_partitions=True, eval_fraction=0.1)
    config = dataclasses.replace(ring_config, join_partitions=True)
    with pytest.raises(BudgetError, match="--set join_partitions=false"):
        train(make_ring(4), config, tmp_path / "run", memory="20MB")
