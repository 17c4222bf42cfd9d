"""Embeddings trained on Ray's workers: what one machine learns, kills, what is refused."""

import json
import os
import resource
import signal
import subprocess
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys import embedding
from graphsys.analysis.profile import profile
from graphsys.core.errors import ConfigError, StorageFullError
from graphsys.distributed import Cluster, ClusterTrainReport, train_embedding
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.run import check_files, read_state
from graphsys.embedding.training_log import read_log
from graphsys.storage.verify.run import verify_run
from tests.conftest import Run
from tests.processes import descendants, is_running, wait_for
from tests.stores import edge_chunk, make_store

pytestmark = pytest.mark.e2e

TWO = Cluster.parse("local:2")
SETTINGS: dict[str, Any] = {
    "dim": 32,
    "operator": "complex_diagonal",
    "reciprocal": True,
    "loss": "softmax",
    "batch_size": 50,
    "num_batch_negatives": 25,
    "num_uniform_negatives": 100,
    "lr": 0.3,
    "epochs": 40,
    "checkpoint_seconds": 1.0,
}
LONG = {**SETTINGS, "epochs": 60, "checkpoint_seconds": 0.0}
NUM_EDGES = 1728
PATIENCE_S = 300
STOPPED_S = 2.0
JUMPS = (1, 2, 3, 5, 8, 13, 21, 34)


def ring(path: Path, partitions: int) -> Path:
    """Write a graph on a ring, with a relation for each length of a jump."""
    num_nodes = 240
    order = np.random.default_rng(3).permutation(num_nodes * len(JUMPS))
    src = order % num_nodes
    relation = np.array([f"r{jump}" for jump in JUMPS])[order // num_nodes]
    dst = (src + np.array(JUMPS)[order // num_nodes]) % num_nodes
    chunks = [
        edge_chunk(
            zip(src[part].tolist(), dst[part].tolist(), strict=True),
            split=split,
            relation=relation[part].tolist(),
        )
        for split, part in (("train", slice(NUM_EDGES)), ("test", slice(NUM_EDGES, None)))
    ]
    make_store(path, *chunks, partitions=partitions)
    return path


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ring(tmp_path_factory.mktemp("ring") / "graph", 4)


@pytest.fixture(scope="module")
def alone(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    """Return the MRR of one machine."""
    out = tmp_path_factory.mktemp("alone") / "run"
    embedding.train(graph, EmbeddingConfig(**SETTINGS), out)
    return mrr(out)


def mrr(run: Path) -> float:
    found: float = embedding.evaluate(run)["metrics"]["mrr"]
    return found


def settings_of(folder: Path, settings: dict[str, Any]) -> list[str]:
    file = folder / "settings.toml"
    file.write_text("\n".join(f"{k} = {json.dumps(v)}" for k, v in settings.items()))
    return ["--config", str(file)]


def workers_below(process: int) -> list[int]:
    return [pid for pid, command in descendants(process) if "RemoteEmbedding" in command]


def is_past(run: Path, epoch: int) -> bool:
    return (run / "run.json").exists() and read_state(run).epoch > epoch


def test_the_command_leaves_the_run_that_one_machine_does(
    graph: Path, tmp_path: Path, run_cli: Run, alone: float
) -> None:
    run = tmp_path / "run"
    settings = settings_of(tmp_path, {**SETTINGS, "join_partitions": True})
    words = ["train", "embedding", graph, "-o", run, *settings]
    done = run_cli(*words, "--cluster", "local:2", "--json")
    assert done.returncode == 0, done.stderr
    assert "join_partitions is turned off" in done.stderr
    facts = json.loads(done.stdout)
    metrics = facts["metrics"]
    assert (facts["workers"], facts["epochs"]) == (2, 40)
    assert (metrics["restarts"], metrics["world_size"]) == (0, 2)
    assert sum(each["buckets"] for each in metrics["per_worker"]) == 40 * 10
    assert sum(each["edges"] for each in metrics["per_worker"]) == 40 * NUM_EDGES
    assert metrics["staleness_max"] <= metrics["staleness_bound"] == 6
    assert metrics["bytes_written"] == 40 * 4 * 240 * 33 * 4  # a row is of 4 units
    assert 0 < metrics["bytes_read"] < metrics["bytes_written"]  # some stayed in memory
    assert metrics["parameter_bytes"] > 0
    assert metrics["load_imbalance"] >= 1
    assert mrr(run) == pytest.approx(alone, abs=0.1)
    assert [each["event"] for each in read_log(run)].count("unit") == 400
    assert len(list((run / "rows").rglob("*.npy"))) == 4  # nothing is left over
    assert run_cli("verify", run).returncode == 0
    for verb in (["nearest", run, "7"], ["export", run, "-o", tmp_path / "rows.parquet"]):
        assert run_cli(*verb).returncode == 0


@pytest.mark.usefixtures("two_workers")
def test_questions_over_all_nodes_are_asked_on_workers_as_on_one_machine(
    graph: Path, tmp_path: Path
) -> None:
    every: dict[str, Any] = {
        "mode": "kvsall",
        "num_batch_negatives": 0,
        "num_uniform_negatives": 0,
        "weigh_by_answers": True,
    }
    config = EmbeddingConfig(**{**SETTINGS, **every, "epochs": 20})
    embedding.train(graph, config, tmp_path / "alone")
    report = train_embedding(graph, config, tmp_path / "run", cluster=TWO)
    assert (report.epochs, report.workers) == (20, 2)
    here = mrr(tmp_path / "alone")
    assert here > 0.5
    assert mrr(tmp_path / "run") == pytest.approx(here, abs=0.1)


@pytest.mark.usefixtures("two_workers")
def test_adams_states_go_with_the_rows_of_workers(graph: Path, tmp_path: Path) -> None:
    """Trained by two workers, and on by one machine."""
    adam: dict[str, Any] = {"optimizer": "adam", "lr": 0.01, "relation_lr": 0.3}
    config = EmbeddingConfig(**{**SETTINGS, **adam, "epochs": 20})
    run = tmp_path / "run"
    report = train_embedding(graph, config, run, cluster=TWO)
    assert (report.epochs, report.workers) == (20, 2)
    longer = replace(config, epochs=40)
    assert embedding.train(graph, longer, run, resume=True).epochs == 40
    opened = embedding.open_run(run)
    for part in range(4):
        states = opened.states("node", part)
        assert states.shape[1] == 1 + 2 * 32
        assert states[:, 0].min() > 40  # steps, of both
        assert (states[:, 33:] >= 0).all()
    embedding.train(graph, longer, tmp_path / "alone")
    assert mrr(run) > 0.9 * mrr(tmp_path / "alone") > 0.4


NO_DRAWS: dict[str, Any] = {"num_batch_negatives": 0, "num_uniform_negatives": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "adagrad"},
        {"mode": "1vsall", **NO_DRAWS},
    ],
)
@pytest.mark.usefixtures("two_workers")
def test_other_modes_and_optimizers_learn_what_one_machine_does(
    graph: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    config = EmbeddingConfig(**{**SETTINGS, **changes})
    report = train_embedding(graph, config, tmp_path / "two", cluster=TWO)
    assert (report.workers, report.restarts) == (2, 0)
    assert [each["buckets"] > 0 for each in report.metrics["per_worker"]] == [True, True]
    embedding.train(graph, config, tmp_path / "one")
    assert mrr(tmp_path / "two") > 0.9 * mrr(tmp_path / "one") > 0.5


@pytest.mark.slow
def test_one_worker_does_what_one_machine_does(tmp_path: Path) -> None:
    """With two partitions, whose buckets both train in the same order."""
    store = ring(tmp_path / "graph", 2)
    config = EmbeddingConfig(**{**SETTINGS, "epochs": 1, "deterministic": True})
    with pytest.warns(UserWarning, match="1 of 2 workers train"):
        train_embedding(store, config, tmp_path / "there", cluster=TWO)
    embedding.train(store, config, tmp_path / "here")
    runs = [embedding.open_run(tmp_path / name) for name in ("there", "here")]
    for part in range(2):
        there, here = (run.rows("node", part) for run in runs)
        np.testing.assert_allclose(there, here, atol=1e-4)  # operators travel as sums


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
def test_of_workers_that_all_reduce_a_killed_one_begins_all_again(
    graph: Path, tmp_path: Path, alone: float
) -> None:
    run, done, own = tmp_path / "run", list[ClusterTrainReport](), os.getpid()
    config = EmbeddingConfig(**{**LONG, "parameter_exchange": "all_reduce"})
    work = partial(train_embedding, graph, config, run, cluster=TWO)
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    wait_for(lambda: is_past(run, 2) or not thread.is_alive(), PATIENCE_S)
    before = set(workers_below(own))
    os.kill(min(before), signal.SIGKILL)
    wait_for(
        lambda: len(set(workers_below(own)) - before) == 2 or not thread.is_alive(),
        PATIENCE_S,
    )
    thread.join(PATIENCE_S)
    assert (done[0].restarts, done[0].epochs) == (1, 60)
    assert done[0].metrics["parameter_bytes"] == 0 < done[0].metrics["allreduce_bytes"]
    assert mrr(run) == pytest.approx(alone, abs=0.1)
    assert verify_run(run).ok


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
def test_a_killed_worker_is_replaced_and_a_killed_server_begins_all_again(
    graph: Path, tmp_path: Path, alone: float
) -> None:
    run, done, own = tmp_path / "run", list[ClusterTrainReport](), os.getpid()

    def train() -> None:
        done.append(train_embedding(graph, EmbeddingConfig(**LONG), run, cluster=TWO))

    thread = threading.Thread(target=train)
    thread.start()
    wait_for(lambda: is_past(run, 2) or not thread.is_alive(), PATIENCE_S)
    os.kill(workers_below(own)[1], signal.SIGKILL)
    killed_s = time.monotonic()
    wait_for(lambda: len(workers_below(own)) == 2 or not thread.is_alive())
    assert time.monotonic() - killed_s < 10  # noticed, and another one is there
    epoch = read_state(run).epoch
    wait_for(lambda: is_past(run, epoch + 1) or not thread.is_alive(), PATIENCE_S)
    servers = [p for p, command in descendants(own) if "BucketLocks" in command]
    os.kill(servers[0], signal.SIGKILL)
    thread.join(PATIENCE_S)
    (report,) = done
    assert (report.epochs, report.restarts, report.workers) == (60, 2, 2)
    state = read_state(run)
    assert state.is_complete
    assert state.num_edges == 60 * NUM_EDGES  # nothing twice, nothing left out
    assert len(state.losses) == 60
    assert verify_run(run).ok
    assert mrr(run) > alone - 0.1


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
def test_a_stopped_worker_is_waited_for_and_a_profile_tells_of_both(
    graph: Path, tmp_path: Path
) -> None:
    run, done, own = tmp_path / "run", list[ClusterTrainReport](), os.getpid()
    config = EmbeddingConfig(**{**LONG, "epochs": 12})

    def train() -> None:
        done.append(train_embedding(graph, config, run, cluster=TWO))

    with profile(tmp_path / "page.html", level="L0"):
        thread = threading.Thread(target=train)
        thread.start()
        wait_for(lambda: is_past(run, 1) or not thread.is_alive(), PATIENCE_S)
        stopped = workers_below(own)[1]
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(stopped, signal.SIGCONT)
        thread.join(PATIENCE_S)
    (report,) = done
    assert (report.epochs, report.restarts) == (12, 0)
    assert read_state(run).num_edges == 12 * NUM_EDGES
    found = json.loads((tmp_path / "page.json").read_text())["cluster"]
    assert (found["kind"], found["restarts"]) == ("embedding", 0)
    told = report.metrics["per_worker"]
    rows = found["workers"]
    assert [row["units"] for row in rows] == [each["buckets"] for each in told]
    assert [row["edges"] for row in rows] == [each["edges"] for each in told]
    assert [row["sent_bytes"] for row in rows] == [row["parameter_bytes"] for row in told]
    for name in ("written_bytes", "write_seconds", "communication_seconds"):
        assert all(row[name] > 0 for row in rows)
    assert all(0 <= row["overlap_alpha"] <= 1 for row in rows)
    assert all(row["waiting_seconds"] > 0 for row in rows)


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
def test_a_worker_whose_disk_is_full_ends_the_training_which_resumes(
    graph: Path, tmp_path: Path
) -> None:
    run, caught, own = tmp_path / "run", list[BaseException](), os.getpid()
    config = EmbeddingConfig(**{**LONG, "epochs": 30})

    def train() -> None:
        try:
            train_embedding(graph, config, run, cluster=TWO)
        except StorageFullError as err:
            caught.append(err)

    thread = threading.Thread(target=train)
    thread.start()
    wait_for(lambda: is_past(run, 0) or not thread.is_alive(), PATIENCE_S)
    resource.prlimit(workers_below(own)[1], resource.RLIMIT_FSIZE, (200, 200))
    thread.join(PATIENCE_S)
    (err,) = caught
    assert "file too large; allow larger files" in str(err)
    assert str(err).endswith(f"the last checkpoint of {run} is whole: go on with --resume")
    state = read_state(run)
    assert not state.is_complete
    check_files(run, state)
    report = embedding.train(graph, None, run, resume=True)  # or a cluster
    assert report.epochs == 30
    assert read_state(run).num_edges == 30 * NUM_EDGES
    assert verify_run(run).ok


@pytest.mark.slow
def test_a_killed_driver_leaves_no_process_and_resumes(
    graph: Path, tmp_path: Path, graphsys_command: str, run_cli: Run, alone: float
) -> None:
    run = tmp_path / "run"
    words = ["train", "embedding", str(graph), "-o", str(run), "--cluster", "local:2"]
    driver = subprocess.Popen(
        [graphsys_command, *words, *settings_of(tmp_path, LONG)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: is_past(run, 2) or driver.poll() is not None, PATIENCE_S)
    below = workers_below(driver.pid)
    driver.kill()
    driver.wait()
    assert len(below) == 2
    wait_for(lambda: not any(is_running(pid) for pid in below), PATIENCE_S)
    before = read_state(run)
    assert not before.is_complete
    words[-1] = "local:1"  # any number of workers goes on, or one machine
    done = run_cli(*words, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] == 60
    assert read_state(run).losses[: before.epoch] == before.losses
    assert verify_run(run).ok
    assert mrr(run) > alone - 0.1


@pytest.mark.parametrize(
    ("partitions", "settings", "how", "message"),
    [
        (
            4,
            {},
            {"memory": "4GB"},
            "^memory does not go with --cluster, whose workers",
        ),
        (4, {}, {"device": "cuda"}, "^device: got cuda with --cluster, whose workers"),
        (1, {}, {}, "has one partition, which one worker at a time can train; write it"),
        (4, {"deterministic": True}, {}, "^deterministic does not go with 2 workers"),
    ],
)
def test_what_does_not_go_with_a_cluster_is_refused(
    graph: Path, tmp_path: Path, partitions: int, settings: Any, how: Any, message: str
) -> None:
    store = graph if partitions == 4 else ring(tmp_path / "graph", partitions)
    config = EmbeddingConfig(**{**SETTINGS, **settings})
    with pytest.raises(ConfigError, match=message):
        train_embedding(store, config, tmp_path / "run", cluster=TWO, **how)
    assert not (tmp_path / "run").exists()


def test_a_refusal_is_one_line(graph: Path, tmp_path: Path, run_cli: Run) -> None:
    run = tmp_path / "run"
    words = ["--cluster", "local:2", "--memory", "4GB"]
    done = run_cli("train", "embedding", graph, "-o", run, *words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: memory does not go with")
    assert "Traceback" not in done.stderr
    assert not run.exists()


def test_a_dry_run_starts_nothing(graph: Path, tmp_path: Path) -> None:
    config = EmbeddingConfig(**SETTINGS)
    plan = train_embedding(graph, config, tmp_path / "run", cluster=TWO, dry_run=True)
    assert (plan.workers, plan.epochs) == (2, 0)
    assert plan.metrics["planned_num_units"] == 10
    assert not (tmp_path / "run").exists()
