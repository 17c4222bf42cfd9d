"""Networks' runs asked on workers: what one machine answers; files, kills, refusals."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys import distributed, gnn
from graphsys.core.errors import ConfigError, CorruptStoreError, StorageFullError
from graphsys.core.types import EdgeType
from graphsys.distributed import Cluster
from graphsys.distributed.inference import network_run, run_work
from graphsys.distributed.inference.network_run import (
    LayerSlices,
    MappedLayer,
    NetworkShard,
)
from graphsys.distributed.shared_files import SharedFiles
from graphsys.gnn import GnnConfig
from graphsys.storage import NodeChunk
from tests.clusters import near_shards
from tests.conftest import Run
from tests.stores import edge_chunk, make_store

if TYPE_CHECKING:
    from collections.abc import Callable

TWO = Cluster.parse("local:2")
READS = EdgeType("reader", "reads", "book")
BASE: dict[str, Any] = {"dim": 8, "batch_size": 16, "epochs": 2, "fanouts": (4, 4)}
SETTINGS: dict[str, dict[str, Any]] = {
    "classes": {"model": "rgcn"},
    "links": {"task": "link_prediction", "edge_type": "reads"},
    "deep": {
        "task": "link_prediction",
        "edge_type": "reads",
        "fanouts": (3, 3, 3),
        "layers": 3,
    },
    "times": {"sampler": "temporal"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Train a run for each of the settings, on readers who read books."""
    folder, rng = tmp_path_factory.mktemp("runs"), np.random.default_rng(1)
    pairs = [(r, b) for r in range(30) for b in range(24) if (r + b) % 2 == 0]
    pairs = [pairs[k] for k in rng.permutation(len(pairs))[:260]]
    make_store(
        folder / "graph",
        NodeChunk(
            ids=np.arange(24),
            node_type="book",
            columns={
                "label": pa.array([f"taste {b % 2}" for b in range(24)]),
                "time": 40 + 5 * np.arange(24),
                "split": pa.array(["train"] * 14 + ["valid"] * 4 + ["test"] * 6),
            },
            features={"x": rng.normal(0, 1, (24, 6)).astype(np.float32)},
        ),
        NodeChunk(ids=np.arange(31), node_type="reader"),  # the last reads nothing
        edge_chunk(pairs[:230], READS, time=np.arange(230)),
        edge_chunk(pairs[230:], READS, "test", time=np.arange(230, 260)),
        partitions={"book": 2, "reader": 3},
    )
    for name, settings in SETTINGS.items():
        config = GnnConfig(**BASE | settings)
        gnn.train(folder / "graph", config, folder / name)
    return {name: folder / name for name in SETTINGS}


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers in this process, and batches of a few nodes."""
    monkeypatch.setattr(network_run, "started", near_shards)
    monkeypatch.setattr("graphsys.gnn.layerwise_passes._NODES_AT_A_TIME", 5)


def same(one: Any, other: Any) -> bool:
    """Return whether two tables say the same, numbers to the last digit but rounding."""
    if one.column_names != other.column_names or one.num_rows != other.num_rows:
        return False
    return all(
        np.allclose(a, b, rtol=1e-6, atol=1e-7)
        if a and isinstance(a[0], float | list)
        else a == b
        for a, b in ((one[n].to_pylist(), other[n].to_pylist()) for n in one.column_names)
    )


def figures(run: Any) -> dict[str, float]:
    """Return the metrics of a run that are numbers."""
    found = gnn.evaluate(run)["metrics"]
    return {name: value for name, value in found.items() if not isinstance(value, dict)}


@pytest.mark.usefixtures("near")
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("workers", [2, 9])
def test_workers_answer_what_one_machine_does(
    runs: dict[str, Path], tmp_path: Path, name: str, workers: int
) -> None:
    run, is_of_links = runs[name], name in ("links", "deep")
    asked: list[Callable[[Any], Any]] = [
        lambda it: gnn.predict(it),
        lambda it: gnn.predict(it, [3, 1, 3]),
        lambda it: gnn.predict(it, []),
        lambda it: gnn.nearest(it, 7, 4, node_type="book"),
    ]
    if is_of_links:
        asked.append(lambda it: gnn.recommend(it, [5, 30], 3))
    with distributed.opened_network(run, cluster=Cluster("", workers)) as opened:
        assert opened.workers == workers
        for ask in asked:
            assert same(ask(opened), ask(run))
        assert figures(opened) == pytest.approx(figures(run), nan_ok=True)
        lonely = opened.graph.lookup("reader", [30]).astype(np.int64)
        if is_of_links:
            alone = opened.output(lonely, node_type="reader")
            expected = gnn.open_run(run).output(lonely, node_type="reader")
            assert np.allclose(alone, expected, rtol=1e-6, atol=1e-7)
        far = np.load(gnn.export(opened, tmp_path / "far.npy", node_type="book"))
    near = np.load(gnn.export(run, tmp_path / "near.npy", node_type="book"))
    assert np.allclose(far, near, rtol=1e-6, atol=1e-7)
    assert not list(run.parent.glob(".*"))


@pytest.mark.usefixtures("near")
def test_rows_of_layers_may_lie_in_files(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = gnn.open_run(runs["deep"]).output(node_type="reader")
    monkeypatch.setattr(network_run, "scratch_of", lambda context, folder: folder)
    with distributed.opened_network(runs["deep"], cluster=TWO) as opened:
        found = opened.output(node_type="reader")
    assert isinstance(found, np.memmap)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures("near")
def test_files_of_a_layer_go_with_the_next_and_all_when_a_worker_fails(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[str]] = []
    compute = NetworkShard.compute

    def seeing(self: NetworkShard, place: str, k: int, asked: Any, known: Any) -> list[str]:
        (folder,) = runs["deep"].parent.glob(".deep.*.parts")
        names = {file.name.split("-")[0] for file in folder.iterdir()}
        seen.append(names - {".graphsys"})  # the folder's claim
        if k == 2:
            raise StorageFullError("the disk is full")
        return compute(self, place, k, asked, known)

    monkeypatch.setattr(NetworkShard, "compute", seeing)
    with (
        distributed.opened_network(runs["deep"], cluster=TWO) as opened,
        pytest.raises(StorageFullError, match="the disk is full"),
    ):
        opened.output(node_type="reader")
    assert seen[0] == set()
    assert seen[-1] == {"1"}  # what the last layer reads
    assert not list(runs["deep"].parent.glob(".*"))


@pytest.mark.usefixtures("near")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_line(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        SharedFiles, "save", lambda *_: Path("/dev/full").write_bytes(b"rows")
    )
    message = "cannot write to .*: no space left on device; free some space"
    with (
        distributed.opened_network(runs["links"], cluster=TWO) as opened,
        pytest.raises(StorageFullError, match=message),
    ):
        opened.output(node_type="reader")
    assert not list(runs["links"].parent.glob(".*"))


def test_pieces_are_found_by_numbers_and_may_be_empty(tmp_path: Path) -> None:
    shares = LayerSlices(stem="0-0", bounds=(0, 2, 2, 3), is_all=False)
    files = SharedFiles(tmp_path)
    files.save(shares.list_file, np.array([4, 7, 9]))
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    for rank, piece in ((0, values[:2]), (2, values[2:])):
        files.save(shares.piece_file(rank), piece)
    rows = MappedLayer(files, shares)
    assert rows.shape == (3, 2)
    assert rows.of(np.array([9, 4, 9])).tolist() == values[[2, 0, 2]].tolist()
    assert [shares.numbers(files, rank).tolist() for rank in range(3)] == [[4, 7], [], [9]]
    out = np.zeros((3, 2), np.float32)
    rows.write_to(out)
    assert out.tolist() == values.tolist()
    files.remove(shares.names)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("near")
def test_a_run_that_went_on_or_is_damaged_is_refused(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter("ab")
    with monkeypatch.context() as patched:
        patched.setattr(run_work, "checkpoint_of", lambda state: next(names))
        with (
            pytest.raises(
                ConfigError, match="trained further while it was asked; ask again"
            ),
            distributed.opened_network(runs["links"], cluster=TWO) as opened,
        ):
            opened.output()
    run = tmp_path / "run"
    run.mkdir()
    for file in runs["links"].iterdir():
        (run / file.name).write_bytes(file.read_bytes())
    weights = next(run.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    with (
        pytest.raises(CorruptStoreError, match="safetensors"),
        distributed.opened_network(run, cluster=TWO),
    ):
        pass


@pytest.mark.usefixtures("near")
def test_a_run_that_trains_on_meanwhile_answers_from_the_checkpoint_that_was_asked(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    graph, config = runs["links"].parent / "graph", GnnConfig(**BASE | SETTINGS["links"])
    run = tmp_path / "run"
    gnn.train(graph, config, run)
    before = figures(run)
    with distributed.opened_network(run, cluster=TWO) as opened:
        longer = replace(config, epochs=config.epochs + 3)
        gnn.train(graph, longer, run, resume=True)
        assert figures(opened) == pytest.approx(before, nan_ok=True)
    assert figures(run) != pytest.approx(before, nan_ok=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "gcn", "batch_size": 0}, "batch_size 0 computes all rows at once"),
        (
            {
                "model": "lightgcn",
                "task": "recommendation",
                "edge_type": "reads",
                "fanouts": (),
            },
            "model lightgcn computes all rows at once",
        ),
    ],
)
def test_what_is_not_computed_layer_by_layer_is_refused(
    runs: dict[str, Path], tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    config = replace(GnnConfig(**BASE), **changes)
    gnn.train(runs["links"].parent / "graph", config, tmp_path / "run")
    with (
        pytest.raises(ConfigError, match=message),
        distributed.opened_network(tmp_path / "run", cluster=TWO),
    ):
        pass


@pytest.mark.e2e
def test_the_command_that_evaluates(runs: dict[str, Path], run_cli: Run) -> None:
    run = runs["links"]
    done = run_cli("evaluate", run, "--cluster", "local:2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("workers") == 2
    assert found["metrics"].pop("unfiltered")["mrr"] > 0
    assert found["metrics"] == pytest.approx(figures(run))


@pytest.mark.e2e
@pytest.mark.slow  # its workers are those above
def test_the_command_that_predicts(
    runs: dict[str, Path], tmp_path: Path, run_cli: Run
) -> None:
    run, out = runs["links"], tmp_path / "rows.csv"
    where = ("--cluster", "local:2", "--json")
    done = run_cli("predict", run, "-o", out, "-k", "3", *where)
    assert json.loads(done.stdout)["workers"] == 2, done.stderr
    assert len(out.read_text().splitlines()) > 30


@pytest.mark.e2e
@pytest.mark.slow  # whoever is lost is Ray's to start again: test_run_questions.py
def test_a_killed_worker_computes_its_rows_again(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs["links"]
    mark = tmp_path / "killed"

    class Fragile(NetworkShard):  # here, so that it travels by value
        def compute(self, place: str, k: int, asked: Any, known: Any) -> list[str]:
            if self._rank == 1 and k == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().compute(place, k, asked, known)

    monkeypatch.setattr(network_run, "NetworkShard", Fragile)
    with distributed.opened_network(run, cluster=TWO) as opened:
        rows = opened.output(node_type="reader")
    assert mark.exists()
    expected = gnn.open_run(run).output(node_type="reader")
    assert np.allclose(rows, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "RUN", "--memory", "1GB"], "--memory does not go with --cluster"),
        (["evaluate", "RUN", "--queries", "9"], "--queries is for runs of embeddings"),
        (["nearest", "RUN", "7", "--index", "ivf"], "--index ivf is for runs of embed"),
        (["export", "RUN", "-o", "rows.doc"], "cannot export to"),
        (["predict", "RUN", "-o", "a.csv", "--memory", "1GB"], "--memory does not go"),
    ],
)
def test_refusals_are_one_line(
    runs: dict[str, Path], run_cli: Run, words: list[str], message: str
) -> None:
    run = str(runs["links"])
    done = run_cli(*[run if w == "RUN" else w for w in words], "--cluster", "local:2")
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr
