"""The training of embeddings: units of buckets, and what follows an epoch of them.

:class:`~graphsys.training.loop.TrainingLoop` is the loop. :class:`EmbeddingLoop` says what
evaluation, early stopping and checkpoints are, wherever buckets are trained;
:class:`EmbeddingTrainer` trains them in this process.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from graphsys.core.errors import ConfigError, CorruptStoreError
from graphsys.core.events import count, span
from graphsys.core.memory import resident_bytes
from graphsys.core.progress import Progress
from graphsys.embedding import checkpoints
from graphsys.embedding import run as runs
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.control_config import HELD_OUT_LOSS, LOWER_IS_BETTER
from graphsys.embedding.data.held_out_split import HELD_OUT, GraphWithHeldOut
from graphsys.embedding.data.schedule import BucketSchedule, BucketTask, Part
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.rows.table_files import Floats, Table, TableFiles
from graphsys.embedding.training.bucket_trainer import BucketTrainer, BucketWork
from graphsys.embedding.training.buffer import PartitionBuffer
from graphsys.embedding.training.drift import drift
from graphsys.embedding.training.edge_sets import choose_edges
from graphsys.embedding.training.plan import scratch_split
from graphsys.embedding.training.stats import EmbeddingStats
from graphsys.embedding.training.unit_log import UnitLog
from graphsys.embedding.training_log import TrainingLog
from graphsys.storage.grouped.merged_view import stored_graph
from graphsys.training.callbacks import Callback, Step
from graphsys.training.loop import TrainingLoop
from graphsys.training.memory_split import MemoryWatch


class EmbeddingLoop(TrainingLoop):
    """What follows an epoch, and what a run is at its end.

    Args:
        context: The training, with the checkpoint to go on from.
        callbacks: Called after those that the settings ask for.
        log: The run's log; None for no lines.
    """

    config: EmbeddingConfig
    state: runs.EmbeddingRunState

    def __init__(
        self,
        context: EmbeddingContext,
        callbacks: Sequence[Callback],
        log: TrainingLog | None,
    ) -> None:
        config, state = context.config, context.state
        own: list[Callback] = []
        if config.numbers:
            from graphsys.embedding.training.numbers import Numbers  # torch

            own.append(Numbers())
        if config.tensorboard:
            from graphsys.training.tensorboard import TensorBoard  # torch

            own.append(TensorBoard(context.path, state.epoch))
        super().__init__(context.path, context.graph, config, state, [*own, *callbacks])
        self.context, self.log = context, log

    def run(self, progress: Progress) -> None:
        """Train to the end; then measure the drift since the run that this began with."""
        super().run(progress)
        prune_best(self.context.path, self.config, self.state)
        if self.config.init_from is not None:
            try:
                trained = Embeddings(self.context.path, graph=self.context.graph)
                self.state.metrics["drift"] = drift(self.config.init_from, trained)
            except (ConfigError, CorruptStoreError):
                return  # that run or its graph is gone, as after a resume much later

    @property
    def position(self) -> tuple[int, int]:
        """Epochs completed, and units of the next one."""
        return self.state.epoch, self.state.unit

    @property
    def monitored(self) -> tuple[str, bool]:
        """Name of the evaluations' metric that is watched, and whether lower is better."""
        return self.config.monitored, self.config.monitor in LOWER_IS_BETTER

    @property
    def is_over(self) -> bool:
        """Whether all epochs are done, or early stopping has ended the training."""
        return self.state.epoch >= self.config.epochs or self.state.is_stopped

    @property
    def curves(self) -> dict[str, float]:
        """Numbers of the last epoch, for TensorBoard."""
        if not self.state.losses:
            return {}
        return {"loss": self.state.losses[-1], "seconds": self.state.seconds}

    def close_interrupted_epoch(self) -> None:
        """Evaluate a checkpoint that was made at the end of an epoch, and not evaluated."""
        if self.state.unit == 0 and self.state.closed_epochs < self.state.epoch:
            self.close_epoch()

    def end_epoch(self) -> None:
        """Count an epoch as completed, and write its line."""
        state = self.state
        state.end_epoch()
        facts = {"loss": state.losses[-1]}
        total, num_edges = state.held_out
        if num_edges:
            facts[HELD_OUT_LOSS] = total / num_edges
            history = state.metrics.setdefault(HELD_OUT_LOSS, [])
            history.append([state.epoch, total / num_edges])
            state.held_out = [0.0, 0.0]
        if self.log is not None:
            self.log.write("epoch", epoch=state.epoch, **facts)

    def close_epoch(self) -> None:
        """Evaluate, stop early, and preserve checkpoints, each where it is due.

        All of it is done on a committed checkpoint, and its outcome is committed at once:
        a kill in between does it again, to the same effect.
        """
        config, state = self.config, self.state
        evaluates = bool(config.eval_every) and state.epoch % config.eval_every == 0
        by_loss = bool(config.patience) and config.monitor == HELD_OUT_LOSS
        stays = bool(config.preserve_every) and state.epoch % config.preserve_every == 0
        needs_checkpoint = evaluates or by_loss or stays
        # What is evaluated or preserved has to be on the disk first, as resumes would find
        # it.
        if needs_checkpoint:
            self.checkpoint()
        super().close_epoch()
        is_best = False
        if config.patience and (evaluates or by_loss):
            is_best = take_value(config, state, self._monitored())
        state.closed_epochs = state.epoch
        if is_waiting_over(config, state) and not state.is_stopped:
            state.is_stopped = True
            if self.log is not None:
                self.log.write("stopped", epoch=state.epoch, best=dict(state.best))
        if not needs_checkpoint:
            return
        if stays or is_best:
            checkpoints.preserve(self.context.path, state)
        self.commit()
        prune_best(self.context.path, config, state)

    def evaluate(self) -> Mapping[str, Any] | None:
        """Evaluate the checkpoint where that is due; return what was measured."""
        config, state = self.config, self.state
        if not config.eval_every or state.epoch % config.eval_every:
            return None
        from graphsys.embedding.evaluation.evaluate import evaluate

        graph = stored_graph(self.context.graph)
        if config.eval_split == HELD_OUT:
            graph = GraphWithHeldOut(graph, config)
        result = evaluate(
            self.context.path, split=config.eval_split, graph=graph, breakdown=False
        )
        metrics = result["metrics"]
        names = {"mrr"}
        watches = config.patience or config.lr_schedule == "plateau"
        if watches and config.monitor != HELD_OUT_LOSS:
            names.add(config.monitor)
        for name in sorted(names):
            history = state.metrics.setdefault(f"{config.eval_split}_{name}", [])
            history.append([state.epoch, metrics[name]])
        if self.log is not None:
            split = config.eval_split
            self.log.write("evaluation", epoch=state.epoch, split=split, metrics=metrics)
        return {f"{config.eval_split}_{name}": value for name, value in metrics.items()}

    def commit(self) -> None:
        """Write ``run.json`` anew, after a change of the state alone."""
        if self.log is not None:
            self.state.log_bytes = self.log.sync()
            self.state.log_checksum = self.log.checksum(self.state.log_bytes)
        runs.commit(self.context.path, self.state)

    def finish(self) -> None:
        """Commit the run as complete, with the best checkpoint once training is over."""
        config, state = self.config, self.state
        if not self.is_saved:
            self.checkpoint()
        if config.patience and state.best and self.is_over:
            best = state.best["epoch"]
            if best != state.epoch:
                checkpoints.restore(self.context.path, state, best)
            state.metrics["best_epoch"] = best
            state.metrics[f"best_{config.monitor}"] = state.best["value"]
            state.metrics["stopped_early"] = state.is_stopped
        state.is_complete = True
        self.commit()
        runs.remove_superseded(self.context.path, state)

    def _monitored(self) -> float:
        """Return the last value of what early stopping watches."""
        return float(self.state.metrics[self.config.monitored][-1][1])


class Backend(NamedTuple):
    """Where slices of buckets are trained: on the CPU, or on a device.

    Attributes:
        files: Given the context.
        bucket_trainer: Given the context, the partitions in memory, the operators, what
            makes rows of nodes, and what chooses edges.
    """

    files: Callable[..., TableFiles] = TableFiles
    bucket_trainer: Callable[..., BucketTrainer] = BucketTrainer


class EmbeddingTrainer(EmbeddingLoop):
    """Trains units of buckets in this process; a step is a unit.

    Args:
        context: The training, with the checkpoint to go on from.
        callbacks: Called while it runs.
        log: The run's log; None for no lines.
        backend: Where buckets are trained.
    """

    def __init__(
        self,
        context: EmbeddingContext,
        callbacks: Sequence[Callback] = (),
        log: TrainingLog | None = None,
        backend: Backend = Backend(),  # noqa: B008  (frozen)
    ) -> None:
        super().__init__(context, callbacks, log)
        layout, state = context.layout, context.state
        self.files = backend.files(context)
        self.buffer = PartitionBuffer(self.files, layout.capacity, prefetch=layout.prefetch)
        self.schedule = self._schedule_of(context.steps)
        self.schedule.put_first(state.epoch, state.first_units)
        self.bucket_trainer = backend.bucket_trainer(
            context,
            self.buffer.resident,
            self.files.operators,
            self.files.extras,
            partial(choose_edges, context),
        )
        self.edges_per_epoch = sum(step.num_edges for step in context.steps)
        if state.unit and not state.epoch_edges:  # written before epochs counted theirs
            trained = self.schedule.epoch(state.epoch)[: state.unit]
            state.epoch_edges = sum(step.num_edges for unit in trained for step in unit)
        self.stats = EmbeddingStats(state.metrics, self.buffer, self.files, layout)
        self.memory: UnitMemory | None = None
        if backend.bucket_trainer is BucketTrainer:  # tables and scratch are in the process
            tables, operators = self.buffer.resident, self.files.operators
            self.memory = UnitMemory(context, tables, operators)
        self._unit_log: UnitLog | None = None
        if log is not None:
            self._unit_log = UnitLog(context, log, self.bucket_trainer.measure)
        self._clock_s = 0.0
        self._is_begun = False

    def running(self) -> AbstractContextManager[object]:
        """Have the buffer open while units are trained."""
        return self.buffer

    def train_steps(self, progress: Progress) -> Generator[Step]:
        """Train the units of the current epoch that are left."""
        state, epoch = self.state, self.state.epoch
        self._clock_s = time.monotonic()  # evaluation is not training
        cpu_clock = time.process_time()
        self._begin_epoch(epoch)
        progress.stage(f"epoch {epoch + 1}", self.edges_per_epoch, "edges")
        schedule = self.schedule.epoch(epoch)
        # Between two stretches partitions change groups: nothing in memory is of use any
        # more.
        turns = {units.start for units in self.schedule.stretches(state.unit)[1:]}
        for number in range(state.unit, len(schedule)):
            if number in turns:
                self.buffer.clear()
                self._expect(number)
            trained = self._train_unit(epoch, number, schedule[number], progress)
            now = time.monotonic()
            state.seconds += now - self._clock_s
            self._clock_s = now
            now_cpu = time.process_time()
            state.cpu_seconds += now_cpu - cpu_clock
            cpu_clock = now_cpu
            state.unit = number + 1
            num_edges = sum(bucket.num_edges for bucket in trained)
            loss = sum(float(bucket.losses.sum()) for bucket in trained)
            yield Step(
                number=number,
                num_edges=num_edges,
                loss=loss / max(num_edges, 1),
                is_last=state.unit == len(schedule),
                work=trained,
            )

    def end_step(self, step: Step) -> None:
        """Let the partitions of a unit go."""
        self.buffer.end_unit(_parts([bucket.step for bucket in step.work]))

    def end_epoch(self) -> None:
        """Count an epoch as completed, with how far it read, wrote and computed at once."""
        super().end_epoch()
        self.stats.end_epoch(self.state.epoch, self.state.metrics)

    def save(self) -> None:
        """Write a checkpoint."""
        began = time.monotonic()
        with self.buffer.still(), span("checkpoint"):
            # Under the buffer's lock: the thread must not replace files while they are
            # listed.
            self.buffer.store_dirty()
            with self.buffer.overlap.preparing():
                self.files.flush(self.state)
            self.stats.update(self.state.metrics)
            self.commit()
            self.files.committed()
        self.stats.checkpoint_s += time.monotonic() - began

    def _schedule_of(self, steps: list[BucketTask]) -> BucketSchedule:
        graph = self.context.graph
        partitions = {name: graph.num_partitions(name) for name in graph.node_types}
        return BucketSchedule(steps, partitions, self.context.layout, self.config.seed)

    def _begin_epoch(self, epoch: int) -> None:
        """Tell the buffer what is to come, in the groups of partitions of this epoch."""
        regroup = self.context.regroup
        if regroup is not None:
            self.buffer.clear()
            self.bucket_trainer.negatives.hold(())
            self.schedule = self._schedule_of(regroup(epoch))
        if regroup is not None or not self._is_begun:
            self._expect(self.state.unit)
        if regroup is None and epoch + 1 < self.config.epochs:
            self.buffer.expect(self.schedule.needs(epoch + 1))
        self._is_begun = True

    def _expect(self, unit: int) -> None:
        """Tell the buffer the units from one on, up to where partitions change groups."""
        needs = self.schedule.needs(self.state.epoch)
        self.buffer.expect(needs[self.schedule.stretches(unit)[0]])

    def _train_unit(
        self, epoch: int, number: int, unit: list[BucketTask], progress: Progress
    ) -> list[BucketWork]:
        """Train a unit once its partitions are in memory, and count its edges."""
        count("partitions_wanted", len(_parts(unit)))
        self.buffer.begin_unit(self.schedule.always(unit))
        if self._unit_log is not None:
            self._unit_log.begin(unit)
        with self.buffer.overlap.working():
            trained = self.bucket_trainer.train(epoch, unit, progress)
        if self._unit_log is not None:
            self._unit_log.end(epoch, number, trained)
        if self.memory is not None:
            self.memory.end_unit(trained)
        for bucket in trained:
            self.state.count(bucket.num_edges, float(bucket.losses.sum()))
            parts = (bucket.step.src, bucket.step.dst)
            count("edges", bucket.num_edges, parts=parts)
        return trained


def _parts(unit: list[BucketTask]) -> set[Part]:
    """Return the partitions that a unit trains."""
    return {part for step in unit for part in (step.src, step.dst)}


def take_value(
    config: EmbeddingConfig, state: runs.EmbeddingRunState, value: float
) -> bool:
    """Compare a new value of the metric with the best; return whether it is better.

    A value that is no number is never better. Bookkeeping is in ``state.best``: ``epoch``,
    ``value``, and ``waited``, the evaluations since then.

    Args:
        config: ``monitor`` and ``min_improvement``.
        state: The run's state, at the end of the epoch that was evaluated; changed.
        value: The metric.
    """
    best = state.best
    sign = -1.0 if config.monitor in LOWER_IS_BETTER else 1.0
    gain = sign * (value - best["value"]) if best else float("inf")
    is_better = value == value and (not best or gain > config.min_improvement)
    if is_better:
        state.best = {"epoch": state.epoch, "value": float(value), "waited": 0}
    elif best:
        best["waited"] += 1
    return is_better


def is_waiting_over(config: EmbeddingConfig, state: runs.EmbeddingRunState) -> bool:
    """Return whether the metric has not improved for ``patience`` evaluations."""
    return bool(state.best) and state.best["waited"] >= config.patience > 0


def prune_best(path: Path, config: EmbeddingConfig, state: runs.EmbeddingRunState) -> None:
    """Remove best checkpoints of before, but none that was to be preserved.

    The best checkpoint of a run that is over is the run itself.
    """
    if not config.patience:
        return
    is_over = state.is_complete and (state.is_stopped or state.epoch >= config.epochs)
    keep = {state.best["epoch"]} if state.best and not is_over else set()
    if config.preserve_every:
        keep |= set(range(0, state.epoch + 1, config.preserve_every))
    checkpoints.prune(path, keep)


class UnitMemory(MemoryWatch):
    """Counts what the units of a training hold; see :meth:`Planner.memory_split`.

    Tables and orders are counted by their arrays, what kernels make for themselves by the
    same sizes that they make it with.

    Args:
        context: The training.
        tables: The partitions in memory.
        operators: Parameters and state of every edge type's operators.
    """

    def __init__(
        self,
        context: EmbeddingContext,
        tables: Mapping[Part, Table],
        operators: Mapping[str, Floats],
    ) -> None:
        self._config, self._model = context.config, context.model
        self._tables, self._operators = tables, operators
        super().__init__(resident_bytes())

    def end_unit(self, work: Sequence[BucketWork]) -> None:
        """Count what there is after a unit was trained, before its partitions go."""
        trained = {part for it in work for part in (it.step.src, it.step.dst)}
        tables = dict(self._tables)  # a thread may load the next one
        rows = sum(tables[part][0].nbytes for part in trained)
        states = sum(tables[part][1].nbytes for part in trained)
        others = [table for part, table in tables.items() if part not in trained]
        operators = sum(table.nbytes for table in self._operators.values()) // 2
        edges = [it.edges for it in work]
        num_rows = max(len(tables[it.step.src][0]) for it in work)
        num_rows += max(len(tables[it.step.dst][0]) for it in work)
        num_nodes = max(len(tables[part][0]) for part in trained)
        found = {
            "parameters": rows + operators,
            "optimizer": states + operators,
            "caches": sum(table[0].nbytes + table[1].nbytes for table in others),
            "topology": sum(
                e.order.nbytes + e.chunks.nbytes + e.batches.nbytes for e in edges
            ),
            **scratch_split(self._config, self._model, num_rows, num_nodes),
        }
        self.saw("unit", found)
