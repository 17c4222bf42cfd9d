"""Evaluation, early stopping, preserved checkpoints, chunks and sets while training."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig, evaluate, load_config, open_run, train
from graphsys.embedding import run as runs
from graphsys.embedding.checkpoints import find_checkpoint, preserved_epochs
from graphsys.embedding.control_config import EdgeSetConfig
from graphsys.embedding.training.bucket_trainer import BucketTrainer
from graphsys.embedding.training_log import read_log
from graphsys.storage import Graph
from tests.trainings import Interrupt
from tests.unit.embedding.triple_graphs import read_triples, write

MakeRing = Callable[[int], Graph]


def tables(path: Path) -> dict[str, bytes]:
    """Return the content of every file of a checkpoint under its version-free name."""
    state = runs.read_state(path)
    return {name.rsplit(".", 2)[0]: (path / name).read_bytes() for name in state.files}


def set_up(config: EmbeddingConfig, **changes: Any) -> EmbeddingConfig:
    return dataclasses.replace(config, **({"checkpoint_seconds": 0.0} | changes))


def broken_run(graph: Graph, config: EmbeddingConfig, out: Path, every: int) -> None:
    """Train with an interruption after every so many steps, and resumes."""
    for attempt in range(100):
        try:
            train(graph, config, out, resume=attempt > 0, progress=Interrupt(every))
            return
        except KeyboardInterrupt:
            continue
    raise AssertionError("the run did not come to an end")


def test_early_stopping_keeps_the_best_checkpoint_and_reports_it(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, out = make_ring(2), tmp_path / "run"
    config = set_up(
        ring_config, epochs=100, eval_every=5, patience=2, checkpoint_seconds=60.0
    )
    report = train(graph, config, out)
    history = dict(map(tuple, report.metrics["valid_mrr"]))
    best = report.metrics["best_epoch"]
    assert report.epochs < 100
    assert report.metrics["stopped_early"] is True
    assert history[best] == report.metrics["best_mrr"] == max(history.values())
    assert report.epochs == best + 2 * 5
    assert evaluate(out, split="valid")["metrics"]["mrr"] == history[best]
    assert runs.read_state(out).is_complete
    assert not (out / "checkpoints").exists()
    before = (out / "run.json").read_bytes()
    assert train(graph, config, out, resume=True).epochs == report.epochs
    assert (out / "run.json").read_bytes() == before


@pytest.mark.parametrize(("every", "seconds"), [(5, 0.0), (40, 1000.0)])
def test_a_broken_run_with_chunks_and_early_stopping_equals_the_unbroken_one(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    every: int,
    seconds: float,
) -> None:
    config = set_up(
        ring_config,
        epochs=6,
        edge_chunks=2,
        eval_fraction=0.2,
        patience=2,
        monitor="held_out_loss",
        min_improvement=0.5,
        preserve_every=2,
        checkpoint_seconds=seconds,
    )
    graph = make_ring(2)
    train(graph, config, tmp_path / "whole")
    broken_run(graph, config, tmp_path / "broken", every)
    assert tables(tmp_path / "whole") == tables(tmp_path / "broken")
    whole, broken = (runs.read_state(tmp_path / name) for name in ("whole", "broken"))
    assert (whole.losses, whole.best) == (broken.losses, broken.best)
    assert preserved_epochs(tmp_path / "whole") == preserved_epochs(tmp_path / "broken")
    logs = [
        [
            (line["event"], line.get("epoch"), line.get("unit"), line.get("loss"))
            for line in read_log(tmp_path / name)
        ]
        for name in ("whole", "broken")
    ]
    assert logs[0] == logs[1]


def test_checkpoints_are_preserved_and_can_be_opened(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, out = make_ring(2), tmp_path / "run"
    config = set_up(ring_config, epochs=7, preserve_every=3)
    train(graph, config, out)
    assert preserved_epochs(out) == [3, 6]
    shorter = train(graph, set_up(ring_config, epochs=3), tmp_path / "short").run
    kept = find_checkpoint(out, 3)
    assert open_run(kept).state.epoch == 3
    assert tables(kept) == tables(shorter)
    assert tables(kept) != tables(out)
    assert open_run(out, epoch=3).path == kept
    with pytest.raises(ConfigError, match="no checkpoint of epoch 4; preserved: 3, 6"):
        open_run(out, epoch=4)


def test_the_log_tells_units_epochs_and_evaluations(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = set_up(ring_config, epochs=2, eval_every=1, eval_fraction=0.25)
    graph, out = make_ring(2), tmp_path / "run"
    report = train(graph, config, out)
    lines = read_log(out)
    state = runs.read_state(out)
    assert (out / "training.jsonl").stat().st_size == state.log_bytes
    units = [line for line in lines if line["event"] == "unit" and line["epoch"] == 2]
    (epoch,) = [line for line in lines if line["event"] == "epoch" and line["epoch"] == 2]
    assert [line["unit"] for line in units] == list(range(1, len(units) + 1))
    total = sum(line["edges"] for line in units)
    assert total == state.num_edges / 2
    assert sum(u["edges"] * u["loss"] for u in units) / total == pytest.approx(
        state.losses[1]
    )
    held = [u["held_out_edges"] for u in units]
    mean = sum(
        n * u["held_out_loss_after"] for n, u in zip(held, units, strict=True) if n
    ) / sum(held)
    assert epoch["held_out_loss"] == pytest.approx(mean)
    evaluation = [line for line in lines if line["event"] == "evaluation"][-1]
    assert evaluation["metrics"]["mrr"] == report.metrics["valid_mrr"][-1][1]
    assert set(evaluation["metrics"]) >= {"mrr", "mr", "hits@1", "hits@10"}


def test_held_out_edges_are_not_trained_and_are_ranked_on_request(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph = make_ring(2)
    config = set_up(
        ring_config, epochs=30, eval_fraction=0.2, eval_every=30, eval_split="held_out"
    )
    report = train(graph, config, tmp_path / "run")
    counts = graph.bucket_counts("triple")
    held = sum(int(n * 0.2) for n in counts.flat)
    assert runs.read_state(tmp_path / "run").num_edges == 30 * (graph.num_edges - held)
    ((epoch, mrr),) = report.metrics["held_out_mrr"]
    assert epoch == 30
    assert 0.0 < mrr < 1.0
    later = evaluate(tmp_path / "run", split="held_out", graph=graph)["metrics"]
    assert later["mrr"] == mrr
    assert later["num_queries"] == 2 * held
    with pytest.raises(ConfigError, match=r"'none' has no edges; the graph has held_out, "):
        evaluate(tmp_path / "run", split="none", graph=graph)
    # what follows from the other edges of the ring is learnt, and measured as loss too
    losses = [value for _, value in report.metrics["held_out_loss"]]
    assert losses[-1] < losses[0]


def test_measuring_held_out_edges_changes_nothing_that_is_trained(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    triples = read_triples(shared_data / "kinships", "train")
    graph = write(tmp_path / "graph", triples, partitions=2)
    config = EmbeddingConfig(
        dim=16,
        epochs=2,
        operator="diagonal",
        deterministic=True,
        eval_fraction=0.1,
        num_batch_negatives=50,
        num_uniform_negatives=50,
    )
    report = train(graph, config, tmp_path / "run")
    first, last = (value for _, value in report.metrics["held_out_loss"])
    assert last < first
    before = [u["held_out_loss_before"] for u in read_log(tmp_path / "run")[:3]]
    assert before[0] > first
    monkeypatch.setattr(BucketTrainer, "measure", lambda *args: 0.0)
    train(graph, config, tmp_path / "blind")
    assert tables(tmp_path / "run") == tables(tmp_path / "blind")


@pytest.mark.parametrize("chunks", [2, 3])
def test_every_edge_is_trained_once_an_epoch_in_chunks(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, chunks: int
) -> None:
    graph = make_ring(2)
    config = set_up(ring_config, epochs=2, edge_chunks=chunks)
    train(graph, config, tmp_path / "run")
    state = runs.read_state(tmp_path / "run")
    assert state.num_edges == 2 * graph.num_edges
    units = [u for u in read_log(tmp_path / "run") if u["event"] == "unit"]
    assert len(units) == 2 * chunks * 3  # (0, 0), (0, 1) with (1, 0), (1, 1)


def test_edge_sets_are_trained_one_after_the_other(shop: Graph, tmp_path: Path) -> None:
    sets = (
        EdgeSetConfig(edge_types=("of",)),
        EdgeSetConfig(edge_types=("likes",), split="test"),
        EdgeSetConfig(edge_types=("likes",)),
    )
    config = EmbeddingConfig(
        dim=8, epochs=2, edge_sets=sets, num_batch_negatives=10, num_uniform_negatives=10
    )
    written = 'edge_sets=[{edge_types=["of"]},{edge_types=["likes"],split="test"}]'
    assert load_config(overrides=[written]).edge_sets == sets[:2]
    train(shop, config, tmp_path / "run")
    train(shop, config, tmp_path / "run", resume=True)  # config.toml reads back as it was
    units = [u for u in read_log(tmp_path / "run") if u["event"] == "unit"]
    half = units[: len(units) // 2]
    assert sum(u["edges"] for u in half) == 20 + 100 + 500
    order = [u["phase"] for u in half]
    assert order == sorted(order)
    assert set(order) == {1, 2, 3}


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (EdgeSetConfig(edge_types=("liks",)), r"edge_sets\[0\]: .*'liks'.*mean 'likes'"),
        (EdgeSetConfig(split="dev"), r"edge_sets\[0\]: split 'dev' has no edges"),
    ],
)
def test_an_edge_set_that_is_not_there_is_refused_before_anything_is_written(
    shop: Graph, tmp_path: Path, chosen: EdgeSetConfig, message: str
) -> None:
    config = EmbeddingConfig(dim=8, edge_sets=(chosen,))
    with pytest.raises((ConfigError, LookupError), match=message):
        train(shop, config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
