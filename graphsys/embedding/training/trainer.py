"""The training loop: epochs of units of buckets, a checkpoint after each unit."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import StorageFullError
from graphsys.core.events import count, span
from graphsys.core.progress import Progress
from graphsys.embedding import run as runs
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.schedule import BucketSchedule, BucketTask, Part
from graphsys.embedding.rows.table_files import Floats, Table
from graphsys.embedding.training.backend import Backend
from graphsys.embedding.training.bucket_trainer import BucketWork
from graphsys.embedding.training.buffer import PartitionBuffer
from graphsys.embedding.training.hook import Hook
from graphsys.embedding.training.stats import EmbeddingStats


@contextlib.contextmanager
def explained_full_disk(path: Path) -> Iterator[None]:
    """Say what a full disk leaves behind.

    Args:
        path: The run's folder.
    """
    try:
        yield
    except StorageFullError as err:
        raise StorageFullError(
            f"{err}; the last checkpoint of {path} is whole: go on with --resume"
        ) from err


class EmbeddingTrainer:
    """Carries a checkpoint to the end.

    Args:
        context: The training, with the checkpoint to go on from.
        hooks: Called before every bucket, after every unit and after every epoch.
        backend: Where buckets are trained.
    """

    def __init__(
        self,
        context: EmbeddingContext,
        hooks: Sequence[Hook] = (),
        backend: Backend = Backend(),  # noqa: B008  (frozen)
    ) -> None:
        self.context, self.hooks = context, hooks
        self.config, self.state = context.config, context.state
        steps, layout, state = context.steps, context.layout, self.state
        self.files = backend.files(context)
        self.buffer = PartitionBuffer(self.files, layout.capacity, prefetch=layout.prefetch)
        self.schedule = self._schedule_of(steps)
        self.schedule.put_first(state.epoch, state.first_units)
        self.bucket_trainer = backend.bucket_trainer(
            context,
            self.buffer.resident,
            self.files.operators,
            self.files.extras,
            self._choose_edges,
        )
        self.edges_per_epoch = sum(step.num_edges for step in steps)
        if state.unit and not state.epoch_edges:  # written before epochs counted theirs
            trained = self.schedule.epoch(state.epoch)[: state.unit]
            state.epoch_edges = sum(step.num_edges for unit in trained for step in unit)
        self.stats = EmbeddingStats(state.metrics, self.buffer, self.files, layout)
        self._saved_s = self._clock_s = 0.0

    def run(self, progress: Progress) -> None:
        """Train until all epochs are done, or a hook ends it."""
        state = self.state
        if state.is_complete:
            return
        with explained_full_disk(self.context.path):
            with self.buffer:
                self._begin()
                while self._goes_on():
                    with span("epoch", epoch=state.epoch):
                        self._train_epoch(state.epoch, progress)
                    self._close_epoch()
                    if self.context.regroup is not None and self._goes_on():
                        self._regroup(state.epoch)
                        self._expect(0)
            self._finish()
        progress.close()

    def _begin(self) -> None:
        state = self.state
        self._saved_s = self._clock_s = time.monotonic()
        if state.unit == 0 and state.closed_epochs < state.epoch:
            self._close_epoch()  # where a run was interrupted
        if self._goes_on():
            self._regroup(state.epoch)
            self._expect(state.unit)

    def _schedule_of(self, steps: list[BucketTask]) -> BucketSchedule:
        graph = self.context.graph
        partitions = {name: graph.num_partitions(name) for name in graph.node_types}
        return BucketSchedule(steps, partitions, self.context.layout, self.config.seed)

    def _regroup(self, epoch: int) -> None:
        """Have the groups of partitions that an epoch has, where it has its own."""
        if self.context.regroup is not None:
            self.buffer.clear()
            self.bucket_trainer.negatives.hold(())
            self.schedule = self._schedule_of(self.context.regroup(epoch))

    def _expect(self, unit: int) -> None:
        """Tell the buffer the units from one on, up to where partitions change groups."""
        needs = self.schedule.needs(self.state.epoch)
        self.buffer.expect(needs[self.schedule.stretches(unit)[0]])

    def _goes_on(self) -> bool:
        return self.state.epoch < self.config.epochs and not self.state.is_stopped

    def _close_epoch(self) -> None:
        """Do what follows an epoch; a kill before the next commit does it again."""
        for hook in self.hooks:
            self.state.is_stopped |= hook.after_epoch(self)
        self.state.closed_epochs = self.state.epoch
        if self.state.is_stopped:
            self.checkpoint()
        self._clock_s = time.monotonic()  # evaluation is not training

    def _finish(self) -> None:
        for hook in self.hooks:
            hook.after_training(self)
        self.state.is_complete = True
        self.commit()
        runs.remove_superseded(self.context.path, self.state)

    def checkpoint(self) -> None:
        """Make everything trained so far durable.

        Raises:
            StorageFullError: The disk is full; the checkpoint before stays.
        """
        began = time.monotonic()
        with self.buffer.still(), span("checkpoint"):
            self.buffer.store_dirty()
            with self.buffer.overlap.preparing():
                self.files.flush(self.state)
            self.stats.update(self.state.metrics)
            self.commit()
            self.files.committed()
        self.stats.checkpoint_s += time.monotonic() - began
        self._saved_s = time.monotonic()

    def commit(self) -> None:
        """Write ``run.json`` anew, after a change of the state alone."""
        for hook in self.hooks:
            hook.before_commit(self)
        runs.commit(self.context.path, self.state)

    @property
    def rates(self) -> dict[Part, Floats]:
        """Factors on the learning rates of rows by partition, float32 ``[N]``."""
        return self.bucket_trainer.rates

    @rates.setter
    def rates(self, rates: dict[Part, Floats]) -> None:
        self.bucket_trainer.rates = rates

    @property
    def tables(self) -> Mapping[Part, Table]:
        """Rows and state of the partitions in memory."""
        return self.buffer.resident

    @property
    def operators(self) -> Mapping[str, Floats]:
        """Parameters and state of every edge type's operators."""
        return self.files.operators

    def gradients(self, work: BucketWork) -> dict[str, Floats]:
        """Return gradients of a batch of a bucket whose partitions are in memory."""
        return self.bucket_trainer.gradients(work)

    def measure(self, step: BucketTask, rows: npt.NDArray[np.uint32]) -> float:
        """Return the summed loss of edges of a bucket whose partitions are in memory."""
        return self.bucket_trainer.measure(step, rows)

    def _train_epoch(self, epoch: int, progress: Progress) -> None:
        state = self.state
        progress.stage(f"epoch {epoch + 1}", self.edges_per_epoch, "edges")
        if self.context.regroup is None and epoch + 1 < self.config.epochs:
            self.buffer.expect(self.schedule.needs(epoch + 1))
        schedule = self.schedule.epoch(epoch)
        turns = {units.start for units in self.schedule.stretches(state.unit)[1:]}
        for number in range(state.unit, len(schedule)):
            if number in turns:
                self.buffer.clear()
                self._expect(number)
            unit = schedule[number]
            wanted = self._begin_unit(epoch, unit)
            with self.buffer.overlap.working():
                trained = self.bucket_trainer.train(epoch, unit, progress)
            self._end_unit(epoch, trained, wanted)
            now = time.monotonic()
            state.seconds += now - self._clock_s
            self._clock_s = now
            state.unit = number + 1
            if state.unit == len(schedule):
                state.end_epoch()
                self.stats.end_epoch(state.epoch, state.metrics)
            for hook in self.hooks:
                hook.after_unit(self)
            due = now - self._saved_s >= self.config.checkpoint_seconds
            if due or state.epoch == self.config.epochs:
                self.checkpoint()

    def _begin_unit(self, epoch: int, unit: list[BucketTask]) -> set[Part]:
        """Have a unit's partitions in memory; return which."""
        wanted = {part for step in unit for part in (step.src, step.dst)}
        count("partitions_wanted", len(wanted))
        self.buffer.begin_unit(self.schedule.always(unit))
        for hook in self.hooks:
            hook.before_unit(self, epoch, unit)
        return wanted

    def _end_unit(self, epoch: int, trained: list[BucketWork], wanted: set[Part]) -> None:
        """Count what was trained, and let its partitions go."""
        for hook in self.hooks:
            hook.unit_trained(self, epoch, trained)
        self.buffer.end_unit(wanted)
        for bucket in trained:
            self.state.count(bucket.num_edges, float(bucket.losses.sum()))
            parts = (bucket.step.src, bucket.step.dst)
            count("edges", bucket.num_edges, parts=parts)

    def _choose_edges(
        self, epoch: int, step: BucketTask, order: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint32]:
        for hook in self.hooks:
            order = hook.before_bucket(self, epoch, step, order)
        return order
