"""Whole runs with pools of negatives: shorthand, reruns, resumes, types, partitions."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig, evaluate, train
from graphsys.embedding import run as runs
from graphsys.embedding.negatives_config import PoolConfig
from graphsys.embedding.training.plan import Planner
from graphsys.storage import Graph
from tests.embedding_context import context_of
from tests.trainings import Interrupt

MakeRing = Callable[[int], Graph]

MIX = (
    PoolConfig(kind="batch", num=8, importance=True),
    PoolConfig(kind="uniform", num=6, importance=True),
    PoolConfig(kind="degree", num=5, importance=True),
    PoolConfig(kind="type", num=4, importance=True),
    PoolConfig(kind="hard", num=3),
)


def tables(path: Path) -> dict[str, bytes]:
    """Return the content of every file of a checkpoint under its version-free name."""
    state = runs.read_state(path)
    return {name.rsplit(".", 2)[0]: (path / name).read_bytes() for name in state.files}


def mixed(config: EmbeddingConfig, **changes: Any) -> EmbeddingConfig:
    """Return a config with its pools replaced."""
    values: dict[str, Any] = {
        "negatives": MIX,
        "num_batch_negatives": 500,
        "num_uniform_negatives": 500,
        "importance_weights": False,
        "epochs": 4,
    }
    return dataclasses.replace(config, **(values | changes))


def test_pools_spelled_out_train_as_the_shorthand(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    for num_batch in (0, 8):
        short = dataclasses.replace(ring_config, num_batch_negatives=num_batch, epochs=3)
        spelled = mixed(ring_config, negatives=short.pools, epochs=3)
        for partitions in (1, 3):
            graph, out = make_ring(partitions), tmp_path / f"{num_batch}-{partitions}"
            train(graph, short, out / "short")
            train(graph, spelled, out / "spelled")
            assert tables(out / "short") == tables(out / "spelled")


@pytest.mark.parametrize("masked", [False, True])
def test_a_mix_reruns_and_resumes_bit_by_bit(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, masked: bool
) -> None:
    graph = make_ring(3)
    config = mixed(ring_config, mask_known_edges=masked, checkpoint_seconds=0.0)
    train(graph, config, tmp_path / "once")
    train(graph, config, tmp_path / "again")
    with pytest.raises(KeyboardInterrupt):
        train(graph, config, tmp_path / "broken", progress=Interrupt(40))
    assert 0 < runs.read_state(tmp_path / "broken").epoch < 4
    train(graph, None, tmp_path / "broken", resume=True)
    once = tables(tmp_path / "once")
    assert once == tables(tmp_path / "again") == tables(tmp_path / "broken")


def test_a_resume_with_other_pools_is_refused(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, config = make_ring(1), mixed(ring_config)
    train(graph, config, tmp_path / "run")
    other = mixed(ring_config, negatives=MIX[:2])
    with pytest.raises(ConfigError, match=r"negatives: \[.*'degree'.*\] -> \["):
        train(graph, other, tmp_path / "run", resume=True)


@pytest.mark.parametrize("loss", ["softmax", "logistic", "ranking"])
def test_node_types_with_their_own_partitions_train(
    shop: Graph, tmp_path: Path, loss: Any
) -> None:
    pools = tuple(
        dataclasses.replace(
            pool,
            importance=pool.importance and loss == "softmax",
            adversarial=1.0 if loss == "logistic" else 0.0,
        )
        for pool in MIX
    )
    config = EmbeddingConfig(
        dim=8,
        epochs=3,
        threads=2,
        loss=loss,
        negatives=pools,
        mask_known_edges=True,
        batch_size=32,
        init_scale=0.1,
    )
    report = train(shop, config, tmp_path / "run")
    assert report.epochs == 3
    assert np.isfinite(report.metrics["loss"])


def test_a_mix_learns_the_ring(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = mixed(ring_config, mask_known_edges=True, epochs=ring_config.epochs)
    train(make_ring(1), config, tmp_path / "run")
    result = evaluate(tmp_path / "run", split="test", graph=make_ring(1))
    assert result["metrics"]["mrr"] > 0.5


def test_the_plan_counts_the_tables(
    make_ring: MakeRing, ring_config: EmbeddingConfig
) -> None:
    def planned(config: EmbeddingConfig) -> int:
        planner = Planner(context_of(make_ring(1), config))
        return planner.plan(planner.choose(1 << 40, is_stated=True)).memory_bytes

    uniform, degree = (PoolConfig(kind="uniform", num=9), PoolConfig(kind="degree", num=9))
    plain = planned(mixed(ring_config, negatives=(uniform,)))
    weighed = planned(mixed(ring_config, negatives=(degree,)))
    assert weighed - plain == 2 * 40 * 8  # two sides, 40 nodes, share and alias
    masked = mixed(ring_config, negatives=(uniform,), mask_known_edges=True)
    assert planned(masked) > plain
