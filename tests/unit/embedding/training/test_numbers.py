"""Numbers of a training of embeddings: by table and operator, and nothing where off."""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError
from graphsys.core.progress import Progress
from graphsys.embedding import EmbeddingConfig, open_run, train
from graphsys.embedding import run as runs
from graphsys.embedding.training.bucket_trainer import BucketTrainer
from graphsys.storage import Graph
from graphsys.training.loop import TrainingLoop
from graphsys.training.tensorboard import FOLDER

MakeRing = Callable[[int], Graph]


def tables(path: Path) -> list[bytes]:
    return [(path / name).read_bytes() for name in sorted(runs.read_state(path).files)]


def test_rows_operators_and_gradients_are_told_by_epoch(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph = make_ring(2)
    config = dataclasses.replace(ring_config, epochs=2, deterministic=True)
    with_numbers = dataclasses.replace(config, numbers=True)
    with gs.profile(level="L0") as p:
        report = train(graph, with_numbers, tmp_path / "on")
    rows = {(row["kind"], row["layer"]): row for row in report.metrics["numbers"]}
    (node_type,) = graph.node_types
    own = rows["parameter", f"rows.{node_type}"]
    stored = open_run(tmp_path / "on")
    values = np.concatenate([stored.rows(node_type, part) for part in range(2)])
    assert own["count"] == values.size
    assert own["mean"] == pytest.approx(values.mean(dtype=np.float64), abs=1e-9)
    assert own["largest"] == np.abs(values).max()
    gradient = rows["gradient", f"rows.{node_type}"]
    assert gradient["count"] > 0
    assert gradient["largest"] > 0
    # both epochs stand in the profile, the last in the run
    told = p.report["numbers"]
    assert {row["epoch"] for row in told} == {1, 2}
    assert runs.read_state(tmp_path / "on").metrics["numbers"] == report.metrics["numbers"]
    # nothing that is trained changes by being watched
    alone = train(graph, config, tmp_path / "off")
    assert tables(tmp_path / "on") == tables(tmp_path / "off")
    assert "numbers" not in alone.metrics


def test_nobody_looks_where_nobody_asked(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []
    run = TrainingLoop.run

    def spied(self: TrainingLoop, progress: Progress) -> None:
        seen.extend(self.callbacks)
        run(self, progress)

    monkeypatch.setattr(TrainingLoop, "run", spied)
    monkeypatch.setattr(BucketTrainer, "gradients", None)
    monkeypatch.delitem(sys.modules, "graphsys.embedding.training.numbers", raising=False)
    train(make_ring(1), dataclasses.replace(ring_config, epochs=1), tmp_path / "run")
    assert seen == []
    assert "graphsys.embedding.training.numbers" not in sys.modules


def test_rows_of_16_bits_have_values_and_no_gradient(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = dataclasses.replace(
        ring_config, epochs=1, numbers=True, row_dtype="bfloat16", threads=1
    )
    report = train(make_ring(1), config, tmp_path / "run")
    kinds = {(row["kind"], row["layer"].split(".")[0]) for row in report.metrics["numbers"]}
    assert ("parameter", "rows") in kinds
    assert ("gradient", "rows") not in kinds


def test_curves_and_distributions_are_written_for_tensorboard(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    config = dataclasses.replace(ring_config, epochs=2, numbers=True, tensorboard=True)
    report = train(make_ring(1), config, tmp_path / "run")
    found = events.EventAccumulator(str(tmp_path / "run" / FOLDER), {"histograms": 0})
    found.Reload()
    tags = found.Tags()
    (rows,) = [it for it in tags["histograms"] if it.startswith("log2/parameter/rows.")]
    assert [event.step for event in found.Histograms(rows)] == [1, 2]
    losses = [event.value for event in found.Scalars("loss")]
    assert losses[-1] == pytest.approx(report.metrics["loss"])
    assert any(it.startswith("numbers/under_float16/gradient/") for it in tags["scalars"])


def test_numbers_do_not_go_with_a_cluster(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    from graphsys.distributed import Cluster, train_embedding

    config = dataclasses.replace(ring_config, numbers=True)
    with pytest.raises(ConfigError, match="numbers: got true with --cluster"):
        train_embedding(
            make_ring(2), config, tmp_path / "run", cluster=Cluster.parse("local:2")
        )
