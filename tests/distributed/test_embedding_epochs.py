"""The loop of embeddings on a cluster, with workers as threads of the test, without Ray."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys import embedding
from graphsys.cli.main import main
from graphsys.core.arrays import load_array
from graphsys.core.errors import (
    ClusterError,
    ConfigError,
    StorageFullError,
    TrainingFailedError,
)
from graphsys.core.types import EdgeType
from graphsys.distributed import Cluster
from graphsys.distributed.embedding import epochs, training
from graphsys.distributed.embedding.training import train_embedding
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.run import EmbeddingRunState, check_files, read_state
from graphsys.embedding.training_log import read_log
from graphsys.embedding.type_configs import NodeTypeConfig
from graphsys.storage.transaction import disk_errors
from graphsys.storage.verify.run import verify_run
from tests.advice.case import advised
from tests.clusters import NearCrew, near_crew
from tests.distributed.test_train_embedding import NUM_EDGES, ring
from tests.stores import edge_chunk, make_store

TWO = Cluster.parse("local:2")
SETTINGS: dict[str, Any] = {
    "dim": 8,
    "operator": "complex_diagonal",
    "batch_size": 50,
    "threads": 1,
    "epochs": 3,
    "num_uniform_negatives": 10,
    "num_batch_negatives": 5,
    "checkpoint_seconds": 0.0,
}


@contextmanager
def two_processors(cluster: Cluster) -> Iterator[int]:
    yield cluster.local_workers


@pytest.fixture(autouse=True)
def _near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "started", near_crew)
    monkeypatch.setattr(training, "connected", two_processors)
    monkeypatch.setattr(NearCrew, "fail_in", [])


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ring(tmp_path_factory.mktemp("ring") / "graph", 4)


def visits(path: Path) -> Path:
    """Write visits of users, in four partitions, to places, in one."""
    pairs = [(f"u{k}", f"p{k % 7}") for k in range(400)]
    kind = EdgeType("user", "visits", "place")
    partitions = {"user": 4, "place": 1}
    make_store(path, edge_chunk(pairs, kind), partitions=partitions)
    return path


def test_types_with_one_partition_are_trained_by_all_workers(tmp_path: Path) -> None:
    store = visits(tmp_path / "graph")
    place = NodeTypeConfig(global_embedding=True)
    config = EmbeddingConfig(**SETTINGS, node_types={"place": place}, parameter_servers=3)
    run = tmp_path / "run"
    report = train_embedding(store, config, run, cluster=TWO)
    assert (report.workers, report.metrics["parameter_servers"]) == (2, 3)
    assert [each["buckets"] > 0 for each in report.metrics["per_worker"]] == [True, True]
    assert report.metrics["parameter_bytes"] > 0
    embedding.train(store, config, tmp_path / "alone")
    rows = [embedding.open_run(r).rows("place", 0) for r in (run, tmp_path / "alone")]
    moved = [np.linalg.norm(each, axis=1).mean() for each in rows]
    assert moved[0] == pytest.approx(moved[1], rel=0.3)
    assert verify_run(run).ok
    losses = read_state(run).losses
    assert losses[-1] < losses[0]
    with pytest.raises(ConfigError, match="row_dtype: got bfloat16 with --cluster, and pl"):
        train_embedding(
            store, EmbeddingConfig(**SETTINGS, row_dtype="bfloat16"), run, cluster=TWO
        )
    with pytest.raises(ConfigError, match="optimizer: got adam with --cluster, and place"):
        train_embedding(
            store, EmbeddingConfig(**SETTINGS, optimizer="adam"), run, cluster=TWO
        )
    with pytest.raises(ConfigError, match="parameter_servers: got 65, expected at most 64"):
        train_embedding(
            store, EmbeddingConfig(**SETTINGS, parameter_servers=65), run, cluster=TWO
        )


def test_workers_train_rows_of_bytes_partition_by_partition(
    graph: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    train_embedding(graph, EmbeddingConfig(**SETTINGS, row_dtype="int8"), run, cluster=TWO)
    losses = read_state(run).losses
    assert losses[-1] < losses[0]
    assert verify_run(run).ok
    for part in range(4):
        (file,) = run.glob(f"rows/*/part-{part}.*.npy")
        rows = load_array(file)
        assert rows.dtype == np.int8
        assert rows.shape[1] == SETTINGS["dim"] + 2


def test_dense_parameters_are_all_reduced_and_rows_go_through_the_server(
    tmp_path: Path,
) -> None:
    store, run = visits(tmp_path / "graph"), tmp_path / "run"
    place = NodeTypeConfig(global_embedding=True)
    config = EmbeddingConfig(
        **{**SETTINGS, "checkpoint_seconds": 3600.0},
        node_types={"place": place},
        parameter_exchange="all_reduce",
    )
    metrics = train_embedding(store, config, run, cluster=TWO).metrics
    assert metrics["allreduce_bytes"] > 0 < metrics["parameter_bytes"]
    assert metrics["staleness_bound"] == 6  # that of the server
    assert verify_run(run).ok
    served = train_embedding(
        store, replace(config, parameter_exchange="server"), tmp_path / "s", cluster=TWO
    )
    assert served.metrics["allreduce_bytes"] == 0
    moved = [
        np.linalg.norm(np.load(next((path / "globals").glob("place.*.npy")))[0])
        for path in (run, tmp_path / "s")
    ]
    assert 0.2 < moved[0] / moved[1] < 5  # how often they exchanged, the clock decides


def test_a_checkpoint_within_an_epoch_has_what_was_all_reduced(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a training in which the crew is lost goes on from it."""
    run = tmp_path / "run"
    config = EmbeddingConfig(**{**SETTINGS, "parameter_exchange": "all_reduce"})
    monkeypatch.setattr(NearCrew, "fail_in", [1])
    report = train_embedding(graph, config, run, cluster=TWO)
    assert (report.restarts, report.epochs) == (1, 3)
    assert report.metrics["staleness_max"] <= report.metrics["staleness_bound"] == 2
    assert read_state(run).losses[-1] < read_state(run).losses[0]
    assert verify_run(run).ok


def test_what_one_machine_left_in_an_epoch_is_gone_on_with(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what a cluster left is gone on with by one machine."""
    run, config = tmp_path / "run", EmbeddingConfig(**SETTINGS)
    count, counted = EmbeddingRunState.count, 0

    def interrupted(self: EmbeddingRunState, num_edges: int, loss: float) -> None:
        nonlocal counted
        counted += 1
        if counted == 6:
            raise KeyboardInterrupt
        count(self, num_edges, loss)

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddingRunState, "count", interrupted)
        with pytest.raises(KeyboardInterrupt):
            embedding.train(graph, config, run)
    assert 0 < read_state(run).unit < 10
    end = EmbeddingRunState.end_epoch

    def stopped(self: EmbeddingRunState) -> None:
        if self.epoch == 1:
            raise KeyboardInterrupt
        end(self)

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddingRunState, "end_epoch", stopped)
        with pytest.raises(KeyboardInterrupt):
            train_embedding(graph, None, run, cluster=TWO, resume=True)
    assert (read_state(run).epoch, read_state(run).unit) == (1, 9)
    report = embedding.train(graph, None, run, resume=True)
    assert report.epochs == 3
    assert read_state(run).num_edges == 3 * NUM_EDGES
    assert verify_run(run).ok


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("resumed_by", [0, 1, 2])
def test_what_a_cluster_left_in_an_epoch_is_gone_on_with(
    graph: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
    resumed_by: int,
) -> None:
    """By one machine, or by as many workers; each unit is trained once."""
    run, config = tmp_path / "run", EmbeddingConfig(**SETTINGS)
    save = epochs.ClusterTrainer.save

    def interrupted(self: epochs.ClusterTrainer) -> None:
        save(self)
        saved = read_state(run)
        if saved.epoch == 1 and saved.unit >= 4:  # of two workers one may have two units
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(epochs.ClusterTrainer, "save", interrupted)
        where = Cluster.parse(f"local:{workers}")
        with pytest.raises(KeyboardInterrupt):
            train_embedding(graph, config, run, cluster=where)
    state = read_state(run)
    assert (state.epoch, state.unit) == (1, 4) or (workers == 2 and state.unit < 10)
    check_files(run, state)  # nothing of it was removed; another may have written more
    assert 0 < state.epoch_edges < NUM_EDGES
    if workers == 1:  # it keeps what it has, first of all
        assert state.first_units not in ([], [0, 1, 2, 3])
    if resumed_by:
        where = Cluster.parse(f"local:{resumed_by}")
        report: Any = train_embedding(graph, None, run, cluster=where, resume=True)
    else:
        report = embedding.train(graph, None, run, resume=True)
    assert report.epochs == 3
    state = read_state(run)
    assert (state.num_edges, state.first_units) == (3 * NUM_EDGES, [])
    log = [line for line in read_log(run) if line["event"] == "unit"]
    assert [sum(line["epoch"] == k for line in log) for k in (1, 2, 3)] == [10, 10, 10]
    assert sum(line["edges"] for line in log) == 3 * NUM_EDGES
    assert verify_run(run).ok


def test_evaluations_and_checkpoints_follow_epochs(graph: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    config = EmbeddingConfig(
        **SETTINGS, eval_every=1, eval_split="test", eval_fraction=0.1, preserve_every=2
    )
    report = train_embedding(graph, config, run, cluster=TWO)
    assert [epoch for epoch, _ in report.metrics["test_mrr"]] == [1, 2, 3]
    assert len(report.metrics["held_out_loss"]) == 3
    assert embedding.open_run(run, epoch=2).rows("node", 0).shape[1] == 8
    events = [each["event"] for each in read_log(run)]
    assert [events.count(e) for e in ("unit", "epoch", "evaluation")] == [30, 3, 3]
    more = EmbeddingConfig(**SETTINGS, init_from=str(run), init_lr=0.5)
    warm = train_embedding(graph, more, tmp_path / "warm", cluster=TWO)
    assert warm.metrics["drift"]


class Listener(embedding.Callback):
    """Notes what it is told, and ends a training in its second epoch."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.num_edges = 0

    def on_train_start(self, training: embedding.Training) -> None:
        self.calls.append("start")

    def on_step_end(self, training: embedding.Training, step: embedding.Step) -> None:
        assert step.is_last or step.loss > 0 or not step.num_edges
        self.num_edges += step.num_edges
        if training.epoch == 1 and step.num_edges:
            training.stop()

    def on_evaluation(self, training: embedding.Training, metrics: Any) -> None:
        assert 0 <= metrics["test_mrr"] <= 1
        self.calls.append("evaluation")

    def on_epoch_end(self, training: embedding.Training) -> None:
        self.calls.append(f"epoch {training.epoch}")

    def on_checkpoint(self, training: embedding.Training) -> None:
        assert training.path is not None
        assert read_state(training.path).files

    def on_train_end(self, training: embedding.Training) -> None:
        self.calls.append("end")


def test_callbacks_see_a_training_and_end_it_after_an_epoch(
    graph: Path, tmp_path: Path
) -> None:
    run, listener = tmp_path / "run", Listener()
    config = EmbeddingConfig(**SETTINGS, eval_every=1, eval_split="test", eval_fraction=0.1)
    report = train_embedding(graph, config, run, cluster=TWO, callbacks=[listener])
    seen = [it for k in (1, 2) for it in ("evaluation", f"epoch {k}")]
    assert listener.calls == ["start", *seen, "end"]
    assert listener.num_edges == read_state(run).num_edges > NUM_EDGES
    assert (report.epochs, read_state(run).is_complete) == (2, True)
    again = train_embedding(graph, config, run, cluster=TWO, resume=True)
    assert again.epochs == 3


def test_a_lost_server_has_all_begin_again_from_the_last_checkpoint(
    graph: Path, tmp_path: Path
) -> None:
    NearCrew.fail_in += [0, 1]
    config = EmbeddingConfig(**SETTINGS)
    report = train_embedding(graph, config, tmp_path / "run", cluster=TWO)
    assert (report.epochs, report.restarts, report.metrics["restarts"]) == (3, 2, 2)
    assert read_state(tmp_path / "run").num_edges == 3 * NUM_EDGES
    NearCrew.fail_in += [1] * 4
    with pytest.raises(ClusterError, match=r"were lost 4 times.*the lock server is gone"):
        train_embedding(graph, config, tmp_path / "other", cluster=TWO)
    assert read_state(tmp_path / "other").epoch == 1


@pytest.mark.parametrize("where", ["worker", "checkpoint"])
def test_a_full_disk_leaves_a_checkpoint_to_go_on_from(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    run, config = tmp_path / "run", EmbeddingConfig(**SETTINGS)
    owner, name = {"worker": (TableFiles, "store"), "checkpoint": (os, "fsync")}[where]
    write, left = getattr(owner, name), {"worker": 25, "checkpoint": 60}[where]

    def full(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            with disk_errors(run):
                raise OSError(errno.ENOSPC, "full")
        return write(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, full)
        with pytest.raises(StorageFullError, match=r"left.*is whole") as refused:
            train_embedding(graph, config, run, cluster=TWO)
    assert (read_state(run).epoch, read_state(run).unit) > (0, 0)
    check_files(run, read_state(run))
    goes_on = advised(
        str(refused.value),
        "graphsys/training/checkpoint.py",
        r"is whole: go on with (--resume)$",
    )
    words = ["train", "embedding", graph, "-o", run, "--cluster", "local:2", goes_on[1]]
    assert main([str(it) for it in words]) == 0
    assert read_state(run).epoch == 3
    assert read_state(run).num_edges == 3 * NUM_EDGES
    assert verify_run(run).ok


def test_a_loss_that_is_no_number_ends_the_training(graph: Path, tmp_path: Path) -> None:
    config = EmbeddingConfig(**SETTINGS | {"lr": 1e30})
    with pytest.raises(TrainingFailedError, match=r"lower lr or\s+raise regularizer"):
        train_embedding(graph, config, tmp_path / "run", cluster=TWO)
    assert read_state(tmp_path / "run").epoch == 0
