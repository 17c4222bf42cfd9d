"""Partitions trained in groups, other ones in every epoch."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.core.progress import Progress
from graphsys.embedding import EmbeddingConfig, evaluate, open_run, train
from graphsys.embedding.training.api import open_context
from graphsys.storage.merged_view import GroupedGraph
from graphsys.storage.reader import Graph

MakeRing = Callable[[int], Graph]


@pytest.fixture
def config(ring_config: EmbeddingConfig) -> EmbeddingConfig:
    return dataclasses.replace(ring_config, partition_groups=2, checkpoint_seconds=0.0)


def groups_of(graph: GroupedGraph) -> set[frozenset[int]]:
    parts = range(graph.num_partitions("entity"))
    return {frozenset(graph.members("entity", part)) for part in parts}


def test_every_epoch_has_groups_of_its_own_and_all_edges(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    stored = make_ring(8)
    context = open_context(stored, config, tmp_path / "run")
    graph = context.graph
    assert isinstance(graph, GroupedGraph)
    assert context.regroup is not None
    total, seen = sum(step.num_edges for step in context.steps), set()
    for epoch in range(6):
        steps = context.regroup(epoch)
        assert sum(step.num_edges for step in steps) == total
        assert {step.src[1] for step in steps} == {0, 1}
        seen.add(frozenset(groups_of(graph)))
    assert len(seen) > 3
    context.regroup(0)
    again = open_context(stored, config, tmp_path / "run").graph
    assert isinstance(again, GroupedGraph)
    assert groups_of(again) == groups_of(graph)  # drawn from seed and epoch alone


def test_groups_learn_more_than_partitions_apart(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = dataclasses.replace(config, checkpoint_seconds=600.0)
    found = {}
    for groups in (0, 2):
        chosen = dataclasses.replace(config, partition_groups=groups)
        report = train(
            make_ring(6), dataclasses.replace(chosen, epochs=80), tmp_path / str(groups)
        )
        found[groups] = evaluate(report.run, split="test")["metrics"]["mrr"]
    assert found[2] > 1.1 * found[0]
    names = [name for name in open_run(tmp_path / "2").state.files if "rows" in name]
    assert len(names) == 6  # stored by the graph's own partitions


class Interrupt(Progress):
    """Stops a training within its third epoch."""

    def __init__(self, unit: int) -> None:
        self.epochs = self.units = 0
        self.unit = unit

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        self.epochs += 1
        self.units = 0

    def advance(self, steps: int, **figures: float) -> None:
        self.units += 1
        if self.epochs == 3 and self.units > self.unit:
            raise KeyboardInterrupt


@pytest.mark.parametrize("unit", [0, 2])
def test_an_interrupted_run_goes_on_with_the_groups_that_it_had(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path, unit: int
) -> None:
    config = dataclasses.replace(config, epochs=5, deterministic=True, prefetch=unit == 0)
    graph = make_ring(8)
    train(graph, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(graph, config, tmp_path / "broken", progress=Interrupt(unit))
    assert open_run(tmp_path / "broken").state.epoch == 2
    train(graph, config, tmp_path / "broken", resume=True)
    whole, broken = open_run(tmp_path / "whole"), open_run(tmp_path / "broken")
    for part in range(8):
        assert np.array_equal(whole.table("entity", part), broken.table("entity", part))


def test_what_groups_cannot_do_is_refused(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    for setting, value in (
        ("eval_fraction", 0.1), ("mask_known_edges", True), ("init_from", "run"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=f"{setting}: got .* with partition_groups"):
            dataclasses.replace(config, **{setting: value})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="partition_groups: got 2 with join_partitions"):
        dataclasses.replace(config, join_partitions=True)
    with pytest.raises(ConfigError, match="partition_groups: got 1, expected 2 or more"):
        dataclasses.replace(config, partition_groups=1)
    with pytest.raises(ConfigError, match=r"got 2, but the graph has 2 .*--partitions 8"):
        train(make_ring(2), config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
