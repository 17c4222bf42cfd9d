"""The processes of a training of embeddings: servers and workers, watched.

A lost worker is replaced and its bucket trained again; where a server is lost, or one of
those that all-reduce, or workers again and again, all end, and whoever started them begins
again from the last checkpoint.
"""

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from graphsys.core.errors import ClusterError, WorkerLostError
from graphsys.distributed import ray
from graphsys.distributed.embedding.bucket_locks import BucketLocks, EpochUnit, Finished
from graphsys.distributed.embedding.gloo import GlooGroup, MeetingPlace, open_meeting
from graphsys.distributed.embedding.parameter_server import (
    LEAST_BYTES,
    Call,
    ExchangeModel,
    Floats,
    ParameterServer,
    SplitServers,
)
from graphsys.distributed.embedding.work import EmbeddingWork, by_exchange
from graphsys.distributed.embedding.worker import EmbeddingWorker
from graphsys.distributed.group import START_S, WATCH_S, RestartBudget, WorkerGroup
from graphsys.distributed.profile_events import recorded
from graphsys.distributed.run_files import Listed
from graphsys.embedding.data.schedule import Part

_LATE_S = 10.0
"""How long workers that are not done are waited for, once the epoch is over."""
CALL_S = 60.0
"""How long an answer of a server is waited for before the call is made again."""
CALLS = 3

Outcome = tuple[list[Finished], dict[Part, Listed], int]


class ServerLostError(ClusterError):
    """What is to be begun again from the last checkpoint."""


class RemoteEmbeddingWorker:
    """A worker in a process of its own, made ready by its first call."""

    def __init__(
        self, name: str, work: EmbeddingWork, locks: Any, parameters: Sequence[Any]
    ) -> None:
        self._made_with = name, work, caller(locks), [*map(caller, parameters)]
        self._worker: EmbeddingWorker | None = None
        self._is_made = threading.Event()
        self._group: GlooGroup | None = None
        self._store: Any = None

    def ready(self) -> None:
        """Return when the process is there."""

    def open_meeting(self, size: int) -> MeetingPlace:
        """Have all workers find each other here; return where."""
        self._store, address = open_meeting(size, _address())
        return address

    def join(self, rank: int, size: int, meeting: MeetingPlace) -> None:
        """Join all workers, to all-reduce parameters."""
        self._group = GlooGroup(rank, size, meeting, _address())

    def tables(self, epoch: int) -> dict[str, Floats]:
        """Return what is all-reduced; see :meth:`SummedTables.tables`."""
        self._is_made.wait()
        assert self._worker is not None
        return self._worker.summed.tables(epoch)

    def train_epoch(self, epoch: int) -> dict[str, Any]:
        """Train; see :meth:`EmbeddingWorker.train_epoch`."""
        if self._worker is None:
            self._worker = EmbeddingWorker(*self._made_with, self._group)
            self._is_made.set()
        train = partial(self._worker.train_epoch, epoch)
        return recorded(train) if self._made_with[1].is_profiled else train()


def _address() -> str:
    """Return this machine's address; one's own where the cluster has no other machine."""
    return "127.0.0.1" if ray.is_alone() else ray.node_address()


def caller(actor: Any, *, aside: bool = False) -> Call:
    """Return what calls the methods of an actor, again where no answer comes.

    Whatever is called may come twice: it carries its number, or changes nothing.

    Args:
        actor: The actor's handle.
        aside: Whether it answers while it works.
    """

    def call(method: str, *arguments: Any, **named: Any) -> Any:
        for _ in range(CALLS):
            answer = ray.call(actor, method, *arguments, aside=aside, **named)
            try:
                return ray.result(answer, CALL_S)
            except TimeoutError:
                continue
            except WorkerLostError as err:
                raise ServerLostError(str(err)) from err
        raise ServerLostError(
            f"a server of the training did not answer for {CALLS * CALL_S:.0f} s; look at "
            "its machine, then go on with --resume"
        )

    return call


class WorkerPool:
    """The servers and the workers.

    Args:
        work: What to train.
        num_workers: How many workers.
        files: The files of every partition that has some.
        serial: The last number that was given to a file.
        tables: What the parameter server holds, or workers all-reduce.
        budget: How often something may be started again.

    Attributes:
        parts: Ranks and what they recorded, where they are profiled.
        exchanges: What was measured to choose the number of parameter servers, if it was.
    """

    def __init__(
        self,
        work: EmbeddingWork,
        num_workers: int,
        files: Mapping[Part, Listed],
        serial: int,
        tables: Mapping[str, Floats],
        budget: RestartBudget,
    ) -> None:
        self._budget = budget
        self.parts: list[tuple[int, dict[str, Any]]] = []
        self._work, self._num_started, self._epoch = work, 0, -1
        self._num_workers = num_workers
        served, self._summed = by_exchange(tables, work.config)
        self._lock_server = ray.start(BucketLocks, files, serial, processors=0)
        self._locks = caller(self._lock_server)
        self.exchanges: ExchangeModel | None = None
        size = work.config.parameter_servers or self._chosen(served)
        self._parameter_servers = _servers(served, size)
        self._parameters = SplitServers.of([*map(caller, self._parameter_servers)], served)
        self._names = [""] * num_workers
        self._group = WorkerGroup(RemoteEmbeddingWorker, num_workers, self._made_with)
        self._running: dict[Any, tuple[int, int]] = {}  # ranks and epochs
        self._told: dict[int, dict[str, Any]] = {}
        try:
            self._group.begin("ready")
            if self._summed:
                self._join()
        except WorkerLostError as err:
            raise ServerLostError(str(err)) from err

    def train_epoch(
        self, epoch: int, units: Sequence[EpochUnit], done: Collection[int]
    ) -> Iterator[tuple[int, float]]:
        """Have all units of an epoch trained.

        Args:
            epoch: Epochs completed.
            units: The units.
            done: Numbers of those trained before.

        Yields:
            Now and then the edges trained so far, and their summed loss.

        Raises:
            ServerLostError: Begin again from the last checkpoint.
            ClusterError: Workers are lost again and again.
        """
        self._epoch = epoch
        self._locks("begin_epoch", epoch, units, sorted(done))
        busy = {rank for rank, _ in self._running.values()}
        for rank in range(self._num_workers):
            if rank not in busy:
                self._send(rank, epoch)
        over_s: float | None = None
        while self._running and (over_s is None or time.monotonic() - over_s < _LATE_S):
            ready, _ = ray.wait(list(self._running), WATCH_S)
            for reference in ready:
                if self._returned(reference, epoch):
                    over_s = over_s or time.monotonic()
            num_edges, loss = self._locks("progress")
            yield num_edges, loss

    def outcome(self) -> Outcome:
        """Return what was finished, the files of all partitions, and the last number."""
        found: Outcome = self._locks("outcome")
        return found

    def hold(self) -> Outcome:
        """Return what is finished, all files, the last number; see BucketLocks.hold."""
        found: Outcome = self._locks("hold")
        return found

    def tables(self) -> dict[str, Floats]:
        """Return what the parameter server holds, and what workers all-reduce."""
        found: dict[str, Floats] = {**self._summed, **self._parameters("tables")}
        if self._summed and self._epoch >= 0:
            first = caller(self._group.workers[0], aside=True)
            found |= first("tables", self._epoch)
        return found

    def committed(self) -> None:
        """Have the files of the last :meth:`hold` kept until the next checkpoint."""
        self._locks("committed")

    def figures(self) -> list[dict[str, Any]]:
        """Return what every worker did, by rank, with how stale its parameters were."""
        missed = self._parameters("staleness")
        found = []
        for rank, told in sorted(self._told.items()):
            pushes, total, most = missed.get(told["worker"], (0, 0, 0))
            found.append(
                {"rank": rank}
                | {name: value for name, value in told.items() if name != "worker"}
                | {
                    "pushes": told["pushes"] + pushes,
                    "missed_pushes": told["missed_pushes"] + total,
                    "staleness_max": max(told["staleness_max"], most),
                }
            )
        return found

    @property
    def num_parameter_servers(self) -> int:
        """How many servers share the parameters."""
        return len(self._parameter_servers)

    def end(self) -> None:
        """End all processes."""
        ray.end([*self._group.workers, self._lock_server, *self._parameter_servers])

    def _chosen(self, tables: Mapping[str, Floats]) -> int:
        """Return how many servers are to share these tables: one, if they are small."""
        if sum(table.nbytes for table in tables.values()) < LEAST_BYTES:
            return 1
        self.exchanges = exchange_model(tables, self._num_workers)
        return self.exchanges.best(max(self._num_workers, *self.exchanges.measured))

    def _returned(self, reference: Any, epoch: int) -> bool:
        """Take what a worker tells at its end; return whether the epoch is over."""
        rank, asked = self._running.pop(reference)
        try:
            told = ray.result(reference)
        except ServerLostError:
            raise
        except WorkerLostError as err:
            self._replace(rank, err)
            self._send(rank, epoch)
            return False
        except ClusterError as err:
            raise ServerLostError(str(err)) from err
        if self._work.is_profiled:
            names = ("events", "clock_ns", "elapsed_s", "host")
            self.parts.append((rank, {name: told.pop(name) for name in names}))
        self._told[rank] = told
        if asked != epoch:  # it was late for the one before
            self._send(rank, epoch)
        return asked == epoch

    def _join(self) -> None:
        """Have the workers all-reduce."""
        workers = self._group.workers
        size = len(workers)
        meeting = ray.result(ray.call(workers[0], "open_meeting", size), START_S)
        joining = [
            ray.call(each, "join", rank, size, meeting) for rank, each in enumerate(workers)
        ]
        ray.result(joining, START_S)

    def _replace(self, rank: int, reason: WorkerLostError) -> None:
        if self._summed:
            raise ServerLostError(str(reason))  # the others cannot go on without it
        self._budget.take(reason)
        self._locks("forget", self._names[rank])
        self._parameters("forget", self._names[rank])
        self._group.replace(rank)

    def _made_with(self, rank: int) -> Sequence[Any]:
        """Have a new worker known by the servers; return what it is made with."""
        self._num_started += 1
        name = self._names[rank] = f"{rank}.{self._num_started}"
        self._locks("join", name)
        self._parameters("join", name)
        return name, self._work, self._lock_server, self._parameter_servers

    def _send(self, rank: int, epoch: int) -> None:
        answer = ray.call(self._group.workers[rank], "train_epoch", epoch)
        self._running[answer] = rank, epoch


def exchange_model(tables: Mapping[str, Floats], workers: int) -> ExchangeModel:
    """Time exchanges with servers of their own, which end with it.

    Args:
        tables: What they hold, float32, by name.
        workers: How many exchange at once.
    """
    tried: list[Any] = []

    def start(size: int) -> Call:
        servers = _servers(tables, size)
        tried.extend(servers)
        return SplitServers.of([*map(caller, servers)], tables)

    try:
        return ExchangeModel.timed(start, tables, workers)
    finally:
        ray.end(tried)


def _servers(tables: Mapping[str, Floats], size: int) -> list[Any]:
    """Start so many parameter servers, with a part of the tables each."""
    parts = [tables] if size == 1 else SplitServers.parts(tables, size)
    return [ray.start(ParameterServer, part, processors=0) for part in parts]


@contextmanager
def started(*arguments: Any) -> Iterator[WorkerPool]:
    """Start a :class:`WorkerPool`, and end it with the context."""
    pool = WorkerPool(*arguments)
    try:
        yield pool
    finally:
        pool.end()
