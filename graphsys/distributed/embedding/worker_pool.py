"""The processes of a training of embeddings: servers and workers, watched.

A lost worker is replaced and its bucket trained again; where a server is lost, or one of
those that all-reduce, or workers again and again, all end, and whoever started them begins
again from the last checkpoint.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from graphsys.core.deps import require
from graphsys.core.errors import ClusterError
from graphsys.distributed.embedding.bucket_locks import BucketLocks, EpochUnit, Finished
from graphsys.distributed.embedding.parameter_server import Floats, ParameterServer
from graphsys.distributed.embedding.remote_worker import (
    RemoteEmbeddingWorker,
    ServerLostError,
    caller,
)
from graphsys.distributed.embedding.split_servers import (
    LEAST_BYTES,
    Call,
    ExchangeModel,
    SplitServers,
)
from graphsys.distributed.embedding.work import EmbeddingWork, by_exchange
from graphsys.distributed.run_files import Listed
from graphsys.distributed.watching import MAX_RESTARTS
from graphsys.embedding.data.schedule import Part

_WATCH_S = 0.5
_START_S = 120.0
_LATE_S = 10.0
"""How long workers that are not done are waited for, once the epoch is over."""

_ASIDE = "aside"
"""The group of calls that a worker answers while it trains."""

_SERVICE: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0}

Outcome = tuple[list[Finished], dict[Part, Listed], int]


@dataclass(slots=True)
class _Member:
    rank: int
    name: str
    actor: Any


class WorkerPool:
    """The servers and the workers.

    Args:
        work: What to train.
        num_workers: How many workers.
        files: The files of every partition that has some.
        serial: The last number that was given to a file.
        tables: What the parameter server holds, or workers all-reduce.
        restarts: How often something was started again before.

    Attributes:
        restarts: How often something was started again so far.
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
        restarts: int,
    ) -> None:
        ray = require("ray", extra="ray")
        self.restarts = restarts
        self.parts: list[tuple[int, dict[str, Any]]] = []
        self._work, self._num_started, self._epoch = work, 0, -1
        self._num_workers = num_workers
        served, self._summed = by_exchange(tables, work.config)
        self._lock_server = ray.remote(**_SERVICE)(BucketLocks).remote(files, serial)
        self._locks = caller(self._lock_server)
        self.exchanges: ExchangeModel | None = None
        size = work.config.parameter_servers or self._chosen(served)
        self._parameter_servers = _servers(served, size)
        self._parameters = SplitServers.of([*map(caller, self._parameter_servers)], served)
        self._members = [self._start(rank) for rank in range(num_workers)]
        self._running: dict[Any, tuple[_Member, int]] = {}
        self._told: dict[int, dict[str, Any]] = {}
        try:
            ray.get([m.actor.ready.remote() for m in self._members], timeout=_START_S)
            if self._summed:
                self._join(ray)
        except ray.exceptions.GetTimeoutError as err:
            raise ClusterError(
                f"no worker began within {_START_S:.0f} s; look whether the cluster has "
                f"{num_workers} free processors (ray status)"
            ) from err
        except ray.exceptions.RayActorError as err:
            raise ServerLostError(str(err).splitlines()[0]) from err

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
        ray = require("ray", extra="ray")
        self._epoch = epoch
        self._locks("begin_epoch", epoch, units, sorted(done))
        busy = {member.name for member, _ in self._running.values()}
        for member in self._members:
            if member.name not in busy:
                self._send(member, epoch)
        over_s: float | None = None
        while self._running and (over_s is None or time.monotonic() - over_s < _LATE_S):
            ready, _ = ray.wait(list(self._running), num_returns=1, timeout=_WATCH_S)
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
            first = caller(self._members[0].actor, concurrency_group=_ASIDE)
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
        ray = require("ray", extra="ray")
        workers = [member.actor for member in self._members]
        for actor in (*workers, self._lock_server, *self._parameter_servers):
            ray.kill(actor)

    def _chosen(self, tables: Mapping[str, Floats]) -> int:
        """Return how many servers are to share these tables: one, if they are small."""
        if sum(table.nbytes for table in tables.values()) < LEAST_BYTES:
            return 1
        self.exchanges = exchange_model(tables, self._num_workers)
        return self.exchanges.best(max(self._num_workers, *self.exchanges.measured))

    def _returned(self, reference: Any, epoch: int) -> bool:
        """Take what a worker tells at its end; return whether the epoch is over."""
        ray = require("ray", extra="ray")
        member, asked = self._running.pop(reference)
        try:
            told = ray.get(reference)
        except ray.exceptions.RayTaskError as err:
            cause = getattr(err, "cause", None) or err
            if isinstance(cause, ClusterError):
                raise ServerLostError(str(cause)) from err
            raise cause from None
        except ray.exceptions.RayActorError as err:
            self._replace(member, str(err).splitlines()[0])
            self._send(self._members[member.rank], epoch)
            return False
        if self._work.is_profiled:
            names = ("events", "clock_ns", "elapsed_s", "host")
            self.parts.append((member.rank, {name: told.pop(name) for name in names}))
        self._told[member.rank] = told
        if asked != epoch:  # it was late for the one before
            self._send(member, epoch)
        return asked == epoch

    def _join(self, ray: Any) -> None:
        """Have the workers all-reduce."""
        size = len(self._members)
        meeting = ray.get(
            self._members[0].actor.open_meeting.remote(size), timeout=_START_S
        )
        joining = [m.actor.join.remote(m.rank, size, meeting) for m in self._members]
        ray.get(joining, timeout=_START_S)

    def _replace(self, lost: _Member, reason: str) -> None:
        if self._summed:
            raise ServerLostError(reason)  # the others cannot go on without it
        if self.restarts == MAX_RESTARTS:
            raise ClusterError(
                f"workers were lost {MAX_RESTARTS + 1} times, the last one said: {reason}; "
                "look at the memory and the system logs of the machines, then go on with "
                "--resume"
            )
        self.restarts += 1
        self._locks("forget", lost.name)
        self._parameters("forget", lost.name)
        self._members[lost.rank] = self._start(lost.rank)

    def _start(self, rank: int) -> _Member:
        ray = require("ray", extra="ray")
        self._num_started += 1
        name = f"{rank}.{self._num_started}"
        self._locks("join", name)
        self._parameters("join", name)
        kind = ray.remote(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
            concurrency_groups={_ASIDE: 1},
        )(RemoteEmbeddingWorker)
        servers = self._lock_server, self._parameter_servers
        return _Member(rank, name, kind.remote(name, self._work, *servers))

    def _send(self, member: _Member, epoch: int) -> None:
        self._running[member.actor.train_epoch.remote(epoch)] = member, epoch


def exchange_model(tables: Mapping[str, Floats], workers: int) -> ExchangeModel:
    """Time exchanges with servers of their own, which end with it.

    Args:
        tables: What they hold, float32, by name.
        workers: How many exchange at once.
    """
    ray = require("ray", extra="ray")
    tried: list[Any] = []

    def start(size: int) -> Call:
        servers = _servers(tables, size)
        tried.extend(servers)
        return SplitServers.of([*map(caller, servers)], tables)

    try:
        return ExchangeModel.timed(start, tables, workers)
    finally:
        for actor in tried:
            ray.kill(actor)


def _servers(tables: Mapping[str, Floats], size: int) -> list[Any]:
    """Start so many parameter servers, with a part of the tables each."""
    kind = require("ray", extra="ray").remote(**_SERVICE)(ParameterServer)
    parts = [tables] if size == 1 else SplitServers.parts(tables, size)
    return [kind.options(scheduling_strategy="SPREAD").remote(part) for part in parts]


@contextmanager
def started(*arguments: Any) -> Iterator[WorkerPool]:
    """Start a :class:`WorkerPool`, and end it with the context."""
    pool = WorkerPool(*arguments)
    try:
        yield pool
    finally:
        pool.end()
