"""Trainings on an object store that go on from what was committed, or left there."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphsys import embedding, gnn
from graphsys.cli.main import main
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    ObjectStoreError,
    StoreBusyError,
    TrainingFailedError,
)
from graphsys.core.ownership import CLAIM
from graphsys.core.progress import Progress
from graphsys.distributed import Cluster
from graphsys.distributed.embedding import epochs, training
from graphsys.distributed.embedding.training import train_embedding
from graphsys.distributed.run_files import RunFiles
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.run import read_state
from graphsys.storage.remote.publishing import published
from graphsys.storage.runs.remote_checkpoint import (
    RemoteCheckpoint,
    last_checkpoint,
    run_target,
    settings_folder,
)
from graphsys.storage.runs.run_folder import RUN_NAME, read_content
from graphsys.storage.verify.run import verify_run
from tests.buckets import Bucket
from tests.clusters import near_crew
from tests.conftest import Run
from tests.distributed.test_embedding_epochs import SETTINGS, two_processors
from tests.distributed.test_run_files import LONG, epochs_there, put
from tests.distributed.test_train_embedding import ring
from tests.processes import running_cluster, wait_for

TWO, FAR = Cluster.parse("local:2"), "a.b:6379"
CONFIG = EmbeddingConfig(**{**SETTINGS, "checkpoint_seconds": 0.0, "epochs": 3})


@pytest.fixture
def _near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "started", near_crew)
    monkeypatch.setattr(training, "connected", two_processors)


class Ends(Progress):
    """Ends a training when an epoch begins."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        if name == f"epoch {self.epoch}":
            raise TrainingFailedError("the lights went out")


def trained(
    store: Path, place: str, *, resume: bool, ends_in: int = 9, config: Any = CONFIG
) -> Any:
    """Train on machines that share no folder, as the command does."""
    how: dict[str, Any] = {"overwrite": False, "resume": resume, "dry_run": False}
    with run_target(Path(place), FAR, how) as folder:
        return train_embedding(
            store, config, folder, cluster=TWO, progress=Ends(ends_in), **how
        )


@pytest.mark.usefixtures("_near")
def test_what_a_training_left_is_gone_on_with(bucket: Bucket, tmp_path: Path) -> None:
    store, place = ring(tmp_path / "graph", 4), bucket.place("vectors")
    with pytest.raises(ConfigError, match="holds no run to resume; train without"):
        trained(store, place, resume=True)
    with pytest.raises(TrainingFailedError):
        trained(store, place, resume=False, ends_in=1)
    assert bucket.names("vectors") == []  # no epoch was done
    assert last_checkpoint(place) is None
    with pytest.raises(TrainingFailedError):
        trained(store, place, resume=False, ends_in=3)
    left = last_checkpoint(place)
    assert left is not None
    assert json.loads(left.text)["epoch"] == 2
    with settings_folder(place) as folder:
        assert embedding.run_config(folder) == replace(CONFIG, join_partitions=False)
        assert read_state(folder).epoch == 2
        assert not list(folder.glob("**/*.npy"))
    report = trained(store, place, resume=True)
    assert report.epochs == 3
    run = embedding.open_run(place)
    assert (run.state.epoch, run.state.is_complete) == (3, True)
    assert len(run.state.losses) == 3
    assert verify_run(run.path).ok
    folders = {it.partition("/")[0] for it in bucket.names("vectors")} - {RUN_NAME}
    assert len(folders) == 1  # what was left has gone
    longer = replace(CONFIG, epochs=4)
    assert trained(store, place, resume=True, config=longer).epochs == 4
    assert embedding.open_run(place).config == replace(longer, join_partitions=False)
    assert verify_run(embedding.open_run(place).path).ok


@pytest.mark.usefixtures("_near")
def test_a_run_that_is_whole_stays_while_another_begins(
    bucket: Bucket, tmp_path: Path
) -> None:
    store, place = ring(tmp_path / "graph", 4), bucket.place("vectors")
    trained(store, place, resume=False)
    before = bucket.read(f"vectors/{RUN_NAME}")
    how: dict[str, Any] = {"overwrite": True, "resume": False, "dry_run": False}
    with (
        pytest.raises(TrainingFailedError),
        run_target(Path(place), FAR, how) as folder,
    ):
        train_embedding(store, CONFIG, folder, cluster=TWO, progress=Ends(2), **how)
    assert bucket.read(f"vectors/{RUN_NAME}") == before
    left = last_checkpoint(place)
    assert left is not None
    assert json.loads(left.text)["epoch"] == 1  # of the one that began later
    assert embedding.open_run(place).state.epoch == 3
    other = replace(CONFIG, dim=16)
    with pytest.raises(ConfigError, match="has other settings"):
        trained(store, place, resume=True, config=other)


@pytest.mark.parametrize("cluster", [None, "local:2"])
def test_a_committed_run_is_gone_on_with_by_one_machine(
    bucket: Bucket, tmp_path: Path, cluster: str | None
) -> None:
    store, place = ring(tmp_path / "graph", 2), bucket.place("network")
    config = gnn.GnnConfig(task="link_prediction", epochs=2, dim=8, fanouts=(3,), layers=1)
    with published(place, RUN_NAME, overwrite=False) as run:
        gnn.train(store, config, run)
    how: dict[str, Any] = {"overwrite": False, "resume": True, "dry_run": False}
    with run_target(Path(place), cluster, how) as folder:
        assert how == {"overwrite": False, "resume": True, "dry_run": False}
        assert verify_run(folder).ok
        assert gnn.train(store, config, folder, **how).epochs == 2
    assert gnn.open_run(place).state.epoch == 2
    how["resume"], longer = True, replace(config, epochs=3)
    with run_target(Path(place), cluster, how) as folder:
        assert gnn.train(store, longer, folder, **how).epochs == 3
    assert gnn.open_run(place).config == longer


@pytest.mark.usefixtures("_near")
def test_a_dry_run_commits_nothing(bucket: Bucket, tmp_path: Path) -> None:
    store, place = ring(tmp_path / "graph", 4), bucket.place("vectors")
    with pytest.raises(TrainingFailedError):
        trained(store, place, resume=False, ends_in=3)
    before = {name: bucket.read(f"vectors/{name}") for name in bucket.names("vectors")}
    words = ["train", "embedding", str(store), "-o", place, "--resume", "--dry-run"]
    assert main(words) == 0
    assert main([*words, "--cluster", FAR]) == 0
    after = {name: bucket.read(f"vectors/{name}") for name in bucket.names("vectors")}
    assert after == before


@pytest.mark.usefixtures("_near", "one_try")
def test_a_last_upload_that_fails_keeps_the_checkpoint(
    bucket: Bucket, tmp_path: Path
) -> None:
    store, place = ring(tmp_path / "graph", 4), bucket.place("vectors")

    def fault(request: dict[str, Any]) -> tuple[int, str] | None:
        is_log = (
            "training.jsonl" in request["PATH_INFO"] and request["REQUEST_METHOD"] == "PUT"
        )
        return (503, "SlowDown") if is_log else None

    bucket.server.fault = fault  # the log goes with the whole run only
    with pytest.raises(ObjectStoreError, match="the storage failed 1 times"):
        trained(store, place, resume=False)
    assert RUN_NAME not in bucket.names("vectors")
    bucket.server.reset()
    left = last_checkpoint(place)
    assert left is not None
    assert json.loads(left.text)["epoch"] == 3
    assert trained(store, place, resume=True).epochs == 3
    assert verify_run(embedding.open_run(place).path).ok


@pytest.mark.usefixtures("_near")
def test_a_run_that_is_committed_meanwhile_is_not_replaced(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, place = ring(tmp_path / "graph", 4), bucket.place("vectors")
    trained(store, place, resume=False)
    found = RemoteCheckpoint.bring

    def bring(self: RemoteCheckpoint, folder: Path, **how: Any) -> None:
        found(self, folder, **how)
        with published(place, RUN_NAME, overwrite=True) as other:
            shutil.copytree(folder, other)

    with monkeypatch.context() as patch:
        patch.setattr(RemoteCheckpoint, "bring", bring)
        with pytest.raises(StoreBusyError, match="by another process meanwhile"):
            trained(store, place, resume=True)
    assert embedding.open_run(place).state.epoch == 3


def test_damaged_heads_end_in_a_line(bucket: Bucket) -> None:
    place = bucket.place("run")
    for text in (b"{", b"[]", b'{"files": {"../x": 3}, "checksums": {}}', b'{"files": 1}'):
        bucket.write("run/gen-7/run.json", text)
        with pytest.raises(CorruptStoreError, match=r"gen-7/run.json|\.\./x"):
            last_checkpoint(place)
    bucket.write("run/gen-7/run.json", b'{"files": {}, "checksums": {}}')
    assert last_checkpoint(place) is None


def test_a_training_that_had_begun_only_hides_no_checkpoint(bucket: Bucket) -> None:
    place = bucket.place("run")
    bucket.write("run/gen-5/run.json", b'{"files": {"a": 1}, "checksums": {}}')
    bucket.write("run/gen-7/run.json", b'{"files": {"b": 1}, "checksums": {}}')
    bucket.write("run/gen-9/run.json", b'{"files": {}, "checksums": {}}')
    found = last_checkpoint(place)
    assert found is not None
    assert [it.key for it in found.files] == ["gen-7/config.toml", "gen-7/b"]


def is_claim_of_ours(name: str) -> bool:
    return CLAIM.fullmatch(name.rpartition("/")[2]) is not None


@pytest.mark.parametrize("head", [b"", b'{"files": {"a"', b"[]"])
def test_what_cannot_be_read_is_kept_when_a_training_fails(
    bucket: Bucket, head: bytes
) -> None:
    """It may be read half while it is put, and is of hours of training."""
    place = bucket.place("run")
    with (  # noqa: PT012
        pytest.raises(TrainingFailedError),
        published(place, RUN_NAME, overwrite=True, number=7),
    ):
        bucket.write("run/gen-7/run.json", head)
        bucket.write("run/gen-7/weights", b"of hours")
        raise TrainingFailedError("the lights went out")
    names = [it for it in bucket.names("run") if not is_claim_of_ours(it)]
    assert names == ["gen-7/run.json", "gen-7/weights"]


@pytest.mark.e2e
@pytest.mark.slow  # the functions are tested above
@pytest.mark.parametrize("model", ["gnn", "embedding"])
def test_the_command_goes_on_after_a_kill(
    bucket: Bucket,
    tmp_path: Path,
    run_cli: Run,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
) -> None:
    store, out = bucket.place("graph"), bucket.place("out")
    ring(Path(store), 4)
    words = ["train", model, store, "-o", out, "--json"]

    with running_cluster(monkeypatch) as address:
        words += ["--cluster", address]
        graphsys = str(Path(sys.executable).parent / "graphsys")
        chosen = [word for it in LONG[model] for word in ("--set", it)]
        with subprocess.Popen(
            [graphsys, *words, *chosen],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as driver:
            wait_for(lambda: epochs_there(bucket, "out") >= 2)
            os.kill(driver.pid, signal.SIGKILL)
        done = run_cli(*words, "--resume")
        assert done.returncode == 0, done.stderr
        done_epochs = int(LONG[model][1].partition("=")[2])
        assert json.loads(done.stdout)["epochs"] == done_epochs
    open_run: Any = {"gnn": gnn.open_run, "embedding": embedding.open_run}[model]
    state = open_run(out).state
    assert (state.epoch, state.is_complete) == (done_epochs, True)
    assert main(["verify", out]) == 0
    assert len({it.split("/")[0] for it in bucket.names("out")}) == 2


def test_the_driver_of_a_resumed_training_gets_what_was_trained(
    bucket: Bucket, tmp_path: Path
) -> None:
    """Not the checkpoint with which it began, whose files have the same names."""
    place = bucket.place("run/gen-1")
    driver = RunFiles.of_driver(tmp_path / "driver", place)
    driver.path.mkdir()
    (driver.path / "config.toml").write_text("")
    put(driver, a=b"old")
    worker = RunFiles.of_worker("", place)
    put(worker, a=b"old", b=b"new")
    driver.bring_checkpoint()
    assert set(read_content(driver.path)["files"]) == {"a", "b"}
    assert (driver.path / "b").read_bytes() == b"new"
