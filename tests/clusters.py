"""Workers of a cluster as threads of the test, without Ray."""

import queue
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from graphsys.core.errors import ClusterError
from graphsys.distributed.cluster import Cluster
from graphsys.distributed.embedding.bucket_locks import BucketLocks, EpochUnit
from graphsys.distributed.embedding.gloo import GlooGroup, open_meeting
from graphsys.distributed.embedding.parameter_server import ParameterServer, SplitServers
from graphsys.distributed.embedding.work import EmbeddingWork, by_exchange
from graphsys.distributed.embedding.worker import EmbeddingWorker
from graphsys.distributed.embedding.worker_pool import ServerLostError
from graphsys.distributed.group import RestartBudget
from graphsys.distributed.run import combined
from graphsys.distributed.run_files import Listed
from graphsys.distributed.transport.exchange import Payload
from graphsys.distributed.work import ProgramWork
from graphsys.distributed.worker import Work, Worker
from graphsys.embedding.data.schedule import Part
from graphsys.engine.execute.prepared import compile_program, table_of
from graphsys.engine.topology import Topology

_MOST_SUPERSTEPS = 5000  # what never ends is told from what does


class NearPeer:
    """A mailbox in this process, for workers that are threads of it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def send(self, number: int, sender: int, payload: Payload) -> None:
        """Put it in at once."""
        self._worker.deliver(number, sender, payload)


def run_in_threads(works: Sequence[Work]) -> list[dict[str, Any]]:
    """Run a worker for every entry as threads of this process: for a look without Ray.

    Args:
        works: What each runs; the same for all.

    Returns:
        What :meth:`Worker.run` returns, of each.
    """
    for work in works[:1]:  # a module is loaded by one thread
        if isinstance(work, ProgramWork):
            compile_program(work.program(), Topology.of(work.graph), work.max_supersteps)
    workers = [Worker() for _ in works]
    peers = [NearPeer(worker) for worker in workers]
    done: list[Any] = [None] * len(works)

    def run(rank: int) -> None:
        try:
            done[rank] = workers[rank].run(rank, peers, works[rank])
        except Exception as err:
            done[rank] = err

    threads = [
        threading.Thread(target=run, args=(k,), daemon=True) for k in range(len(works))
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        threads[0].join(0.02)
        if any(isinstance(found, Exception) for found in done):
            break
    for found in done:
        if isinstance(found, Exception):
            raise found
    return done


def run_by_workers(
    name: str, graph: Path | str, options: dict[str, Any], workers: int, **settings: Any
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return an algorithm's table, and what every worker told of the run."""
    work = ProgramWork(
        graph=str(graph),
        algorithm=name,
        parameters=options,
        threads=1,
        max_supersteps=_MOST_SUPERSTEPS,
        **settings,
    )
    parts = run_in_threads([work] * workers)
    topology = Topology.of(str(graph))
    plan, _, _ = compile_program(work.program(), topology)
    return table_of(plan, topology, combined(parts)), parts


class NearCrew:
    """Workers of embeddings as threads of the test, with the servers in its process.

    Attributes:
        fail_in: Epochs in which a server is lost, each once; shared by all crews.
    """

    fail_in: ClassVar[list[int]] = []

    def __init__(
        self,
        work: EmbeddingWork,
        num_workers: int,
        files: dict[Part, Listed],
        serial: int,
        tables: dict[str, Any],
        budget: RestartBudget,
    ) -> None:
        self.parts = list[Any]()
        served, self._summed = by_exchange(tables, work.config)
        self._locks = BucketLocks(files, serial)
        size = work.config.parameter_servers or 1
        parts = [served] if size == 1 else SplitServers.parts(served, size)
        servers = [self._caller(ParameterServer(part)) for part in parts]
        self._parameters = SplitServers.of(servers, served)
        self.num_parameter_servers, self.exchanges = size, None
        self._epoch = -1
        self._lock, self._told = threading.RLock(), list[dict[str, Any]]()
        self._handed: queue.Queue[tuple[int, float] | None] = queue.Queue()
        self._resumed = threading.Semaphore(0)
        self._failed: list[BaseException] = []
        names = [str(rank) for rank in range(num_workers)]
        for name in names:
            self._locks.join(name)
            self._parameters("join", name)
        locks = self._caller(self._locks)
        groups = gloo_groups(num_workers) if self._summed else [None] * num_workers
        self._workers = [
            EmbeddingWorker(name, work, locks, servers, group)
            for name, group in zip(names, groups, strict=True)
        ]

    def _caller(self, server: Any) -> Callable[..., Any]:
        # one call at a time, as of an actor; parameter servers are asked by other threads
        # while this one holds the lock server's
        lock = self._lock if server is self._locks else threading.RLock()

        def call(method: str, *arguments: Any, **named: Any) -> Any:
            with lock:
                if self._failed and method != "tables":  # a checkpoint's, by the driver
                    raise ClusterError("another worker failed")
                found = getattr(server, method)(*arguments, **named)
                if method == "turn" and arguments[-1] is not None:
                    self._handed.put(self._locks.progress())  # after every unit
                    self._resumed.acquire()  # others wait for the lock meanwhile
                return found

        return call

    def _train(self, worker: EmbeddingWorker, epoch: int) -> dict[str, Any]:
        try:
            return worker.train_epoch(epoch)
        except BaseException as err:
            self._failed.append(err)
            raise

    def train_epoch(
        self, epoch: int, units: Sequence[EpochUnit], done: Collection[int]
    ) -> Iterator[tuple[int, float]]:
        self._locks.begin_epoch(epoch, units, sorted(done))
        size, self._epoch = len(self._workers), epoch
        with ThreadPoolExecutor(size) as pool:
            futures = [pool.submit(self._train, each, epoch) for each in self._workers]
            for future in futures:
                future.add_done_callback(lambda _: self._handed.put(None))
            left = size
            while left:
                handed = self._handed.get()
                if handed is None:
                    left -= 1
                    continue
                try:
                    yield handed
                except GeneratorExit:
                    self._failed.append(ClusterError("the training was ended"))
                    raise
                finally:
                    self._resumed.release()
        if self._failed:
            raise self._failed[0]
        self._told = [future.result() for future in futures]
        if epoch in self.fail_in:
            self.fail_in.remove(epoch)
            raise ServerLostError("the lock server is gone")
        yield self._locks.progress()

    def outcome(self) -> Any:
        return self._locks.outcome()

    def hold(self) -> Any:
        return self._locks.hold()  # who trains waits, or has ended

    def committed(self) -> None:
        self._locks.committed()

    def tables(self) -> dict[str, Any]:
        served = {**self._summed, **self._parameters("tables")}
        if self._epoch < 0:
            return served
        return served | self._workers[0].summed.tables(self._epoch)

    def figures(self) -> list[dict[str, Any]]:
        return [{"rank": k} | told for k, told in enumerate(self._told)]


class NearShards:
    """Workers that answer for shares, in the process of the test."""

    def __init__(self, kind: type, arguments: Sequence[Any], size: int) -> None:
        self.size = size
        self._workers = [kind(rank, size, *arguments) for rank in range(size)]

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(worker, method)(*arguments) for worker in self._workers]

    def stream(self, method: str, questions: Any) -> Iterator[list[Any]]:
        for question in questions:
            yield self.ask_all(method, *question)


@contextmanager
def near_shards(
    cluster: Cluster, kind: type, arguments: Sequence[Any], most: Callable[[], int]
) -> Iterator[NearShards]:
    """Stand for ``asking.shards.started``; without a limit of local workers.

    A running cluster has two.
    """
    assert most() > 0
    yield NearShards(kind, arguments, cluster.local_workers or 2)


def gloo_groups(size: int, timeout_s: float = 30.0) -> list[GlooGroup]:
    """Return groups of workers that are threads of the test."""
    host = "127.0.0.1"
    store, meeting = open_meeting(size, host)
    with ThreadPoolExecutor(size) as pool:
        ranks = range(size)
        made = pool.map(lambda k: GlooGroup(k, size, meeting, host, timeout_s), ranks)
        groups = list(made)
    del store
    return groups


@contextmanager
def near_crew(*arguments: Any) -> Iterator[NearCrew]:
    """Stand for ``embedding.crew.started``."""
    yield NearCrew(*arguments)
