"""The loop of embeddings on a cluster: epochs, what follows them, checkpoints."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

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
from graphsys.distributed.profile_events import tell_trainers
from graphsys.distributed.run_files import RunFiles
from graphsys.embedding import run as runs
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.schedule import BucketSchedule, BucketTask, Part
from graphsys.embedding.rows.table_files import Floats, TableFiles
from graphsys.embedding.training.hook import Hook
from graphsys.embedding.training.trainer import explained_full_disk
from graphsys.embedding.training_log import TrainingLog

SUMMED = ("bytes_read", "bytes_written")
LONGEST = ("io_seconds", "compute_seconds", "waiting_seconds")


class ClusterTrainer:
    """Carries a checkpoint to the end, as :class:`Trainer` does on one machine.

    Args:
        context: The training, with the checkpoint to go on from.
        hooks: Called after every epoch.
        log: The run's log.
        work: What workers are told.
        num_workers: How many workers.
        restarts: How often something was started again before.

    Attributes:
        restarts: How often something was started again so far.
        figures: What workers did since the last start of all.
    """

    def __init__(
        self,
        context: EmbeddingContext,
        hooks: Sequence[Hook],
        log: TrainingLog,
        *,
        work: EmbeddingWork,
        num_workers: int,
        restarts: int,
    ) -> None:
        self.context, self.hooks = context, hooks
        self.rates: dict[Part, Floats] = {}
        self.restarts = restarts
        self.figures: dict[str, Any] = {}
        self._log, self._num_workers = log, num_workers
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
        self._edges = sum(step.num_edges for step in context.steps)
        self._before = dict(state.metrics)
        self._crew: WorkerPool
        self._saved_s = self._clock_s = time.monotonic()
        self._saved = state.epoch, state.unit

    def run(self, progress: Progress) -> None:
        """Train until all epochs are done, or a hook ends it.

        Raises:
            ServerLostError: Begin again from the last checkpoint.
            StorageFullError: The disk is full, here or at a worker; that checkpoint stays.
        """
        state = self.context.state
        if state.is_complete:
            return
        self._travel.publish(state)
        parts = {part for step in self.context.steps for part in (step.src, step.dst)}
        files = {p: self._files.listed(p) for p in parts - self._always.keys()}
        # by the clock: a worker of a driver that died, and does not know it yet, goes on
        # for a moment and must not write under the same names
        serial = max(state.serial, time.time_ns() // 1_000_000)
        tables = tables_of(self._files, self._always)
        arguments = (
            self._work,
            self._num_workers,
            {p: f for p, f in files.items() if f},
            serial,
            tables,
            self.restarts,
        )
        with explained_full_disk(self.context.path), started(*arguments) as self._crew:
            if self._crew.exchanges is not None:
                size = self._crew.num_parameter_servers
                note(self._crew.exchanges.text(size))
            try:
                self._train(progress)
            finally:
                self.restarts = self._crew.restarts
            self._finish()
            self._tell()
        progress.close()

    def measure(self, step: BucketTask, rows: npt.NDArray[np.uint32]) -> float:
        """Do nothing: workers measure, where the partitions are."""
        raise NotImplementedError

    def checkpoint(self) -> None:
        """Make all units that were given back durable, with the parameters of now.

        Raises:
            StorageFullError: The disk is full; the checkpoint before stays.
            TrainingFailedError: A parameter is not finite; the checkpoint before stays.
        """
        self._save(self._crew.hold())

    def _save(self, held: Outcome) -> None:
        files, state = self._files, self.context.state
        finished, listed, serial = held
        self._count(finished)
        files.number_above(serial)
        for part, names in listed.items():
            self._travel.bring(names)
            files.adopt(part, names)
        tables = self._crew.tables()
        for name, own in tables_of(files, self._always).items():
            own[...] = tables[name]
        for part, table in self._always.items():
            files.store(part, table)
        files.flush(state)
        self._measure(state.metrics)
        self.commit()
        self._travel.publish(state)
        files.committed()
        self._crew.committed()
        self._saved_s, self._saved = time.monotonic(), (state.epoch, state.unit)

    def commit(self) -> None:
        """Write ``run.json`` anew, after a change of the state alone."""
        for hook in self.hooks:
            hook.before_commit(self)
        runs.commit(self.context.path, self.context.state)

    def _train(self, progress: Progress) -> None:
        state, epochs = self.context.state, self.context.config.epochs
        if state.unit == 0 and state.closed_epochs < state.epoch:
            self._close_epoch()  # where a run was interrupted
        while state.epoch < epochs and not state.is_stopped:
            self._train_epoch(progress)
            if self._is_due() or state.epoch == epochs:
                self.checkpoint()
            self._close_epoch()

    def _is_due(self) -> bool:
        since = time.monotonic() - self._saved_s
        return since >= self.context.config.checkpoint_seconds

    def _train_epoch(self, progress: Progress) -> None:
        state, told = self.context.state, 0
        progress.stage(f"epoch {state.epoch + 1}", self._edges, "edges")

        def tell(num_edges: int, loss: float) -> None:
            nonlocal told
            if num_edges > told:
                progress.advance(num_edges - told, loss=loss / num_edges)
                told = num_edges
            if self._is_due():
                self._save_within(len(units))

        units, self._done = self._units(state.epoch), set(range(state.unit))
        self._clock_s = time.monotonic()
        finished, _, _ = self._crew.train_epoch(state.epoch, units, range(state.unit), tell)
        self._count(finished)
        state.seconds += time.monotonic() - self._clock_s
        state.end_epoch()
        for hook in self.hooks:
            hook.after_unit(self)

    def _save_within(self, num_units: int) -> None:
        """Make a checkpoint in an epoch if there is anything new, and more to come."""
        held = self._crew.hold()
        done = len(self._done.union(unit.unit for unit in held[0]))
        if done < num_units and (self.context.state.epoch, done) != self._saved:
            self._save(held)

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
        state = self.context.state
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

    def _close_epoch(self) -> None:
        """Do what follows an epoch; a kill before the next commit does it again."""
        state = self.context.state
        for hook in self.hooks:
            state.is_stopped |= hook.after_epoch(self)
        state.closed_epochs = state.epoch
        if state.is_stopped:
            self.checkpoint()

    def _finish(self) -> None:
        for hook in self.hooks:
            hook.after_training(self)
        self.context.state.is_complete = True
        self.commit()
        runs.remove_superseded(self.context.path, self.context.state)

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
        tell_trainers("embedding", self._crew.parts, facts, self.restarts)

    def _measure(self, metrics: dict[str, Any]) -> None:
        """Note what workers did: what one machine's run has in it, the rest apart."""
        found = self._crew.figures()
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
        ) | {"parameter_servers": self._crew.num_parameter_servers * bool(served)}


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
