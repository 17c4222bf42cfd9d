"""Runs of machines that share no folder: their files travel by an object store."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphsys import distributed, embedding, gnn
from graphsys.cli.main import main
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    ObjectStoreError,
    StoreBusyError,
)
from graphsys.core.progress import Progress
from graphsys.core.remote.locations import Location
from graphsys.distributed import Cluster
from graphsys.distributed.embedding import epochs, training
from graphsys.distributed.embedding.training import train_embedding
from graphsys.distributed.inference import network_run, run_questions
from graphsys.distributed.run_files import RunFiles, is_begun
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.run import EmbeddingRunState, commit, read_state
from graphsys.storage.remote.publishing import generation_folder, own_number, published
from graphsys.storage.runs.run_folder import RUN_NAME
from graphsys.storage.verify.run import verify_run
from tests.buckets import Bucket
from tests.clusters import NearCrew, near_crew, near_shards
from tests.conftest import Run
from tests.distributed.test_embedding_epochs import SETTINGS, two_processors, visits
from tests.distributed.test_train_embedding import ring
from tests.object_server import every
from tests.processes import environ_of, running_cluster, wait_for

TWO = Cluster.parse("local:2")


@pytest.fixture
def _near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "started", near_crew)
    monkeypatch.setattr(training, "connected", two_processors)
    monkeypatch.setattr(NearCrew, "fail_in", [])


LONG = {
    "embedding": ("dim=8", "epochs=60", "checkpoint_seconds=0.5"),
    "gnn": ("task=link_prediction", "epochs=12", "checkpoint_seconds=0"),
}
"""Settings of trainings that take long enough to be killed."""


def epochs_there(bucket: Bucket, folder: str) -> int:
    """Return the epochs of the checkpoint that a training has put, 0 before the first."""
    heads = [it for it in bucket.names(folder) if it.endswith(f"/{RUN_NAME}")]
    if not heads:
        return 0
    return int(json.loads(bucket.read(f"{folder}/{heads[0]}"))["epoch"])


def put(files: RunFiles, **contents: bytes) -> EmbeddingRunState:
    """Write files into a run and publish it; return its state."""
    for name, content in contents.items():
        (files.path / name).write_bytes(content)
    sizes = {name: len(content) for name, content in contents.items()}
    state = EmbeddingRunState(graph={"path": "g"}, files=sizes)
    commit(files.path, state)
    files.publish(state)
    return state


def test_a_checkpoint_stays_until_the_one_after_the_next(
    bucket: Bucket, tmp_path: Path
) -> None:
    place = bucket.place("run/gen-1")
    assert not is_begun(place)
    driver = RunFiles.of_driver(tmp_path, place)
    (tmp_path / "config.toml").write_text("")
    put(driver, a=b"a", b=b"b")
    assert is_begun(place)
    worker = RunFiles.of_worker("", place, left_out=("b",))
    assert {it.name for it in worker.path.iterdir()} == {"run.json", "config.toml", "a"}
    put(driver, a=b"a", c=b"c")
    assert bucket.names("run/gen-1") == ["a", "b", "c", "config.toml", "run.json"]
    puts = bucket.server.count("PUT", "/a")
    put(driver, c=b"c", d=b"d")
    assert bucket.names("run/gen-1") == ["a", "c", "config.toml", "d", "run.json"]
    assert bucket.server.count("PUT", "/a") == puts == 1
    late = RunFiles.of_worker("", place)
    assert late.path != worker.path
    assert (late.path / "d").read_bytes() == b"d"


def test_a_head_that_is_replaced_while_it_is_read_is_whole(bucket: Bucket) -> None:
    place, gets = bucket.place("run/gen-1"), list[str]()
    said = {"format_version": 1, "graph": {"path": "g"}, "files": {}, "checksums": {}}
    old, new = (json.dumps({**said, "epoch": epoch}) for epoch in (1, 10**9))
    bucket.write("run/gen-1/config.toml", b"")
    bucket.write(f"run/gen-1/{RUN_NAME}", old.encode())

    def replaced(request: dict[str, Any]) -> None:
        if request["REQUEST_METHOD"] == "GET" and RUN_NAME in request["PATH_INFO"]:
            gets.append(request["PATH_INFO"])
            if len(gets) == 2:  # the first looks whether there is one
                bucket.write(f"run/gen-1/{RUN_NAME}", new.encode())

    bucket.server.lost = replaced
    worker = RunFiles.of_worker("", place)
    assert (worker.path / RUN_NAME).read_text() == new
    assert len(gets) == 2


def test_what_a_worker_brings_is_compared_and_let_go(
    bucket: Bucket, tmp_path: Path
) -> None:
    place = bucket.place("run/gen-1")
    first, second = (RunFiles.of_worker("", place) for _ in range(2))
    first.path.mkdir()
    (first.path / "x").write_bytes(b"rows")
    listed = {"x": (4, "xxh3:0")}
    first.send(listed)
    first.let_go(listed)
    assert not (first.path / "x").exists()
    second.bring({"x": (4, "")})
    assert (second.path / "x").read_bytes() == b"rows"
    with pytest.raises(CorruptStoreError, match=r"gen-1/x does not match its checksum"):
        first.bring(listed)
    first.drop(["x"])
    with pytest.raises(CorruptStoreError, match=r"gen-1/x is missing"):
        first.bring(listed)
    assert RunFiles.of_driver(tmp_path, "").path == tmp_path  # nothing travels


@pytest.mark.usefixtures("_near")
@pytest.mark.parametrize("prefetch", [False, True])
def test_embeddings_are_trained_by_workers_with_folders_of_their_own(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefetch: bool
) -> None:
    store, place = visits(tmp_path / "graph"), bucket.place("vectors")
    config = EmbeddingConfig(**SETTINGS, prefetch=prefetch)
    monkeypatch.setattr(NearCrew, "fail_in", [1])  # a server is lost
    number = own_number()
    through = generation_folder(place, number)
    with published(place, RUN_NAME, overwrite=False, number=number) as run:
        report = train_embedding(store, config, run, cluster=TWO, through=through)
        assert report.restarts == 1
        assert sum(each["buckets"] > 0 for each in report.metrics["per_worker"]) == 2
        assert verify_run(run).ok
        kept = {it.relative_to(run).as_posix() for it in run.rglob("*") if it.is_file()}
        served = {it.rpartition("/")[0] for it in bucket.names("vectors")}
        folders = {it.parent for it in kept_files(bucket)}
        assert len(folders) == 0  # workers let go what they read and wrote
        losses = read_state(run).losses
    assert losses[-1] < losses[0]
    assert {f"gen-{number}/{it.rpartition('/')[0]}".rstrip("/") for it in kept} >= served
    own = read_state(run_there := embedding.open_run(place).path).files
    assert run_there.name == "vectors"
    names = {it for it in bucket.names("vectors") if it != RUN_NAME}
    assert names >= {f"gen-{number}/{name}" for name in own}
    assert f"gen-{number}/{RUN_NAME}" not in names  # what only workers read is gone
    rows = [name for name in names if "/rows/" in name]
    assert len(rows) == 5  # four partitions of users, one of places
    for name in rows:  # put by a worker or the driver, and not again by the upload
        assert bucket.server.count("PUT", name) == 1


def kept_files(bucket: Bucket) -> list[Path]:
    """Return the tables in folders of workers."""
    staged = (bucket.cache / "staging").glob("*/gen-*/rows/**/*.npy")
    return [it for it in staged if it.is_file()]


@pytest.mark.usefixtures("_near")
def test_a_storage_that_fails_now_and_then_does_not_matter(
    bucket: Bucket, tmp_path: Path
) -> None:
    store, through = ring(tmp_path / "graph", 4), bucket.place("vectors/gen-5")
    bucket.server.fault = every(10, 503, "SlowDown")
    config = replace(EmbeddingConfig(**SETTINGS), epochs=1)
    report = train_embedding(store, config, tmp_path / "run", cluster=TWO, through=through)
    assert report.epochs == 1
    assert verify_run(tmp_path / "run").ok


@pytest.mark.usefixtures("_near", "one_try")
def test_a_storage_that_fails_ends_it_and_leaves_nothing(
    bucket: Bucket, tmp_path: Path
) -> None:
    store, place = ring(tmp_path / "graph", 4), bucket.place("vectors")
    config, number = EmbeddingConfig(**SETTINGS), own_number()

    def fault(request: dict[str, Any]) -> tuple[int, str] | None:
        is_rows = "/rows/" in request["PATH_INFO"] and request["REQUEST_METHOD"] == "PUT"
        return (503, "SlowDown") if is_rows else None

    bucket.server.fault = fault
    with (
        pytest.raises(ObjectStoreError, match="the storage failed 1 times"),
        published(place, RUN_NAME, overwrite=False, number=number) as run,
    ):
        train_embedding(
            store, config, run, cluster=TWO, through=generation_folder(place, number)
        )
    assert bucket.names("vectors") == []


def test_the_command_names_the_place_to_travel_through(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Any] = {}

    def train(graph: Any, config: Any, out: Path, **how: Any) -> None:
        told.update(how)
        raise ConfigError("enough")

    store = ring(tmp_path / "graph", 4)
    for model, out in (("embedding", "vectors"), ("gnn", "network")):
        monkeypatch.setattr(distributed, f"train_{model}", train)
        words = ["train", model, str(store), "-o", bucket.place(out)]
        assert main([*words, "--cluster", "a.b:6379"]) == 2
        through = Location.parse(told.pop("through"))
        assert str(through).startswith(f"{bucket.place(out)}/gen-")
        assert main([*words, "--cluster", "local:2"]) == 2
        assert "through" not in told  # they see one folder


def test_runs_there_are_asked_by_workers_of_this_machine(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_run, "started", near_shards)
    monkeypatch.setattr(run_questions, "started", near_shards)
    store = ring(tmp_path / "graph", 4)
    vectors, network = bucket.place("vectors"), bucket.place("network")
    with published(vectors, RUN_NAME, overwrite=False) as run:
        embedding.train(store, replace(EmbeddingConfig(**SETTINGS), epochs=1), run)
    target = bucket.place("out/rows.parquet")
    assert run_questions.export(vectors, target, cluster=TWO) == 2
    embedding.export(vectors, here := tmp_path / "rows.parquet")
    (tmp_path / "there.parquet").write_bytes(bucket.read("out/rows.parquet"))
    assert pq.read_table(tmp_path / "there.parquet").equals(pq.read_table(here))
    config = gnn.GnnConfig(task="link_prediction", epochs=1, dim=8, fanouts=(3,), layers=1)
    with published(network, RUN_NAME, overwrite=False) as run:
        gnn.train(store, config, run)
    with distributed.opened_network(network, cluster=TWO) as opened:
        rows = opened.output()
    expected = gnn.open_run(network).output()
    assert np.allclose(rows, expected, rtol=1e-6, atol=1e-7)


def test_and_by_workers_of_several_machines(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_run, "started", near_shards)
    monkeypatch.setattr(run_questions, "started", near_shards)
    vectors, network, far = bucket.place("v"), bucket.place("n"), Cluster.parse("a.b:6379")
    ring(tmp_path / "graph", 4)
    with published(vectors, RUN_NAME, overwrite=False) as run:
        brief = replace(EmbeddingConfig(**SETTINGS), epochs=1)
        embedding.train(tmp_path / "graph", brief, run)
    assert run_questions.export(vectors, bucket.place("rows.csv"), cluster=far) == 2
    here = embedding.export(vectors, tmp_path / "rows.csv")
    assert bucket.read("rows.csv") == here.read_bytes()
    base = gnn.GnnConfig(
        task="link_prediction", epochs=1, dim=8, fanouts=(3, 2), layers=2, batch_size=8
    )
    configs = {"layers": base, "samples": replace(base, sampler="labor")}
    for name, config in configs.items():
        with published(f"{network}-{name}", RUN_NAME, overwrite=False) as run:
            gnn.train(tmp_path / "graph", config, run)
        with distributed.opened_network(f"{network}-{name}", cluster=far) as opened:
            for nodes in (None, np.array([3, 5])):
                rows = opened.output(nodes)
                expected = gnn.open_run(f"{network}-{name}").output(nodes)
                assert np.allclose(rows, expected, rtol=1e-6, atol=1e-7)
        assert not bucket.names(f".n-{name}.parts")
    assert not bucket.names(".rows.csv.parts")


@pytest.mark.e2e
def test_a_running_cluster_trains_from_an_object_store_into_it(
    bucket: Bucket, tmp_path: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, vectors, network = (bucket.place(it) for it in ("graph", "vectors", "network"))
    edges = tmp_path / "ring.txt"
    edges.write_text("".join(f"{k} {(k + d) % 96}\n" for k in range(96) for d in (1, 2)))
    small = {
        "embedding": ("dim=8", "epochs=2"),
        "gnn": ("task=link_prediction", "epochs=1"),
    }
    with running_cluster(monkeypatch) as address:
        words = ["ingest", edges, "-o", store, "--partitions", "4", "--cluster", address]
        done = run_cli(*words)
        assert done.returncode == 0, done.stderr
        for model, out in (("embedding", vectors), ("gnn", network)):
            settings = [word for it in small[model] for word in ("--set", it)]
            words = ["train", model, store, "-o", out, *settings, "--cluster", address]
            done = run_cli(*words, "--json")
            assert done.returncode == 0, done.stderr
            facts = json.loads(done.stdout)
            assert (facts["run"], facts["workers"]) == (out, 2)
            done = run_cli("verify", out)
            assert done.returncode == 0, done.stderr
            target = bucket.place(f"{model}.csv")
            done = run_cli("export", out, "-o", target, "--cluster", address)
            assert done.returncode == 0, done.stderr
            assert bucket.read(f"{model}.csv").count(b"\n") == 97
        words = ["run", "pagerank", store, "--cluster", address, "-o", f"{tmp_path}/a.csv"]
        kept = ["--checkpoint", bucket.place("kept"), "--checkpoint-every", "4"]
        assert run_cli(*words, *kept).returncode == 0
        assert run_cli(*words[:-1], f"{tmp_path}/b.csv", *kept, "--resume").returncode == 0
        assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    for out in (vectors, network):
        place = out.rpartition("/")[2]
        folders = {it.split("/")[0] for it in bucket.names(place)} - {RUN_NAME}
        assert len(folders) == 1  # one generation, and nothing beside it
        number = folders.pop()
        assert f"{number}/{RUN_NAME}" not in bucket.names(place)


@pytest.mark.e2e
@pytest.mark.slow  # as test_train_embedding.py and test_train_gnn.py have it
@pytest.mark.parametrize("model", ["gnn", "embedding"])
def test_a_killed_worker_is_replaced_there_too(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    store, out = bucket.place("graph"), bucket.place("out")
    ring(Path(store), 4)
    words = ["train", model, store, "-o", out, "--json"]
    for setting in LONG[model]:
        words += ["--set", setting]

    with running_cluster(monkeypatch) as address:
        graphsys = str(Path(sys.executable).parent / "graphsys")
        command = [graphsys, *words, "--cluster", address]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as driver:
            wait_for(lambda: epochs_there(bucket, "out") >= 2)
            name = {"gnn": "RemoteGnn", "embedding": "RemoteEmbedding"}[model]
            asked = ["pgrep", "-f", f"ray::{name}"]
            found = subprocess.run(asked, capture_output=True, text=True, check=True)
            own = [it for it in found.stdout.split() if bucket.server.url in environ_of(it)]
            os.kill(int(own[-1]), signal.SIGKILL)  # tests beside this one have others
            told = json.loads(driver.communicate(timeout=300)[0])
    assert told["metrics"]["restarts"] == 1
    assert told["epochs"] == int(LONG[model][1].partition("=")[2])
    assert main(["verify", out]) == 0
    assert len({it.split("/")[0] for it in bucket.names("out")}) == 2


class Meanwhile(Progress):
    """Has somebody else write the same place when the second epoch begins."""

    def __init__(self, place: str, run: Path) -> None:
        self.place, self.run = place, run

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        if name == "epoch 2":
            with published(self.place, RUN_NAME, overwrite=False) as folder:
                shutil.copytree(self.run, folder)


@pytest.mark.usefixtures("_near")
def test_of_two_trainings_into_one_place_the_later_ends_in_a_line(
    bucket: Bucket, tmp_path: Path
) -> None:
    store, place = ring(tmp_path / "graph", 4), bucket.place("vectors")
    config = EmbeddingConfig(**{**SETTINGS, "checkpoint_seconds": 3600.0})
    number = own_number()
    embedding.train(store, replace(config, epochs=1), tmp_path / "other")
    with (
        pytest.raises(CorruptStoreError, match="is missing, maybe since somebody wrote s3"),
        published(place, RUN_NAME, overwrite=False, number=number) as run,
    ):
        train_embedding(
            store,
            config,
            run,
            cluster=TWO,
            through=generation_folder(place, number),
            progress=Meanwhile(place, tmp_path / "other"),
        )
    assert embedding.open_run(place).state.epoch == 1  # the other's, whole
    folders = {it.partition("/")[0] for it in bucket.names("vectors")} - {RUN_NAME}
    assert len(folders) == 1
    assert f"gen-{number}" not in folders


def test_what_workers_put_goes_where_another_run_was_first(
    bucket: Bucket, tmp_path: Path
) -> None:
    store, place, number = (
        ring(tmp_path / "graph", 4),
        bucket.place("vectors"),
        own_number(),
    )
    embedding.train(store, replace(EmbeddingConfig(**SETTINGS), epochs=1), tmp_path / "run")

    def write(number: int | None) -> Iterator[None]:
        with published(place, RUN_NAME, overwrite=False, number=number) as folder:
            yield
            shutil.copytree(tmp_path / "run", folder)

    late = write(number)
    next(late)
    for _ in write(None):
        pass
    bucket.write(f"vectors/gen-{number}/rows/superseded.npy", b"rows")
    with pytest.raises(StoreBusyError, match="was written by another process meanwhile"):
        next(late, None)
    assert not [it for it in bucket.names("vectors") if it.startswith(f"gen-{number}")]
