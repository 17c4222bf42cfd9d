"""Workers of embeddings as threads of the test, without Ray: files, losses, log lines."""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ClusterError
from graphsys.distributed.embedding.bucket_locks import BucketLocks, EpochUnit, Turn
from graphsys.distributed.embedding.parameter_server import Call, ParameterServer
from graphsys.distributed.embedding.work import EmbeddingWork, tables_of
from graphsys.distributed.embedding.worker import EmbeddingWorker, WorkerPartitions
from graphsys.embedding import EmbeddingConfig
from graphsys.embedding import run as runs
from graphsys.embedding.data.schedule import BucketSchedule
from graphsys.embedding.rows.table_files import TableFiles
from graphsys.storage import Graph
from tests.distributed.test_train_embedding import NUM_EDGES, ring
from tests.embedding_context import context_of

CONFIG = EmbeddingConfig(
    dim=8,
    operator="complex_diagonal",
    batch_size=50,
    num_uniform_negatives=10,
    num_batch_negatives=5,
    eval_fraction=0.1,
    threads=1,
)


class Servers:
    """Both servers for threads, which look at the run's files at every call.

    Attributes:
        missing: Files that a checkpoint or a lost bucket would need, and that were gone.
    """

    def __init__(self, graph: Graph, path: Path, config: EmbeddingConfig = CONFIG) -> None:
        path.mkdir(exist_ok=True)
        self._config = config
        context = context_of(graph, config, path)
        context.state.checksums[runs.CONFIG_NAME] = runs.write_config(path, config)
        runs.commit(path, context.state)
        partitions = {t: graph.num_partitions(t) for t in graph.node_types}
        schedule = BucketSchedule(context.steps, partitions, context.layout, CONFIG.seed)
        self.units = [EpochUnit(needs=needs) for needs in schedule.needs(0)]
        self.locks = BucketLocks({}, 0, is_anchored=False)
        self.parameters = ParameterServer(tables_of(TableFiles(context), {}))
        self.missing: list[str] = []
        self._path, self._lock = path, threading.Lock()

    def caller(self, server: Any) -> Call:
        def call(method: str, *arguments: Any, **named: Any) -> Any:
            with self._lock:
                files = self.locks.outcome()[1].values()
                names = {name for listed in files for name in listed}
                gone = [name for name in names if not (self._path / name).exists()]
                self.missing += gone
                return getattr(server, method)(*arguments, **named)

        return call

    def worker(self, name: str, graph: Path) -> EmbeddingWorker:
        self.locks.join(name)
        self.parameters.join(name)
        work = EmbeddingWork(graph=str(graph), path=str(self._path), config=self._config)
        locks, parameters = self.caller(self.locks), self.caller(self.parameters)
        return EmbeddingWorker(name, work, locks, [parameters])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ring(tmp_path_factory.mktemp("ring") / "graph", 4)


def test_files_stay_until_what_replaces_them_was_given_back(
    store: Path, tmp_path: Path
) -> None:
    servers = Servers(Graph(store), tmp_path)
    workers = [servers.worker(name, store) for name in "ab"]
    losses = []
    for epoch in range(3):
        servers.locks.begin_epoch(epoch, servers.units)
        with ThreadPoolExecutor(2) as pool:
            told = list(pool.map(EmbeddingWorker.train_epoch, workers, [epoch] * 2))
        finished, files, _ = servers.locks.outcome()
        losses.append(servers.locks.progress()[1])
        assert sum(unit.num_edges for unit in finished) < NUM_EDGES  # some are held out
        assert sum(unit.held_out[1] for unit in finished) > NUM_EDGES * 0.08
        assert [event for unit in finished for event, _ in unit.lines] == ["unit"] * 10
        servers.locks.committed()
    assert not servers.missing
    assert losses[2] < losses[1] < losses[0]
    assert sum(each["buckets"] for each in told) == 30
    kept = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.npy")}
    assert kept >= {name for listed in files.values() for name in listed}


def test_workers_that_begin_after_a_checkpoint_use_the_numbers_of_their_turns(
    store: Path, tmp_path: Path
) -> None:
    """Not those after the checkpoint's, which are given to others later."""
    servers = Servers(Graph(store), tmp_path)
    state = runs.read_state(tmp_path)
    state.serial = 1000
    runs.commit(tmp_path, state)
    workers = [servers.worker(name, store) for name in "ab"]
    servers.locks.begin_epoch(0, servers.units)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(EmbeddingWorker.train_epoch, workers, [0, 0]))
    _, files, last = servers.locks.outcome()
    numbers = [int(name.rsplit(".", 2)[1]) for listed in files.values() for name in listed]
    assert len(numbers) == len(set(numbers)) == 8
    assert max(numbers) <= last == 4 * len(servers.units)
    assert not servers.missing


def test_a_bucket_that_fails_half_way_leaves_the_files_from_before(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = Servers(Graph(store), tmp_path)
    first, second = (servers.worker(name, store) for name in "ab")
    servers.locks.begin_epoch(0, servers.units)
    trained = 0

    def fail(self: TableFiles, part: Any, table: Any) -> None:
        nonlocal trained
        trained += 1
        store_it(self, part, table)
        if trained == 4:  # one of two partitions is written
            raise OSError("the machine is gone")

    store_it = TableFiles.store
    with monkeypatch.context() as patched:
        patched.setattr(TableFiles, "store", fail)
        with pytest.raises(OSError, match="gone"):
            first.train_epoch(0)
    servers.locks.forget("a")
    servers.parameters.forget("a")
    told = second.train_epoch(0)
    finished, _, _ = servers.locks.outcome()
    assert sorted(unit.unit for unit in finished) == list(range(10))
    assert told["buckets"] < 10
    assert not servers.missing
    with pytest.raises(ClusterError, match="worker a was given up as lost"):
        first.train_epoch(0)


@pytest.mark.parametrize("kind", ["good", "of other files", "gone"])
def test_what_is_read_ahead_is_used_only_if_it_is_what_counts(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    config = dataclasses.replace(CONFIG, deterministic=True)
    begin_ahead = WorkerPartitions._begin_ahead
    files = {"of other files": {}, "gone": {"rows/node/none.1.npy": (8, "x")}}

    def begin(self: WorkerPartitions, ahead: Any) -> None:
        begin_ahead(self, ahead if kind == "good" else dict.fromkeys(ahead, files[kind]))

    monkeypatch.setattr(WorkerPartitions, "_begin_ahead", begin)
    told, rows = [], []
    for name in ("plain", "ahead"):
        own = dataclasses.replace(config, prefetch=name == "ahead")
        servers = Servers(Graph(store), tmp_path / name, own)
        worker = servers.worker("a", store)
        for epoch in range(2):
            servers.locks.begin_epoch(epoch, servers.units)
            told.append(worker.train_epoch(epoch))
        turn = Turn(kind="train", files=servers.locks.outcome()[1])
        worker._partitions.load(list(turn.files), turn)
        rows += [worker._partitions.resident[part][0] for part in sorted(turn.files)]
    assert told[1]["partitions_ahead"] == 0
    used = {"good": told[1]["partitions_read"] // 2, "of other files": 0, "gone": 0}
    assert told[3]["partitions_ahead"] >= used[kind]
    assert told[3]["partitions_read"] == told[1]["partitions_read"]
    for one, other in zip(rows[:4], rows[4:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)  # operators travel as sums


def test_the_servers_hold_what_is_shared(store: Path, tmp_path: Path) -> None:
    servers = Servers(Graph(store), tmp_path)
    config = dataclasses.replace(CONFIG, seed=1)
    context = context_of(Graph(store), config, tmp_path)
    names = set(servers.parameters.tables())
    assert names == set(tables_of(TableFiles(context), {})) == {"relations/edge"}
