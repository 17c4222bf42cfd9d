"""The loop of embeddings on a cluster: epochs, what follows them, checkpoints."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.progress import Progress
from graphsys.distributed.embedding.bucket_locks import EpochUnit, Finished
from graphsys.distributed.embedding.crew import Crew, started
from graphsys.distributed.embedding.parameter_server import staleness_bound
from graphsys.distributed.embedding.worker import (
    EmbeddingWork,
    one_partition_parts,
    tables_of,
)
from graphsys.distributed.seen import tell_trainers
from graphsys.embedding import run as runs
from graphsys.embedding.context import TrainingContext
from graphsys.embedding.data.schedule import BucketTask, Part, Schedule
from graphsys.embedding.rows.table_files import Floats, TableFiles
from graphsys.embedding.training.hook import Hook
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
        context: TrainingContext,
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
        self._log, self._work, self._num_workers = log, work, num_workers
        self._files = TableFiles(context)
        self._always = {
            p: self._files.load(p) for p in sorted(one_partition_parts(context))
        }
        partitions = {t: context.graph.num_partitions(t) for t in context.graph.node_types}
        self._schedule = Schedule(
            context.steps, partitions, context.layout, context.config.seed
        )
        self._edges = sum(step.num_edges for step in context.steps)
        self._before = dict(context.state.metrics)
        self._crew: Crew
        self._saved_s = time.monotonic()

    def run(self, progress: Progress) -> None:
        """Train until all epochs are done, or a hook ends it.

        Raises:
            ServerLostError: Begin again from the last checkpoint.
        """
        state = self.context.state
        if state.is_complete:
            return
        parts = {part for step in self.context.steps for part in (step.src, step.dst)}
        files = {p: self._files.listed(p) for p in parts - self._always.keys()}
        # by the clock: a worker of a driver that died, and does not know it yet, goes on
        # for a moment and must not write under the same names
        serial = max(state.serial, time.time_ns() // 1_000_000)
        tables = tables_of(self._files, self._always)
        arguments = (
            self._work, self._num_workers, {p: f for p, f in files.items() if f}, serial,
            tables, self.restarts,
        )  # fmt: skip
        with started(*arguments) as self._crew:
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
        """Make everything trained so far durable, between two epochs.

        Raises:
            StorageFullError: The disk is full; the checkpoint before stays.
            TrainingFailedError: A parameter is not finite; the checkpoint before stays.
        """
        files, state = self._files, self.context.state
        _, listed, serial = self._crew.outcome()
        files.number_above(serial)
        for part, names in listed.items():
            files.adopt(part, names)
        tables = self._crew.tables()
        for name, own in tables_of(files, self._always).items():
            own[...] = tables[name]
        for part, table in self._always.items():
            files.store(part, table)
        files.flush(state)
        self._measure(state.metrics)
        self.commit()
        files.committed()
        self._crew.committed()
        self._saved_s = time.monotonic()

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
            since = time.monotonic() - self._saved_s
            due = since >= self.context.config.checkpoint_seconds
            if due or state.epoch == epochs:
                self.checkpoint()
            self._close_epoch()

    def _train_epoch(self, progress: Progress) -> None:
        state, told = self.context.state, 0
        progress.stage(f"epoch {state.epoch + 1}", self._edges, "edges")

        def tell(num_edges: int, loss: float) -> None:
            nonlocal told
            if num_edges > told:
                progress.advance(num_edges - told, loss=loss / num_edges)
                told = num_edges

        began = time.monotonic()
        finished, _, _ = self._crew.train_epoch(
            state.epoch, self._units(state.epoch), range(state.unit), tell
        )
        for unit in finished:
            self._count(unit)
        state.seconds += time.monotonic() - began
        state.end_epoch()
        for hook in self.hooks:
            hook.after_unit(self)

    def _units(self, epoch: int) -> list[EpochUnit]:
        units, needs = self._schedule.epoch(epoch), self._schedule.needs(epoch)
        return [
            EpochUnit(needs=need, phase=unit[0].phase)
            for unit, need in zip(units, needs, strict=True)
        ]

    def _count(self, unit: Finished) -> None:
        """Count what was trained, and write its lines in the log."""
        state = self.context.state
        state.count(unit.num_edges, unit.loss)
        state.held_out[0] += unit.held_out[0]
        state.held_out[1] += unit.held_out[1]
        for event, facts in unit.lines:
            self._log.write(event, **facts)

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
            {"rank": each["rank"], "units": each["buckets"],
             "sent_bytes": each["parameter_bytes"], "read_bytes": each["bytes_read"],
             "written_bytes": each["bytes_written"]}
            for each in self.figures.get("per_worker", ())
        ]  # fmt: skip
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
        self.figures = cluster_figures(found, self._num_workers)


def cluster_figures(found: Sequence[Mapping[str, Any]], workers: int) -> dict[str, Any]:
    """Return what a report tells of the workers together.

    Args:
        found: What each did.
        workers: How many there are.

    Returns:
        ``world_size``; ``parameter_bytes``, to and from the parameter server;
        ``communication_seconds``, the longest; ``staleness_mean`` and ``staleness_max``,
        the pushes of others that a worker had not seen at its own, and
        ``staleness_bound``, which no worker exceeds; ``load_imbalance``, the longest time
        of training, reading and writing over the mean; ``partitions_read`` for a bucket,
        and of them ``partitions_ahead``, while others were trained; ``per_worker``.
    """
    busy = [each["compute_seconds"] + each["io_seconds"] for each in found]
    pushes = sum(each["pushes"] for each in found)
    missed = sum(each["missed_pushes"] for each in found)
    return {
        "world_size": workers,
        "parameter_bytes": sum(each["parameter_bytes"] for each in found),
        "communication_seconds": max(each["communication_seconds"] for each in found),
        "staleness_mean": missed / pushes if pushes else 0.0,
        "staleness_max": max(each["staleness_max"] for each in found),
        "staleness_bound": staleness_bound(workers),
        "load_imbalance": max(busy) * len(busy) / (sum(busy) or 1.0),
        "partitions_read": sum(each["partitions_read"] for each in found),
        "partitions_ahead": sum(each["partitions_ahead"] for each in found),
        "per_worker": list(found),
    }
