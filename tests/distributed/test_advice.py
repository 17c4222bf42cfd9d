"""What workers and object stores advise leads to the end of the work."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import graphsys as gs
from graphsys.cli.main import main
from graphsys.core.errors import WorkerLostError
from graphsys.distributed import Cluster, group
from graphsys.distributed.embedding import epochs, training, worker, worker_pool
from graphsys.distributed.embedding.gloo import GlooGroup
from graphsys.distributed.embedding.parameter_server import ParameterServer
from graphsys.distributed.embedding.worker import EmbeddingWorker
from graphsys.distributed.gnn import training as gnn_training
from graphsys.embedding.run import read_state
from graphsys.gnn.process_group import ProcessGroup
from graphsys.gnn.training.trainer import GnnTrainer
from tests.advice.case import advised
from tests.buckets import Bucket
from tests.clusters import NearCrew, near_crew
from tests.distributed.test_train_embedding import ring

TWO, FAR = ("--cluster", "local:2"), ("--cluster", "a.b:6379")
FEW = ("--set", "dim=8", "--set", "threads=1", "--set", "checkpoint_seconds=0")
DENSE = ("--set", "operator=complex_diagonal", "--set")
LINKS = ("--set", "task=link_prediction", "--set", "fanouts=[3]", "--set", "layers=1")
REMOTE, FETCHED = (
    "graphsys/storage/remote/publishing.py",
    "graphsys/storage/remote/fetching.py",
)


@contextmanager
def two_processors(cluster: Cluster) -> Iterator[int]:
    """Stand for a cluster of two processors, wherever it is."""
    yield 2


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers be threads of the test."""
    monkeypatch.setattr(epochs, "started", near_crew)
    monkeypatch.setattr(training, "connected", two_processors)
    monkeypatch.setattr(NearCrew, "fail_in", [])


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return ring(tmp_path / "graph", 4)


Said = Any


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Said:
    """Return a function that does a command: its exit code, and what it said."""

    def do(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main([str(it) for it in words])
        out, said = capfd.readouterr()
        return code, out, said

    return do


def silent(*_: Any, **__: Any) -> Any:
    """Stand for a server whose answers do not come."""
    return worker_pool.caller(object())("exchange")


def no_answer(*_: Any, **__: Any) -> Any:
    raise TimeoutError


def other_unit(train: Any) -> Any:
    def trained(self: Any, epoch: int, *arguments: Any) -> Any:
        done = train(self, epoch, *arguments)
        return dataclasses.replace(done, unit=done.unit + 1) if epoch else done

    return trained


def left(add: Any) -> Any:
    calls = 0

    def added(self: GlooGroup, values: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            self.close()
        add(self, values)

    return added


def trained(call: Said, graph: Path, run: Path, *words: object) -> tuple[int, str, str]:
    more = ("--set", "epochs=3", *FEW, *TWO, *words)
    found: tuple[int, str, str] = call("train", "embedding", graph, "-o", run, *more)
    return found


def goes_on(call: Said, graph: Path, run: Path, advice: str) -> None:
    """Check that a training ends as advised."""
    code, out, said = call("train", "embedding", graph, "-o", run, advice, *TWO, "--json")
    assert code == 0, said
    assert json.loads(out)["epochs"] == read_state(run).epoch == 3


@pytest.mark.usefixtures("near")
def test_a_unit_that_nobody_gave_away(graph: Path, tmp_path: Path, call: Said) -> None:
    run = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddingWorker, "_train", other_unit(EmbeddingWorker._train))
        code, _, said = trained(call, graph, run)
    assert code == 1
    line = advised(
        said,
        "graphsys/distributed/embedding/bucket_locks.py",
        r"gave back unit \d+, expected \d+; train again with (--resume)",
    )
    goes_on(call, graph, run, line[1])


@pytest.mark.usefixtures("near")
def test_a_server_that_does_not_answer(graph: Path, tmp_path: Path, call: Said) -> None:
    run = tmp_path / "run"
    words = (*DENSE, "parameter_exchange=server")
    assert trained(call, graph, run, *words, "--set", "epochs=1")[0] == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group, "MAX_RESTARTS", 0)
        patch.setattr(ParameterServer, "exchange", silent)
        patch.setattr("graphsys.distributed.embedding.worker_pool.ray.result", no_answer)
        patch.setattr(
            "graphsys.distributed.embedding.worker_pool.ray.call", lambda *_, **__: None
        )
        code, _, said = trained(call, graph, run, "--resume")
    assert code == 1
    line = advised(
        said,
        "graphsys/distributed/embedding/worker_pool.py",
        r"did not answer for \d+ s; look at its machine, then go on with (--resume)",
    )
    again = advised(
        said,
        "graphsys/distributed/embedding/training.py",
        r"the system logs of the machines, then go on with (--resume)",
    )
    assert line[1] == again[1]
    goes_on(call, graph, run, line[1])


@pytest.mark.usefixtures("near")
def test_a_worker_that_left_an_all_reduce(graph: Path, tmp_path: Path, call: Said) -> None:
    run, words = tmp_path / "run", (*DENSE, "parameter_exchange=all_reduce")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GlooGroup, "add", left(GlooGroup.add))
        code, _, said = trained(call, graph, run, *words)
    assert code == 1
    line = advised(
        said,
        "graphsys/distributed/embedding/gloo.py",
        r"(?:train again|go on) with (--resume)",
    )
    goes_on(call, graph, run, line[1])


@pytest.mark.usefixtures("near")
def test_a_worker_that_waits_too_long(graph: Path, tmp_path: Path, call: Said) -> None:
    run = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "WAIT_S", -1.0)
        code, _, said = trained(call, graph, run)
    assert code == 1
    line = advised(
        said,
        "graphsys/distributed/embedding/worker.py",
        r"for the others; look at their machines, then go on with (--resume)",
    )
    goes_on(call, graph, run, line[1])


def test_workers_of_networks_that_are_lost(
    graph: Path, tmp_path: Path, call: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    words = ("train", "gnn", graph, "-o", run)
    assert call(*words, *LINKS, *FEW, "--set", "epochs=1")[0] == 0

    def lost(*_: Any) -> Any:
        raise WorkerLostError("a worker is gone")

    monkeypatch.setattr(gnn_training, "connected", two_processors)
    monkeypatch.setattr(gnn_training, "_train_once", lost)
    code, _, said = call(*words, "--resume", "--set", "epochs=2", *TWO)
    assert code == 1
    line = advised(
        said,
        "graphsys/distributed/gnn/training.py",
        "the system logs of the machines, then go on with (--resume)",
    )
    code, out, said = call(*words, line[1], "--set", "epochs=2", "--json")
    assert (code, json.loads(out)["epochs"]) == (0, 2), said


def test_processes_that_lost_each_other(
    graph: Path, tmp_path: Path, call: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "gnn", graph, "-o", tmp_path / "run")
    end = GnnTrainer.end_epoch

    def ends(self: GnnTrainer) -> None:
        if self.state.epoch == 1:
            with ProcessGroup.exchanging(self.process_group):
                raise RuntimeError("Connection closed by peer")
        end(self)

    with monkeypatch.context() as patch:
        patch.setattr(GnnTrainer, "end_epoch", ends)
        code, _, said = call(*words, *LINKS, *FEW, "--set", "epochs=3")
    assert code == 1
    line = advised(
        said,
        "graphsys/gnn/process_group.py",
        "look at what it said, then go on with (--resume)",
    )
    code, out, said = call(*words, line[1], "--json")
    assert (code, json.loads(out)["epochs"]) == (0, 3), said


def test_a_location_without_a_graph_or_a_run(
    bucket: Bucket, graph: Path, tmp_path: Path, call: Said
) -> None:
    (tmp_path / "a.txt").write_text("1 2\n2 3\n3 1\n")
    place, run = bucket.place("graph"), bucket.place("run")
    code, _, said = call("info", place)
    line = advised(said, FETCHED, r"what `(graphsys ingest) \.\.\. -o (s3:\S+)` writes")
    words = line[1].split()[1:]
    assert call(*words, tmp_path / "a.txt", "-o", line[2])[0] == 0
    assert json.loads(call("info", place, "--json")[1])["num_edges"] == 3
    code, _, said = call(*words, tmp_path / "a.txt", "-o", line[2])
    assert code == 2
    again = advised(said, REMOTE, "choose another output or pass (--overwrite)")
    assert call(*words, tmp_path / "a.txt", "-o", line[2], again[1])[0] == 0
    code, _, said = call("evaluate", run)
    train = advised(said, FETCHED, r"what `(graphsys train) \.\.\. -o (s3:\S+)` writes")
    few = ("embedding", place, "-o", train[2], "--set", "epochs=1", "--set", "dim=4")
    assert call(*train[1].split()[1:], *few)[0] == 0
    assert call("evaluate", run, "--split", "train")[0] == 0


def test_an_object_that_was_damaged(bucket: Bucket, tmp_path: Path, call: Said) -> None:
    (tmp_path / "a.txt").write_text("1 2\n2 3\n3 1\n")
    place = bucket.place("graph")
    ingest = ("ingest", tmp_path / "a.txt", "-o", place)
    assert call(*ingest)[0] == 0
    name = next(it for it in bucket.names("graph") if it.endswith("out-0.arrow"))
    whole = bucket.read(f"graph/{name}")
    bucket.write(f"graph/{name}", whole[:-20] + b"x" * 20)
    code, _, said = call("run", "pagerank", place, "-o", tmp_path / "r.csv")
    assert code == 2
    line = advised(
        said,
        "graphsys/storage/objects/copies.py",
        r"run `(graphsys verify) (s3:\S+)`, then write it again",
    )
    code, out, _ = call(*line[1].split()[1:], line[2])
    assert code == 1
    assert "out-0.arrow" in out
    assert call(*ingest, "--overwrite")[0] == 0
    assert call("verify", place)[0] == 0


@pytest.mark.usefixtures("one_try")
def test_a_commit_that_nobody_knows_of(bucket: Bucket, tmp_path: Path, call: Said) -> None:
    (tmp_path / "a.txt").write_text("1 2\n2 3\n3 1\n")
    down: list[int] = []

    def lost(request: dict[str, Any]) -> tuple[int, str] | None:
        if request["REQUEST_METHOD"] == "PUT" and request["PATH_INFO"].endswith(".json"):
            down.append(1)
        return (503, "SlowDown") if down else None

    bucket.server.lost = lost
    code, _, said = call("ingest", tmp_path / "a.txt", "-o", bucket.place("graph"))
    assert code != 0
    bucket.server.reset()
    line = advised(said, REMOTE, r"its files stay: look with `(graphsys verify) (s3:\S+)`")
    assert call(*line[1].split()[1:], line[2])[0] == 0


@pytest.mark.usefixtures("near")
def test_a_run_on_an_object_store_keeps_checkpoints_of_a_cluster(
    bucket: Bucket, graph: Path, call: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "embedding", graph, "-o", bucket.place("run"), *FEW)
    count = 0

    def end(self: Any) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        ended(self)

    ended = read_state.__globals__["EmbeddingRunState"].end_epoch
    with monkeypatch.context() as patch:
        patch.setattr("graphsys.embedding.run.EmbeddingRunState.end_epoch", end)
        code, _, said = call(*words, "--set", "epochs=3")
        assert code == 130
        line = advised(
            said, "graphsys/cli/train.py", r"checkpoints by (--cluster) HOST:PORT alone"
        )
        count = 0
        code, _, said = call(*words, "--set", "epochs=3", line[1], FAR[1])
        assert code == 130
    assert "keeps 1 whole epoch" in said
    code, out, said = call(*words, "--resume", line[1], FAR[1], "--json")
    assert (code, json.loads(out)["epochs"]) == (0, 3), said


@pytest.mark.usefixtures("near")
def test_processes_of_torchrun_share_no_object_store(
    bucket: Bucket, graph: Path, call: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "embedding", graph, "-o", bucket.place("run"), *FEW)
    with monkeypatch.context() as patch:
        patch.setenv("WORLD_SIZE", "2")
        code, _, said = call(*words, "--set", "epochs=1")
    assert code == 2
    line = advised(
        said,
        "graphsys/storage/runs/remote_checkpoint.py",
        "all of them mount, or by (--cluster)$",
    )
    assert call(*words, "--set", "epochs=1", line[1], FAR[1])[0] == 0
    assert gs.embedding.open_run(bucket.place("run")).state.epoch == 1


def shared(call: Said, *words: object) -> dict[str, Any]:
    """Do a command on the cluster that is open; return what it prints as JSON."""
    code, out, said = call(*words, "--json")
    assert code == 0, said
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.usefixtures("two_workers")
def test_what_a_cluster_needs_is_given(
    graph: Path, tmp_path: Path, call: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = ("-o", "ranks.csv", "--overwrite")
    pagerank = ("run", "pagerank", graph, *out)
    _, _, said = call(*pagerank, "--cluster", "here")
    kind = advised(
        said, "graphsys/distributed/cluster.py", "(--cluster) takes (local):N, or HOST:PORT"
    )
    assert shared(call, *pagerank, kind[1], f"{kind[2]}:2")["workers"] == 2
    plan = call("plan", "--nodes", 100, "--edges", 200)[2]
    verb = advised(
        plan,
        "graphsys/planning/predict.py",
        r"programs of (graphsys run) share their work \((--cluster)\)",
    )
    assert shared(call, *verb[1].split()[1:], *pagerank[1:], verb[2], "local:2")
    _, _, said = call(*pagerank, "--cluster", "local:9")
    few = advised(
        said, "graphsys/distributed/ownership.py", "ingest it with more (--partitions), or"
    )
    pairs = "".join(f"{n} {(n + 1) % 60}\n" for n in range(60))
    Path("ring.txt").write_text(pairs)
    assert call("ingest", "ring.txt", "-o", "nine", few[1], 9)[0] == 0
    assert shared(call, "run", "wcc", "nine", *out, *TWO)["workers"] == 2


def test_trainings_that_a_cluster_can_share(
    tmp_path: Path, call: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = "".join(f"{n} {(n + 1) % 60}\n" for n in range(60))
    Path("ring.txt").write_text(pairs)
    assert call("ingest", "ring.txt", "-o", "one")[0] == 0
    words = ("-o", "rows", *FEW, "--set", "epochs=1", *TWO)
    _, _, said = call("train", "embedding", "one", *words)
    line = advised(
        said,
        "graphsys/distributed/embedding/training.py",
        r"\((graphsys partition) GRAPH (--partitioner random --partitions 8 -o) GRAPH2\)",
    )
    parted = (*line[1].split()[1:], "one", *line[2].split(), "eight")
    assert call(*parted)[0] == 0
    assert shared(call, "train", "embedding", "eight", *words, "--dry-run")
    few = (*LINKS, *FEW, "--set", "epochs=1", "--set", "sample_at=owners")
    sampled = ("train", "gnn", "eight", "-o", "net", *few)
    _, _, said = call(*sampled)
    add = advised(
        said, "graphsys/gnn/training/api.py", "add (--cluster), or leave sample_at out"
    )
    assert shared(call, *sampled, add[1], "local:2", "--dry-run")


@pytest.mark.usefixtures("two_workers")
def test_times_of_several_units_are_read_by_one_machine(
    tmp_path: Path, call: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, unit, time in (("a", "s", 3), ("b", "us", 3_000_000)):
        times = pa.array([time], pa.timestamp(unit))
        parquet.write_table(
            pa.table({"src": [1], "dst": [2], "time": times}), f"{name}.parquet"
        )
    words = ("ingest", "a.parquet", "b.parquet", "-o", "g")
    code, _, said = call(*words, *TWO)
    assert code == 2
    alone = advised(
        said,
        "graphsys/storage/write/edge_log.py",
        "in others; which (--cluster) does not take; leave it out",
    )
    assert alone[1] not in words
    assert shared(call, *words)["num_edges"] == 2


def test_times_with_and_without_a_unit_are_given_alike(
    tmp_path: Path, call: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("src,dst,time\n1,2,3\n")
    Path("b.csv").write_text("src,dst,time\n1,2,2020-01-01\n")
    for where in ((), TWO):
        said = call("ingest", "a.csv", "b.csv", "-o", "g", *where)[2]
        assert "give all as timestamps or all as integers" in said
    Path("a.csv").write_text("src,dst,time\n1,2,1970-01-01\n")
    assert shared(call, "ingest", "a.csv", "b.csv", "-o", "g")["num_edges"] == 2
