"""Embeddings on a cluster: units that workers train, and checkpoints of them."""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from graphsys.core.caller_warnings import note
from graphsys.core.progress import Progress
from graphsys.distributed.embedding import all_reduce, parameter_server
from graphsys.distributed.embedding.bucket_locks import EpochUnit, Finished
from graphsys.distributed.embedding.work import (
    EmbeddingWork,
    by_exchange,
    one_partition_parts,
    tables_of,
)
from graphsys.distributed.embedding.worker_pool import Outcome, WorkerPool, started
from graphsys.distributed.group import RestartBudget
from graphsys.distributed.profile_events import tell_trainers
from graphsys.distributed.run_files import RunFiles
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.schedule import BucketSchedule, BucketTask
from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.training.trainer import EmbeddingLoop
from graphsys.embedding.training_log import TrainingLog
from graphsys.training.callbacks import Callback, Step

SUMMED = ("bytes_read", "bytes_written")
LONGEST = ("io_seconds", "compute_seconds", "waiting_seconds")


class ClusterTrainer(EmbeddingLoop):
    """Has units of buckets trained by workers; a step is what they gave back meanwhile.

    Args:
        context: The training, with the checkpoint to go on from.
        log: The run's log.
        work: What workers are told.
        num_workers: How many workers.
        budget: How often something may be started again.
        callbacks: Called here, where nothing is trained, while workers train.

    Attributes:
        figures: What workers did since the last start of all.
    """

    def __init__(
        self,
        context: EmbeddingContext,
        log: TrainingLog,
        *,
        work: EmbeddingWork,
        num_workers: int,
        budget: RestartBudget,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        super().__init__(context, callbacks, log)
        self._log: TrainingLog = log
        self._budget = budget
        self.figures: dict[str, Any] = {}
        self._num_workers = num_workers
        self._files = TableFiles(context)
        self._travel = RunFiles.of_driver(context.path, work.through)
        self._always = {
            p: self._files.load(p) for p in sorted(one_partition_parts(context))
        }
        partitions = {t: context.graph.num_partitions(t) for t in context.graph.node_types}
        self._schedule = BucketSchedule(
            context.steps, partitions, context.layout, context.config.seed
        )
        state = context.state
        self._schedule.put_first(state.epoch, state.first_units)
        self._work = replace(work, first_units=(state.epoch, tuple(state.first_units)))
        self._done: set[int] = set()  # units of the epoch that are counted
        self._num_units = 0  # of the epoch that is trained
        self._edges = sum(step.num_edges for step in context.steps)
        self._before = dict(state.metrics)
        self._pool: WorkerPool
        self._clock_s = time.monotonic()
        self._held: Outcome | None = None  # what a checkpoint is to have

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have servers and workers running, from the files of the last checkpoint.

        Raises:
            ServerLostError: Begin again from the last checkpoint.
        """
        state = self.state
        self._travel.publish(state)
        parts = {part for step in self.context.steps for part in (step.src, step.dst)}
        files = {p: self._files.listed(p) for p in parts - self._always.keys()}
        # by the clock: a worker of a driver that died, and does not know it yet, goes on
        # for a moment and must not write under the same names
        serial = max(state.serial, time.time_ns() // 1_000_000)
        arguments = (
            self._work,
            self._num_workers,
            {p: f for p, f in files.items() if f},
            serial,
            tables_of(self._files, self._always),
            self._budget,
        )
        with started(*arguments) as self._pool:
            if self._pool.exchanges is not None:
                size = self._pool.num_parameter_servers
                note(self._pool.exchanges.text(size))
            yield
            self._tell()

    def train_steps(self, progress: Progress) -> Generator[Step]:
        """Have workers train the units of the current epoch that are left."""
        state, told, told_loss = self.state, 0, 0.0
        progress.stage(f"epoch {state.epoch + 1}", self._edges, "edges")
        units, self._done = self._units(state.epoch), set(range(state.unit))
        self._num_units = len(units)
        self._clock_s = time.monotonic()
        for num_edges, loss in self._pool.train_epoch(state.epoch, units, self._done):
            if num_edges > told:
                progress.advance(num_edges - told, loss=loss / num_edges)
            yield self._step(num_edges - told, loss - told_loss, is_last=False)
            told, told_loss = num_edges, loss
        self._count(self._pool.outcome()[0])
        state.seconds += time.monotonic() - self._clock_s
        self._num_units = 0
        yield self._step(0, 0.0, is_last=True)  # all were told

    def is_stopping(self, *, within_epoch: bool = False) -> bool:
        """Return whether a callback wants an end: after the epoch, which workers share."""
        return super().is_stopping() and not within_epoch

    def pause(self) -> None:
        """Make a checkpoint in an epoch if there is anything new, and more to come."""
        held = self._pool.hold()
        done = len(self._done.union(unit.unit for unit in held[0]))
        if done < self._num_units and (self.state.epoch, done) != self._saved:
            self._held = held
            self.checkpoint()

    def save(self) -> None:
        """Write all units that were given back, with the parameters of now.

        Raises:
            TrainingFailedError: A parameter is not finite; the checkpoint before stays.
        """
        files, state = self._files, self.state
        finished, listed, serial = self._held or self._pool.hold()
        self._held = None
        self._count(finished)
        files.number_above(serial)
        for part, names in listed.items():
            self._travel.bring(names)
            files.adopt(part, names)
        tables = self._pool.tables()
        for name, own in tables_of(files, self._always).items():
            own[...] = tables[name]
        for part, table in self._always.items():
            files.store(part, table)
        files.flush(state)
        self._measure(state.metrics)
        self.commit()
        self._travel.publish(state)
        files.committed()
        self._pool.committed()

    def _step(self, num_edges: int, loss: float, *, is_last: bool) -> Step:
        return Step(
            number=len(self._done),
            num_edges=num_edges,
            loss=loss / max(num_edges, 1),
            is_last=is_last,
        )

    def _units(self, epoch: int) -> list[EpochUnit]:
        units, needs = self._schedule.epoch(epoch), self._schedule.needs(epoch)
        return [
            EpochUnit(
                needs=need, phase=unit[0].phase, has_shared=all(map(self._is_shared, unit))
            )
            for unit, need in zip(units, needs, strict=True)
        ]

    def _is_shared(self, step: BucketTask) -> bool:
        """Return whether all workers train rows of one end of a bucket."""
        return not self._always.keys().isdisjoint((step.src, step.dst))

    def _count(self, finished: Sequence[Finished]) -> None:
        """Count what was trained and is not counted, and write its lines in the log."""
        state = self.state
        new = [unit for unit in finished if unit.unit not in self._done]
        if not new:
            return
        for unit in new:
            state.count(unit.num_edges, unit.loss)
            state.held_out[0] += unit.held_out[0]
            state.held_out[1] += unit.held_out[1]
            for event, facts in unit.lines:
                self._log.write(event, **facts)
        self._done.update(unit.unit for unit in new)
        places = self._schedule.places(state.epoch)
        state.unit = len(self._done)
        first = sorted(places[unit] for unit in self._done)
        state.first_units = first if first != list(range(len(first))) else []
        now = time.monotonic()
        state.seconds += now - self._clock_s
        self._clock_s = now

    def _tell(self) -> None:
        """Tell who profiles of the workers."""
        facts = [
            {
                "rank": each["rank"],
                "units": each["buckets"],
                "sent_bytes": each["parameter_bytes"],
                "read_bytes": each["bytes_read"],
                "written_bytes": each["bytes_written"],
            }
            for each in self.figures.get("per_worker", ())
        ]
        tell_trainers("embedding", self._pool.parts, facts, self._budget.used)

    def _measure(self, metrics: dict[str, Any]) -> None:
        """Note what workers did: what one machine's run has in it, the rest apart."""
        found = self._pool.figures()
        if not found:
            return
        for name in SUMMED:
            metrics[name] = self._before.get(name, 0) + sum(each[name] for each in found)
        for name in LONGEST:
            metrics[name] = self._before.get(name, 0) + max(each[name] for each in found)
        tables = tables_of(self._files, self._always)
        served, summed = by_exchange(tables, self.context.config)
        self.figures = cluster_figures(
            found, self._num_workers, is_served=bool(served), is_summed=bool(summed)
        ) | {"parameter_servers": self._pool.num_parameter_servers * bool(served)}


def cluster_figures(
    found: Sequence[Mapping[str, Any]], workers: int, *, is_served: bool, is_summed: bool
) -> dict[str, Any]:
    """Return what a report tells of the workers together.

    Args:
        found: What each did.
        workers: How many there are.
        is_served: Whether there are parameters at the server.
        is_summed: Whether there are all-reduced ones.

    Returns:
        ``world_size``; ``parameter_bytes``, to and from the parameter server;
        ``allreduce_bytes``, that left workers; ``communication_seconds``, the longest;
        ``staleness_mean`` and ``staleness_max``, the pushes of others that a worker had not
        seen at its own, and ``staleness_bound``, which no worker exceeds;
        ``load_imbalance``, the longest time of training, reading and writing over the mean;
        ``partitions_read`` for a bucket, and of them ``partitions_ahead``, while others
        were trained; ``per_worker``.
    """
    busy = [each["compute_seconds"] + each["io_seconds"] for each in found]
    pushes = sum(each["pushes"] for each in found)
    missed = sum(each["missed_pushes"] for each in found)
    return {
        "world_size": workers,
        "parameter_bytes": sum(each["parameter_bytes"] for each in found),
        "allreduce_bytes": sum(each["allreduce_bytes"] for each in found),
        "communication_seconds": max(each["communication_seconds"] for each in found),
        "staleness_mean": missed / pushes if pushes else 0.0,
        "staleness_max": max(each["staleness_max"] for each in found),
        "staleness_bound": max(
            parameter_server.staleness_bound(workers) * is_served,
            all_reduce.staleness_bound(workers) * is_summed,
        ),
        "load_imbalance": max(busy) * len(busy) / (sum(busy) or 1.0),
        "partitions_read": sum(each["partitions_read"] for each in found),
        "partitions_ahead": sum(each["partitions_ahead"] for each in found),
        "per_worker": list(found),
    }
