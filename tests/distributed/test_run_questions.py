"""Runs asked on workers: what one machine answers, to the last digit; kills, refusals."""

import fcntl
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from graphsys import distributed, embedding
from graphsys.core.errors import (
    ClusterError,
    ConfigError,
    CorruptStoreError,
    OutputExistsError,
)
from graphsys.core.ownership import claim
from graphsys.distributed import Cluster
from graphsys.distributed.group import started
from graphsys.distributed.inference import run_questions
from graphsys.distributed.inference.run_questions import RunShard
from graphsys.distributed.inference.run_work import (
    RunWork,
    parts_beside,
    require_checkpoint,
)
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding.run import read_config, read_state
from graphsys.storage.verify.run import verify_run
from tests.clusters import near_shards
from tests.conftest import Call, Run
from tests.runs import reseal
from tests.stores import edge_chunk, make_store

TWO = Cluster.parse("local:2")
NUM_NODES = 90
SETTINGS: dict[str, dict[str, Any]] = {
    "products": {"operator": "complex_diagonal", "eval_fraction": 0.1},
    "distances": {"operator": "translation", "comparator": "l2", "bias": True},
    "halves": {"row_dtype": "float16", "comparator": "cos", "global_embedding": True},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Train a run for each of the settings, on a graph in three partitions."""
    folder, rng = tmp_path_factory.mktemp("runs"), np.random.default_rng(5)
    chunks = [
        edge_chunk(
            rng.integers(0, NUM_NODES, (num, 2)).tolist(),
            split=split,
            relation=rng.choice(["r", "s"], num).tolist(),
        )
        for split, num in (("train", 600), ("test", 80))
    ]
    make_store(folder / "graph", *chunks, partitions=3)
    for name, settings in SETTINGS.items():
        config = EmbeddingConfig(dim=8, epochs=2, **settings)
        embedding.train(folder / "graph", config, folder / name)
    return {name: folder / name for name in SETTINGS}


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers in this process."""

    monkeypatch.setattr(run_questions, "started", near_shards)


@pytest.mark.usefixtures("near")
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("workers", [2, 5])
def test_workers_answer_what_one_machine_does(
    runs: dict[str, Path], tmp_path: Path, name: str, workers: int
) -> None:
    run, cluster = runs[name], Cluster("", workers)
    several: list[dict[str, Any]] = [
        {},
        {"candidates": 20, "draw": "degree", "seed": 3},
        {"queries": 40},
        *([{"split": "held_out"}] if "eval_fraction" in SETTINGS[name] else []),
    ]
    for options in several:
        found = distributed.evaluate(run, cluster=cluster, **options)
        assert found.pop("workers") == workers
        assert found == embedding.evaluate(run, **options)
    for k in (3, 2 * NUM_NODES):
        table, _ = distributed.nearest(run, 7, k, cluster=cluster)
        assert table.equals(embedding.nearest(run, 7, k))
    for suffix in (".parquet", ".npy", ".json"):
        paths = [tmp_path / f"{where}{suffix}" for where in ("one", "many")]
        embedding.export(run, paths[0])
        assert distributed.export(run, paths[1], cluster=cluster) == workers
        if suffix == ".parquet" and workers > 3:  # row groups end where a share does
            assert parquet.read_table(paths[0]).equals(parquet.read_table(paths[1]))
        else:
            assert paths[0].read_bytes() == paths[1].read_bytes()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.usefixtures("near")
def test_a_batch_of_questions_may_be_small(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_questions, "_BATCH", 7)
    found = distributed.evaluate(runs["products"], cluster=TWO)
    assert found["metrics"] == embedding.evaluate(runs["products"])["metrics"]


@pytest.mark.usefixtures("near")
def test_what_killed_exports_left_goes_and_what_others_write_stays(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "rows[1].csv"
    numbers = ("1" * 16, "2" * 16, "3" * 16)
    left, held, theirs = (tmp_path / f".{out.name}.{k}.parts" for k in numbers)
    for folder in (left, held, theirs):
        folder.mkdir()
        (folder / "0.arrow").touch()
        if folder != theirs:
            claim(folder)
    lock = os.open(held, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    distributed.export(runs["products"], out, cluster=TWO)
    os.close(lock)
    assert sorted(tmp_path.iterdir()) == sorted([out, held, theirs])
    with pytest.raises(OutputExistsError, match="exists; replace it with --overwrite"):
        distributed.export(runs["products"], out, cluster=TWO)


def test_processes_of_one_number_on_two_machines_have_a_folder_each(
    tmp_path: Path,
) -> None:
    with parts_beside(tmp_path / "run") as one, parts_beside(tmp_path / "run") as other:
        assert sorted(tmp_path.iterdir()) == sorted([one.path, other.path])
    assert not list(tmp_path.iterdir())


def test_a_worker_checks_its_own_files_and_the_checkpoint(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for file in runs["products"].rglob("*"):
        to = run / file.relative_to(runs["products"])
        to.mkdir() if file.is_dir() else to.write_bytes(file.read_bytes())
    graph = str(runs["products"].parent / "graph")
    checkpoint = read_state(run), read_config(run)
    work = RunWork(path=str(run), graph=graph, checkpoint=checkpoint, threads=1)
    (file,) = run.glob("rows/*/part-2.*.npy")
    file.write_bytes(file.read_bytes()[:-1] + b"\0")
    RunShard(0, 3, work).ready()
    with pytest.raises(CorruptStoreError, match="part-2"):
        RunShard(2, 3, work).ready()
    reseal(run)
    RunShard(0, 3, work).ready()  # of what was pinned
    with pytest.raises(ConfigError, match="trained further while it was asked; ask again"):
        require_checkpoint(work, run, read_state(run))


@pytest.mark.usefixtures("near")
def test_a_run_that_trains_on_meanwhile_answers_from_the_checkpoint_that_was_asked(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, config = runs["products"].parent / "graph", EmbeddingConfig(dim=8, epochs=1)
    run = tmp_path / "run"
    embedding.train(graph, config, run)
    before = embedding.evaluate(run)

    @contextmanager
    def trained_on(*options: Any) -> Iterator[Any]:
        embedding.train(graph, replace(config, epochs=3), run, resume=True)
        with near_shards(*options) as shards:
            yield shards

    monkeypatch.setattr(run_questions, "started", trained_on)
    assert distributed.evaluate(run, cluster=TWO) == before | {"workers": 2}
    assert embedding.evaluate(run) != before
    assert verify_run(run).problems == []  # nothing is left of what was asked


@pytest.mark.e2e
@pytest.mark.usefixtures("two_workers")
def test_the_command_that_evaluates(runs: dict[str, Path], call: Call) -> None:
    run = runs["products"]
    code, out, said = call("evaluate", run, "--cluster", "local:2", "--json")
    assert code == 0, said
    assert json.loads(out) == embedding.evaluate(run) | {"workers": 2}


@pytest.mark.e2e
@pytest.mark.slow  # its workers are those above, its answers those of the functions
def test_the_commands_that_find_and_export(
    runs: dict[str, Path], tmp_path: Path, run_cli: Run
) -> None:
    run, out = runs["products"], tmp_path / "rows.csv"
    done = run_cli("nearest", run, "7", "-k", "4", "--cluster", "local:2", "--json")
    rows = embedding.nearest(run, 7, 4).to_pylist()
    assert json.loads(done.stdout) == {"neighbors": rows, "workers": 2}
    done = run_cli("export", run, "-o", out, "--cluster", "local:2", "--json")
    assert json.loads(done.stdout) == {"output": str(out), "workers": 2}
    assert out.read_bytes() == embedding.export(run, tmp_path / "one.csv").read_bytes()


@pytest.mark.e2e
@pytest.mark.usefixtures("two_workers")
def test_a_killed_worker_is_asked_again_as_another(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, mark = runs["products"], tmp_path / "killed"

    class Fragile(RunShard):  # here, so that it travels by value
        def count(self, asked: Any) -> Any:
            if self.share.rank == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().count(asked)

    monkeypatch.setattr(run_questions, "RunShard", Fragile)
    found = distributed.evaluate(run, cluster=TWO)
    assert mark.exists()
    assert found == embedding.evaluate(run) | {"workers": 2}

    class Hopeless:
        def __init__(self, rank: int, size: int) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        def ready(self) -> None:
            """Never."""

    with (
        pytest.raises(ClusterError, match="a worker was lost 4 times, the last time"),
        started(Cluster("", 1), Hopeless, [], lambda: 1),
    ):
        pass


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "RUN", "--memory", "1GB"], "--memory does not go with --cluster"),
        (["nearest", "RUN", "7", "--index", "ivf"], "--index does not go with --cluster"),
        (["nearest", "RUN", "7", "-k", "0"], "k"),
        (["nearest", "RUN", "x7"], "x7"),
        (
            ["export", "RUN", "-o", "a.tsv", "--relation-types", "b.tsv"],
            "--relation-types does not go with --cluster",
        ),
        (["export", "RUN", "-o", "rows.doc"], "cannot export to"),
    ],
)
def test_refusals_are_one_line(
    runs: dict[str, Path], run_cli: Run, words: list[str], message: str
) -> None:
    run = str(runs["products"])
    done = run_cli(*[run if w == "RUN" else w for w in words], "--cluster", "local:2")
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_networks_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_questions, "is_gnn_run", lambda path: True)
    with pytest.raises(ConfigError, match="takes runs of embeddings; open it by"):
        distributed.evaluate(tmp_path, cluster=TWO)
