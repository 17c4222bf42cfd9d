"""One worker of embeddings: it asks for buckets, trains them, gives them back.

Rows travel by the run's folder, which all machines see: a worker reads the files of its
bucket's partitions, trains with the kernels of one machine, and writes new files before it
gives the bucket back. Operators, global vectors and the rows of types with one partition
travel by the parameter server; operators and global vectors by all-reduce if so set.
"""

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from graphsys.core.errors import ClusterError, CorruptStoreError, ObjectStoreError
from graphsys.core.events import count, span
from graphsys.core.progress import SILENT
from graphsys.distributed.embedding.all_reduce import ReduceGroup, SummedTables
from graphsys.distributed.embedding.bucket_locks import Finished, Turn
from graphsys.distributed.embedding.parameter_server import (
    Blocks,
    Call,
    Pulled,
    SharedTables,
    SplitServers,
)
from graphsys.distributed.embedding.slice_trainer import LogLines, UnitTrainer
from graphsys.distributed.embedding.work import (
    EmbeddingWork,
    by_exchange,
    context_of,
    one_partition_parts,
    tables_of,
)
from graphsys.distributed.profile_events import COMMUNICATION, EXCHANGE
from graphsys.distributed.run_files import Listed, RunFiles
from graphsys.embedding.blas import single_threaded_blas
from graphsys.embedding.data.schedule import BucketSchedule, BucketTask, Part
from graphsys.embedding.rows.table_files import Table, TableFiles
from graphsys.embedding.training.bucket_trainer import compile_kernels
from graphsys.embedding.training.edge_sets import choose_edges, settled
from graphsys.embedding.training.unit_log import UnitLog
from graphsys.storage.reader import GraphReader


class WorkerPartitions:
    """Reads partitions, ahead too, and writes them.

    Args:
        files: Where they come from and go to.
        travel: How the files come from other machines, and go there.
        always: Partitions that stay, whose changes travel by the parameter server.
        prefetch: Whether to read ahead, in a thread; it takes the room of a partition.

    Attributes:
        resident: The partitions in memory, but for the one read ahead.
        num_read: Partitions read for a unit so far, those read ahead included.
        num_ahead: Of them, those read ahead.
    """

    def __init__(
        self,
        files: TableFiles,
        travel: RunFiles,
        always: Collection[Part],
        *,
        prefetch: bool,
    ) -> None:
        self._files, self._travel, self._always = files, travel, set(always)
        self.resident: dict[Part, Table] = {
            part: self._brought(part, files.listed(part)) for part in always
        }
        self.num_read = self.num_ahead = 0
        self._versions: dict[Part, tuple[str, ...]] = {}
        self._lock = threading.Lock()  # of the files
        self._pool = ThreadPoolExecutor(1) if prefetch else None
        self._ahead: tuple[Part, tuple[str, ...], Future[Table | None]] | None = None

    def load(self, parts: Collection[Part], turn: Turn) -> None:
        """Have partitions in memory as the files say that the lock server names."""
        for part in self.resident.keys() - set(parts) - self._always:
            del self.resident[part], self._versions[part]
        for part in sorted(parts):
            listed = turn.files.get(part, {})
            version = tuple(sorted(listed))
            found = self._taken(part, version)
            with self._lock:
                self._files.adopt(part, listed)  # own ones too: they stay until given back
                if self._versions.get(part) == version:
                    continue
                self.num_read += 1
                self.num_ahead += found is not None
                self.resident[part] = found or self._brought(part, listed)
        self._begin_ahead(turn.ahead)

    def store(self, parts: Collection[Part], serial: int) -> dict[Part, Listed]:
        """Write partitions to new files, which have the numbers after one; return those.

        Just these: numbers further on are other workers', who write the same partitions.
        """
        with self._lock:
            self._files.number_from(serial)
            for part in sorted(parts):
                self._files.store(part, self.resident[part])
                self._versions[part] = tuple(sorted(self._files.listed(part)))
            stored: dict[Part, Listed] = {p: self._files.listed(p) for p in parts}
        for listed in stored.values():
            self._travel.send(listed)
            self._travel.let_go(listed)
        return stored

    def _brought(self, part: Part, listed: Listed) -> Table:
        """Read a partition whose files the tables have adopted."""
        self._travel.bring(listed)
        table = self._files.load(part)
        self._travel.let_go(listed)
        return table

    def _begin_ahead(self, ahead: Mapping[Part, Listed]) -> None:
        """Read a partition ahead, unless it was; drop another one."""
        if self._pool is None:
            return
        wanted = {part: tuple(sorted(listed)) for part, listed in ahead.items()}
        if self._ahead is not None and wanted.get(self._ahead[0]) == self._ahead[1]:
            return
        self._ahead = None
        for part, version in wanted.items():
            future = self._pool.submit(self._read, part, ahead[part])
            self._ahead = part, version, future

    def _read(self, part: Part, listed: Listed) -> Table | None:
        """Read a partition; None where its files are gone, being superseded."""
        try:
            self._travel.bring(listed)  # takes longest, and needs no tables
            with self._lock:
                self._files.adopt(part, listed)
                return self._brought(part, listed)
        except (CorruptStoreError, ObjectStoreError, OSError):
            return None

    def _taken(self, part: Part, version: tuple[str, ...]) -> Table | None:
        """Return what was read ahead of those files, if it was."""
        if self._ahead is None or self._ahead[0] != part:
            return None
        _, known, future = self._ahead
        self._ahead = None
        table = future.result()
        return table if known == version else None


PAUSE_S = 0.02
"""How long a worker sleeps before it asks again for what was not there."""
WAIT_S = 6 * 3600.0
"""How long it waits for others before it gives up: their bucket may be large."""


@dataclass(slots=True)
class WorkerFigures:
    """What a worker did, seconds and bytes so far.

    ``io_seconds`` is the time that training waited for reads and writes, and
    ``partitions_ahead`` of ``partitions_read`` those read while others were trained.
    ``communication_seconds`` is the time in calls of the lock and parameter servers and in
    rounds of the all-reduce, ``waiting_seconds`` the part of it in which there was nothing
    to do. ``pushes`` and what they missed are those of the all-reduce.
    """

    buckets: int = 0
    edges: int = 0
    compute_seconds: float = 0.0
    io_seconds: float = 0.0
    communication_seconds: float = 0.0
    waiting_seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    parameter_bytes: int = 0
    allreduce_bytes: int = 0
    allreduce_rounds: int = 0
    pushes: int = 0
    missed_pushes: int = 0
    staleness_max: int = 0
    partitions_read: int = 0
    partitions_ahead: int = 0


class EmbeddingWorker:
    """Trains what the lock server gives it.

    Args:
        name: Its name, which no worker had before.
        work: What to train.
        locks: Calls methods of the :class:`BucketLocks`.
        parameters: Call methods of each :class:`ParameterServer`.
        group: The workers, where parameters are all-reduced.
    """

    def __init__(
        self,
        name: str,
        work: EmbeddingWork,
        locks: Call,
        parameters: Sequence[Call],
        group: ReduceGroup | None = None,
    ) -> None:
        self.name, self._locks = name, locks
        self.figures = WorkerFigures()
        self._graph = GraphReader(work.graph)
        self._log = LogLines()
        self._travel = RunFiles.of_worker(
            work.path, work.through, left_out=("rows/", "state/")
        )
        context = context_of(self._graph, work, self._travel.path)
        self.context = settled(context)
        steps, layout = self.context.steps, self.context.layout
        partitions = {t: self._graph.num_partitions(t) for t in self._graph.node_types}
        self._schedule = BucketSchedule(steps, partitions, layout, work.config.seed)
        self._schedule.put_first(*work.first_units)
        self._files = TableFiles(self.context)
        self._always = one_partition_parts(self.context)
        self._partitions = WorkerPartitions(
            self._files, self._travel, self._always, prefetch=work.config.prefetch
        )
        resident = self._partitions.resident
        tables = tables_of(self._files, {p: resident[p] for p in self._always})
        served, summed = by_exchange(tables, work.config)
        self._parameters = SplitServers.of(parameters, served)
        self._shared = SharedTables(served, self._exchange)
        self.summed = SummedTables(summed, group)
        with single_threaded_blas():
            compile_kernels(self.context)
        self._trainer = UnitTrainer(
            self.context,
            resident,
            self._files.operators,
            self._files.extras,
            partial(choose_edges, self.context),
            self._synchronize,
        )
        self._unit_log = UnitLog(self.context, self._log, self._trainer.measure)
        self._number = self._exchanges = self._epoch = 0

    def train_epoch(self, epoch: int) -> dict[str, Any]:
        """Train units of an epoch until all workers together have trained all.

        Returns:
            The :class:`WorkerFigures` so far, by name.

        Raises:
            ClusterError: A service is lost, or others take too long.
            TrainingFailedError: A loss is not a number.
        """
        self._epoch, units = epoch, self._schedule.epoch(epoch)
        finished: Finished | None = None
        self.summed.begin()
        try:
            with single_threaded_blas(), span("epoch", epoch=epoch):
                while (turn := self._next(finished)).kind == "train":
                    finished = self._train(epoch, turn, units[turn.unit])
                with self._communicating():
                    self.summed.finish(epoch)
        except BaseException:
            self.summed.close()
            raise
        return {"worker": self.name} | self._counted()

    def _counted(self) -> dict[str, Any]:
        figures, summed = self.figures, self.summed
        figures.parameter_bytes = self._shared.sent_bytes
        figures.allreduce_bytes, figures.allreduce_rounds = summed.sent_bytes, summed.rounds
        figures.pushes, figures.missed_pushes = summed.pushes, summed.missed
        figures.staleness_max = summed.most_missed
        figures.bytes_read = self._files.bytes_read
        figures.bytes_written = self._files.bytes_written
        figures.partitions_read = self._partitions.num_read
        figures.partitions_ahead = self._partitions.num_ahead
        return {name: getattr(figures, name) for name in WorkerFigures.__slots__}

    def _next(self, finished: Finished | None) -> Turn:
        """Give back what was trained; return when there is more, or nothing."""
        asked = time.monotonic()
        with span(EXCHANGE):
            turn = self._turn(finished)
            while turn.kind == "wait":
                self._pause(asked)
                turn = self._turn(None)
        if turn.kind == "lost":
            raise ClusterError(f"worker {self.name} was given up as lost")
        return turn

    def _turn(self, finished: Finished | None) -> Turn:
        self._number += 1
        began = time.monotonic()
        turn: Turn = self._locks("turn", self.name, self._number, self._epoch, finished)
        self.figures.communication_seconds += time.monotonic() - began
        self._travel.drop(turn.drop)
        return turn

    def _pause(self, since: float) -> None:
        if time.monotonic() - since > WAIT_S:
            raise ClusterError(
                f"worker {self.name} waited {WAIT_S:.0f} s for the others; look at their "
                "machines, then go on with --resume"
            )
        began = time.monotonic()
        time.sleep(PAUSE_S)
        waited = time.monotonic() - began
        self.figures.communication_seconds += waited
        self.figures.waiting_seconds += waited

    def _train(self, epoch: int, turn: Turn, unit: list[BucketTask]) -> Finished:
        """Train a unit; its new files are written, and nobody's yet."""
        parts = sorted({p for step in unit for p in (step.src, step.dst)} - self._always)
        began = time.monotonic()
        self._partitions.load(parts, turn)
        self.figures.io_seconds += time.monotonic() - began
        state, figures = self.context.state, self.figures
        state.unit, state.held_out = turn.unit, [0.0, 0.0]
        self._shared.exchange()
        self.summed.take(is_training=False)
        self._unit_log.begin(unit)
        self.summed.take(is_training=True)
        self._trainer.synchronized_s = time.monotonic()
        began, before_s = time.monotonic(), figures.communication_seconds
        trained = self._trainer.train(epoch, unit, SILENT)
        exchanged_s = figures.communication_seconds - before_s
        figures.compute_seconds += time.monotonic() - began - exchanged_s
        self.summed.take(is_training=False)
        self._shared.exchange(is_last=True)
        self._unit_log.end(epoch, turn.unit, trained)
        began = time.monotonic()
        files = self._partitions.store(parts, turn.serial)
        figures.io_seconds += time.monotonic() - began
        num_edges = sum(bucket.num_edges for bucket in trained)
        figures.buckets, figures.edges = figures.buckets + 1, figures.edges + num_edges
        loss = sum(float(bucket.losses.sum()) for bucket in trained)
        for bucket in trained:
            count("edges", bucket.num_edges, parts=(bucket.step.src, bucket.step.dst))
        return Finished(
            unit=turn.unit,
            num_edges=num_edges,
            loss=loss,
            files=files,
            held_out=(state.held_out[0], state.held_out[1]),
            lines=self._log.taken(),
        )

    def _synchronize(self) -> None:
        """Exchange parameters within a unit, in which no thread trains meanwhile."""
        with self._communicating():
            self.summed.exchange()
        self._shared.exchange()

    def _exchange(self, pushed: Mapping[str, Blocks], is_last: bool) -> Pulled:
        """Exchange with the parameter server, and wait for others that are behind."""
        self._exchanges += 1
        with self._communicating():
            pulled: Pulled = self._parameters(
                "exchange", self.name, self._exchanges, pushed, is_last=is_last
            )
        if not pulled.is_member:
            raise ClusterError(f"worker {self.name} was given up as lost")
        if pulled.is_ahead:
            with span(COMMUNICATION):
                self._let_others_catch_up()
        return pulled

    def _let_others_catch_up(self) -> None:
        was_training = self.summed.is_training
        self.summed.take(is_training=False)  # those behind may wait for a round
        began, is_ahead = time.monotonic(), True
        while is_ahead:
            self._pause(began)
            is_ahead = self._parameters("is_ahead", self.name)
        self.summed.take(is_training=was_training)

    @contextmanager
    def _communicating(self) -> Iterator[None]:
        began = time.monotonic()
        with span(COMMUNICATION):
            yield
        self.figures.communication_seconds += time.monotonic() - began
