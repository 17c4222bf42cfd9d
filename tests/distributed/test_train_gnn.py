"""Networks trained on Ray's workers: what one machine learns, kills, what is refused."""

import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys import gnn
from graphsys.analysis.profile import profile
from graphsys.core.errors import ConfigError, OutputExistsError, TrainingFailedError
from graphsys.datasets import recipes
from graphsys.distributed import Cluster, ClusterTrainReport, opened_network, train_gnn
from graphsys.distributed.gnn.training import _identity
from graphsys.distributed.group import raise_reason
from graphsys.gnn import GnnConfig
from graphsys.gnn.run import read_state
from tests.conftest import Call, Run
from tests.processes import descendants, is_running, wait_for
from tests.unit.gnn.small_graphs import graph_config, rings_and_trees, store_of

pytestmark = [pytest.mark.e2e, pytest.mark.shared]

TWO = Cluster.parse("local:2")
SETTINGS: dict[str, Any] = {
    "dim": 16,
    "batch_size": 32,
    "fanouts": (5, 5),
    "epochs": 40,
    "eval_every": 20,
    "dropout": 0.5,
    "checkpoint_seconds": 0.0,
}
OWN = """
from torch import nn
from graphsys.gnn import spmm


class Net(nn.Module):
    def __init__(self, num_in, num_out):
        super().__init__()
        self.own = nn.Linear(num_in, num_out)
        self.others = nn.Linear(num_in, num_out, bias=False)

    def forward(self, rows, x_src, x_dst):
        return self.own(x_dst) + self.others(spmm(rows, x_src, reduce="mean"))
"""
PATIENCE_S = 300
STOPPED_S = 2.0


@pytest.fixture(scope="module")
def cora(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    folder = shared_data / "planetoid"
    if not folder.is_dir():
        pytest.skip(f"no Planetoid files at {folder}")
    path: Path = tmp_path_factory.mktemp("gnn") / "cora"
    recipes.build("cora", path, folder=folder, partitions=2)
    return path


@pytest.fixture(scope="module")
def alone(cora: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    """Return the accuracy of one machine."""
    out = tmp_path_factory.mktemp("alone") / "run"
    gnn.train(cora, GnnConfig(**SETTINGS), out)
    return accuracy(out)


def accuracy(run: Path) -> float:
    found: float = gnn.evaluate(run)["metrics"]["accuracy"]
    return found


def settings_of(folder: Path) -> list[str]:
    file = folder / "settings.toml"
    lines = [
        f"{key} = {list(value) if isinstance(value, tuple) else value}"
        for key, value in SETTINGS.items()
    ]
    file.write_text("\n".join(lines))
    return ["--config", str(file)]


def workers_below(process: int) -> list[int]:
    return [pid for pid, command in descendants(process) if "RemoteGnnWorker" in command]


def is_in_the_middle(run: Path) -> bool:
    return (run / "run.json").exists() and read_state(run).epoch > 0


def test_the_command_leaves_the_run_that_one_machine_does(
    cora: Path, tmp_path: Path, run_cli: Run, alone: float
) -> None:
    run, rows = tmp_path / "run", tmp_path / "rows.parquet"
    words = ["train", "gnn", cora, "-o", run, *settings_of(tmp_path)]
    done = run_cli(*words, "--cluster", "local:2", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    metrics = facts["metrics"]
    assert (facts["workers"], facts["epochs"]) == (2, 40)
    assert (metrics["restarts"], metrics["world_size"]) == (0, 2)
    assert [each["batches"] for each in metrics["per_worker"]] == [200, 200]
    own = [each["edges"] for each in metrics["per_worker"]]
    assert sum(own) == read_state(run).num_edges  # of all workers
    weights = sum(w.numel() for w in gnn.open_run(run).context.network.parameters())
    assert metrics["allreduce_bytes"] == 200 * 2 * 4 * weights  # a ring of two
    assert metrics["load_imbalance"] >= 1
    assert accuracy(run) == pytest.approx(alone, abs=0.05)
    assert gnn.predict(run).num_rows == 2708
    assert gnn.export(run, rows)
    assert run_cli("verify", run).returncode == 0


@pytest.mark.usefixtures("two_workers")
def test_workers_train_a_users_own_model_and_compute_its_rows(
    cora: Path, tmp_path: Path
) -> None:
    file, run = tmp_path / "my.py", tmp_path / "run"
    file.write_text(OWN)
    config = GnnConfig(**SETTINGS | {"model": f"{file}:Net", "epochs": 2, "eval_every": 1})
    assert train_gnn(cora, config, run, cluster=TWO).epochs == 2
    with opened_network(run, cluster=TWO) as opened:
        assert opened.workers == 2
        far = opened.output()
    assert np.allclose(far, gnn.open_run(run).output(), rtol=1e-5, atol=1e-6)
    moved = file.rename(tmp_path / "moved.py")
    with pytest.raises(ConfigError, match="there is no such file; restore it"):
        gnn.evaluate(run)
    with opened_network(run, cluster=TWO, model=f"{moved}:Net") as opened:
        assert np.allclose(far, opened.output(), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("model", ["gin", "sagpool"])
def test_workers_share_out_whole_graphs(tmp_path: Path, model: str) -> None:
    graph = store_of(tmp_path / "graphs", rings_and_trees())
    config = graph_config(model=model, epochs=3, eval_every=1, keep="best")
    report = train_gnn(graph, config, tmp_path / "two", cluster=TWO)
    assert (report.workers, report.metrics["world_size"]) == (2, 2)
    gnn.train(graph, config, tmp_path / "one")
    one, two = (gnn.open_run(tmp_path / name).state for name in ("one", "two"))
    assert two.losses == pytest.approx(one.losses, rel=1e-3)
    assert [row[2] for row in two.history] == [row[2] for row in one.history]


@pytest.mark.usefixtures("two_workers")
def test_workers_that_share_moments_or_all_leave_the_same_weights(
    cora: Path, tmp_path: Path
) -> None:
    config, told = GnnConfig(**SETTINGS | {"epochs": 2}), tmp_path / "told"
    moments, sizes = [], []

    class Listener(gnn.Callback):  # of this function, so that workers need no file of it
        def on_epoch_end(self, training: gnn.Training) -> None:
            with told.open("a") as lines:
                lines.write(f"{os.getpid()} {training.epoch}\n")

    for name in ("none", "optimizer", "parameters"):
        run = tmp_path / name
        shared = replace(config, sharding=name)
        report = train_gnn(cora, shared, run, cluster=TWO, callbacks=[Listener()])
        moments.append(max(it["optimizer_bytes"] for it in report.metrics["per_worker"]))
        sizes.append(max(it["parameter_bytes"] for it in report.metrics["per_worker"]))
    whole, own, cut = (
        gnn.open_run(tmp_path / name).context.network.state_dict()
        for name in ("none", "optimizer", "parameters")
    )
    assert all(torch.equal(whole[name], own[name]) for name in whole)
    # the sums of gradients are in another order
    assert all(torch.allclose(whole[name], cut[name], atol=1e-5) for name in whole)
    lines = [line.split() for line in told.read_text().splitlines()]
    assert [epoch for _, epoch in lines] == ["1", "2"] * 3  # by one worker
    assert str(os.getpid()) not in {pid for pid, _ in lines}
    assert moments[1:] == pytest.approx([moments[0] / 2] * 2, rel=0.1)
    alone = train_gnn(cora, config, tmp_path / "p", cluster=TWO, dry_run=True).metrics
    plan = train_gnn(cora, shared, tmp_path / "p", cluster=TWO, dry_run=True).metrics
    for part, size in (("optimizer", moments[0]), ("parameters", sizes[0])):
        splits = [each["planned_memory_split"][part] for each in (alone, plan)]
        assert splits == [size, -(-size // 2)]
    assert sizes[1:] == pytest.approx([sizes[0], sizes[0] / 2], rel=0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
def test_a_killed_worker_is_replaced_and_the_run_goes_on(
    cora: Path, tmp_path: Path, alone: float
) -> None:
    """With gradients of 8 bits, whose errors a restart forgets, and rows of owners."""
    run, done = tmp_path / "run", []
    config = GnnConfig(**SETTINGS, gradient_compression="int8", sample_at="owners")

    def train() -> None:
        done.append(train_gnn(cora, config, run, cluster=TWO))

    thread = threading.Thread(target=train)
    thread.start()
    wait_for(lambda: is_in_the_middle(run) or not thread.is_alive(), PATIENCE_S)
    os.kill(workers_below(os.getpid())[1], signal.SIGKILL)
    thread.join(PATIENCE_S)
    (report,) = done
    assert isinstance(report, ClusterTrainReport)
    assert (report.epochs, report.restarts, report.workers) == (40, 1, 2)
    state = read_state(run)
    assert state.is_complete
    assert len(state.losses) == 40
    after = report.metrics["per_worker"][0]["batches"]
    assert after < 200  # it did not begin again
    weights = sum(w.numel() for w in gnn.open_run(run).context.network.parameters())
    assert report.metrics["feature_bytes"] > 0
    assert report.metrics["allreduce_bytes"] < after * 2 * 4 * weights / 3
    assert accuracy(run) == pytest.approx(alone, abs=0.05)


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
def test_a_stopped_worker_is_waited_for_and_a_profile_tells_of_both(
    cora: Path, tmp_path: Path
) -> None:
    run, done = tmp_path / "run", list[ClusterTrainReport]()
    config = GnnConfig(**{**SETTINGS, "epochs": 30})

    def train() -> None:
        done.append(train_gnn(cora, config, run, cluster=TWO))

    with profile(tmp_path / "page.html", level="L0"):
        thread = threading.Thread(target=train)
        thread.start()
        wait_for(lambda: is_in_the_middle(run) or not thread.is_alive(), PATIENCE_S)
        stopped = workers_below(os.getpid())[1]
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(stopped, signal.SIGCONT)
        thread.join(PATIENCE_S)
    (report,) = done
    assert (report.epochs, report.restarts) == (30, 0)
    found = json.loads((tmp_path / "page.json").read_text())["cluster"]
    assert found["kind"] == "gnn"
    told, rows = report.metrics["per_worker"], found["workers"]
    assert [row["units"] for row in rows] == [150, 150]
    assert [each["batches"] for each in told] == [150, 150]
    assert [row["sent_bytes"] for row in rows] == [row["allreduce_bytes"] for row in told]
    for name in ("sample_seconds", "gather_seconds", "work_seconds"):
        assert all(row[name] > 0 for row in rows)
    assert all(0 <= row["overlap_utilization"] <= 1 for row in rows)
    assert all(row["waiting_seconds"] > 0 for row in rows)


@pytest.mark.slow
def test_a_killed_driver_leaves_no_process_and_resumes(
    cora: Path, tmp_path: Path, graphsys_command: str, run_cli: Run, alone: float
) -> None:
    run = tmp_path / "run"
    words = ["train", "gnn", str(cora), "-o", str(run), "--cluster", "local:2"]
    driver = subprocess.Popen(
        [graphsys_command, *words, *settings_of(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: is_in_the_middle(run) or driver.poll() is not None, PATIENCE_S)
    below = workers_below(driver.pid)
    driver.kill()
    driver.wait()
    assert len(below) == 2
    wait_for(lambda: not any(is_running(pid) for pid in below), PATIENCE_S)
    assert not read_state(run).is_complete
    words[-1] = "local:1"  # any number of workers goes on
    done = run_cli(*words, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] == 40
    assert accuracy(run) == pytest.approx(alone, abs=0.05)


@pytest.mark.usefixtures("two_workers")
def test_what_workers_refuse_is_one_line(cora: Path, tmp_path: Path, call: Call) -> None:
    run = tmp_path / "run"
    code, _, said = call(
        "train", "gnn", cora, "-o", run, "--cluster", "local:1", "--set", "label=colour"
    )
    assert code == 2
    assert said.splitlines()[-1].startswith("error: ")
    assert "colour" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert not run.exists()


@pytest.mark.parametrize(
    ("settings", "how", "message"),
    [
        ({"batch_size": 0}, {}, "^batch_size 0 passes over the whole graph in every step"),
        ({}, {"memory": "4GB"}, "memory does not go with --cluster; leave out one"),
        ({}, {"device": "cuda"}, "device: got cuda with --cluster, whose workers train on"),
        ({"learned_rows": "disk"}, {}, "learned_rows: got disk with --cluster"),
    ],
)
def test_what_does_not_go_with_a_cluster_is_refused(
    cora: Path, tmp_path: Path, settings: Any, how: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        train_gnn(cora, GnnConfig(**settings), tmp_path / "run", cluster=TWO, **how)
    assert not (tmp_path / "run").exists()


def test_a_refusal_is_one_line(cora: Path, tmp_path: Path, run_cli: Run) -> None:
    run = tmp_path / "run"
    words = ["--cluster", "local:2", "--preset", "cora-gcn"]
    done = run_cli("train", "gnn", cora, "-o", run, *words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: batch_size 0 passes over")


def test_a_dry_run_starts_nothing(cora: Path, tmp_path: Path) -> None:
    config = GnnConfig(**SETTINGS)
    plan = train_gnn(cora, config, tmp_path / "run", cluster=TWO, dry_run=True)
    assert plan.workers == 2
    assert plan.metrics["planned_batches"] == 5
    assert not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(OutputExistsError):
        train_gnn(cora, config, tmp_path / "run", cluster=TWO)


def test_the_reason_of_an_end_is_told_before_what_it_made_others_say(
    tmp_path: Path,
) -> None:
    from graphsys.core.errors import ClusterError, WorkerLostError

    lost, reason = ClusterError("lost the others"), TrainingFailedError("the loss is nan")
    with pytest.raises(WorkerLostError, match="lost the others"):
        raise_reason([lost], ClusterError)
    with pytest.raises(TrainingFailedError):
        raise_reason([lost, KeyError("x"), reason], ClusterError)
    assert _identity(tmp_path) is None
    with pytest.raises(ConfigError, match="takes local:N"):
        Cluster.parse("nowhere")
