"""What of a training's time was compiling, which a second one does not need."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import pytest

from graphsys import embedding, gnn
from graphsys.embedding import EmbeddingConfig
from graphsys.storage import Graph
from graphsys.training.callbacks import Callback
from tests.unit.embedding.conftest import make_ring as make_ring
from tests.unit.embedding.conftest import ring_config as ring_config
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.conftest import groups as groups
from tests.unit.gnn.training.test_api import config_of

MakeRing = Callable[[int], Graph]


class Compiles(Callback):
    """Compiles something in the first epoch."""

    def on_epoch_start(self, training: Any) -> None:
        if not training.epoch:
            numba.njit(lambda x: x * x + 1)(3)


def seconds_of(report: Any) -> float:
    found: float = report.metrics["compile_seconds"]
    return found


def test_trainings_tell_how_long_they_compiled(
    groups: Store, make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, config = groups(1), config_of(epochs=1)
    gnn.train(graph, config, tmp_path / "first")
    warm = gnn.train(graph, config, tmp_path / "warm")
    report = gnn.train(graph, config, tmp_path / "run", callbacks=[Compiles()])
    assert seconds_of(warm) < 0.01 < seconds_of(report)
    found = embedding.train(
        make_ring(1), ring_config, tmp_path / "rows", callbacks=[Compiles()]
    )
    assert seconds_of(found) > 0.01


@pytest.mark.parametrize("name", ["run", "rows"])
def test_a_resume_tells_of_itself(
    name: str,
    groups: Store,
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
) -> None:
    """What was compiled before the run was gone on with is no part of it."""
    trainer: Any = gnn if name == "run" else embedding
    graph, config = (
        (groups(1), config_of(epochs=1)) if name == "run" else (make_ring(1), ring_config)
    )
    out = tmp_path / name
    trainer.train(graph, config, out, callbacks=[Compiles()])
    longer = replace(config, epochs=config.epochs + 1)
    assert seconds_of(trainer.train(graph, longer, out, resume=True)) < 0.01
