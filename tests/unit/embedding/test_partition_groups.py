"""Partitions trained in groups, other ones in every epoch."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from graphsys.core.errors import ConfigError, StorageFullError
from graphsys.core.progress import Progress
from graphsys.core.types import EdgeType
from graphsys.embedding import EmbeddingConfig, evaluate, open_run, train
from graphsys.embedding.training.api import open_context
from graphsys.embedding.training.buffer import PartitionBuffer
from graphsys.storage import Graph
from graphsys.storage.grouped.pair_view import PairGraph
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, Source

MakeRing = Callable[[int], Graph]


@pytest.fixture
def config(ring_config: EmbeddingConfig) -> EmbeddingConfig:
    return dataclasses.replace(ring_config, partition_groups=2, checkpoint_seconds=0.0)


def test_every_epoch_sees_every_edge_once_in_groups_of_its_own(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    stored = make_ring(9)
    config = dataclasses.replace(config, partition_groups=3)
    context = open_context(stored, config, tmp_path / "run")
    graph = context.graph
    assert isinstance(graph, PairGraph)
    assert context.regroup is not None
    name = graph.edge_type_name(context.model[0].edge_type)
    total, seen = stored.num_edges_of(name, "train"), set()
    for epoch in range(6):
        steps, met = context.regroup(epoch), Counter[frozenset[int]]()
        assert sum(step.num_edges for step in steps) == total
        edges = Counter[tuple[int, int]]()
        for step in steps:
            assert step.src == step.dst  # a group in memory, and nothing else
            assert step.src[1] // 3 == step.round
            bucket = graph.bucket(name, *step.bucket)
            assert bucket.num_edges == step.num_edges
            members = graph.members(*step.src)
            offsets = stored.offsets("entity")
            own = np.concatenate([np.arange(*offsets[k : k + 2]) for k in members])
            edges.update(
                zip(own[bucket.src].tolist(), own[bucket.dst].tolist(), strict=True)
            )
        for part in range(graph.num_partitions("entity")):
            members = graph.members("entity", part)
            assert len(members) == 3
            met.update(frozenset(pair) for pair in combinations(members, 2))
        assert len(met) == 36
        assert set(met.values()) == {1}
        assert edges == all_edges(stored, name)
        seen.add(frozenset(frozenset(graph.members("entity", k)) for k in range(12)))
    assert len(seen) > 3
    context.regroup(0)
    again = open_context(stored, config, tmp_path / "run").graph
    assert isinstance(again, PairGraph)
    assert [again.members("entity", k) for k in range(12)] == [
        graph.members("entity", k) for k in range(12)
    ]  # drawn from seed and epoch alone


def all_edges(graph: Graph, name: str) -> "Counter[tuple[int, int]]":
    """Count the training edges of a graph by their ends' numbers."""
    edges = Counter[tuple[int, int]]()
    for i, j in graph.buckets(name, "train"):
        bucket, offsets = graph.bucket(name, i, j, "train"), graph.offsets("entity")
        ends = (bucket.src + offsets[i]).tolist(), (bucket.dst + offsets[j]).tolist()
        edges.update(zip(*ends, strict=True))
    return edges


def test_groups_learn_more_than_partitions_apart(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = dataclasses.replace(config, checkpoint_seconds=600.0, prefetch=False)
    found = {}
    for groups in (0, 3):
        chosen = dataclasses.replace(config, partition_groups=groups)
        report = train(
            make_ring(9), dataclasses.replace(chosen, epochs=30), tmp_path / str(groups)
        )
        found[groups] = evaluate(report.run, split="test")["metrics"]["mrr"]
    assert found[3] > 1.1 * found[0]
    assert report.metrics["buffer_partitions"] == 1
    names = [name for name in open_run(tmp_path / "3").state.files if "rows" in name]
    assert len(names) == 9  # stored by the graph's own partitions


def test_types_of_unlike_partitions_are_trained_in_groups(
    config: EmbeddingConfig, tmp_path: Path
) -> None:
    ingest(Market(), tmp_path / "market", partitions={"user": 9, "item": 5, "shop": 1})
    graph = Graph(tmp_path / "market")
    config = dataclasses.replace(config, partition_groups=3, epochs=2, prefetch=False)
    context = open_context(graph, config, tmp_path / "run")
    steps = {k: [s for s in context.steps if s.edge_type == k] for k in range(3)}
    kinds = [relations.edge_type for relations in context.model]
    for k, kind in enumerate(kinds):
        assert sum(step.num_edges for step in steps[k]) == graph.num_edges_of(kind)
        if kind.src_type == kind.dst_type:
            assert {step.round for step in steps[k]} == {0, 1, 2, 3}
        else:  # every user's group meets every item's in the first round
            assert {step.round for step in steps[k]} == {0}
    report = train(graph, config, tmp_path / "run")
    run = open_run(report.run)
    assert run.state.num_edges == 2 * graph.num_edges
    rows = [name for name in run.state.files if "rows" in name]
    for name, count in (("user", 9), ("item", 5), ("shop", 1)):
        assert sum(name in row for row in rows) == count


class Market(Source):
    """Users that follow users and buy items of shops."""

    name = "market"

    def chunks(self) -> Iterator[EdgeChunk]:
        rng = np.random.default_rng(0)
        for kind, src, dst in (
            (EdgeType("user", "follows", "user"), 90, 90),
            (EdgeType("user", "buys", "item"), 90, 40),
            (EdgeType("shop", "sells", "item"), 3, 40),
        ):
            ends = rng.permutation(src * dst)[: src * dst // 2]
            yield EdgeChunk(src=ends // dst, dst=ends % dst, edge_type=kind)


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


@pytest.mark.parametrize("unit", [0, 3])  # in the first round of three, in the second
def test_an_interrupted_run_goes_on_with_the_groups_that_it_had(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path, unit: int
) -> None:
    config = dataclasses.replace(config, epochs=4, deterministic=True, prefetch=unit == 0)
    graph = make_ring(4)
    train(graph, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(graph, config, tmp_path / "broken", progress=Interrupt(unit))
    assert open_run(tmp_path / "broken").state.epoch == 2
    train(graph, config, tmp_path / "broken", resume=True)
    whole, broken = open_run(tmp_path / "whole"), open_run(tmp_path / "broken")
    for part in range(4):
        assert np.array_equal(whole.table("entity", part), broken.table("entity", part))


@pytest.mark.parametrize("call", [2, 4])  # between two rounds, between two epochs
def test_a_disk_that_is_full_where_groups_change_loses_nothing(
    make_ring: MakeRing,
    config: EmbeddingConfig,
    tmp_path: Path,
    call: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = dataclasses.replace(config, epochs=3, deterministic=True, prefetch=call == 2)
    graph = make_ring(4)
    train(graph, config, tmp_path / "whole")
    calls, real = [], PartitionBuffer.clear

    def clear(self: PartitionBuffer) -> None:
        calls.append(0)
        if len(calls) == call:
            raise StorageFullError("no space left on device")
        real(self)

    with monkeypatch.context() as patch:
        patch.setattr(PartitionBuffer, "clear", clear)
        with pytest.raises(StorageFullError, match=r"no space left .*go on with --resume"):
            train(graph, config, tmp_path / "full")
    train(graph, config, tmp_path / "full", resume=True)
    whole, full = open_run(tmp_path / "whole"), open_run(tmp_path / "full")
    for part in range(4):
        assert np.array_equal(whole.table("entity", part), full.table("entity", part))


def test_what_groups_cannot_do_is_refused(
    make_ring: MakeRing, config: EmbeddingConfig, tmp_path: Path
) -> None:
    for setting, value in (
        ("eval_fraction", 0.1),
        ("mask_known_edges", True),
        ("init_from", "run"),
    ):
        with pytest.raises(ConfigError, match=f"{setting}: got .* with partition_groups"):
            dataclasses.replace(config, **{setting: value})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="partition_groups: got 2 with join_partitions"):
        dataclasses.replace(config, join_partitions=True)
    for groups in (1, 6, 33):
        with pytest.raises(
            ConfigError, match=f"partition_groups: got {groups}, expected one"
        ):
            dataclasses.replace(config, partition_groups=groups)
    with pytest.raises(ConfigError, match=r"got 2, which takes 4 .* 2: `.*--partitions 4"):
        train(make_ring(2), config, tmp_path / "run")
    config = dataclasses.replace(config, partition_groups=3)
    with pytest.raises(ConfigError, match=r"has 4: --set partition_groups=2, or .* 9 -o"):
        train(make_ring(4), config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
