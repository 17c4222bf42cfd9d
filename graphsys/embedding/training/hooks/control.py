"""Hooks that choose the edges of a bucket, measure the held-out ones and keep the log."""

import time
from typing import TYPE_CHECKING

import numpy as np

from graphsys.embedding.data.edge_selection import Rows, edges_to_train
from graphsys.embedding.data.schedule import BucketTask, Part
from graphsys.embedding.rows.table_files import Floats
from graphsys.embedding.training.hook import Hook, Training
from graphsys.embedding.training.hooks.edge_sets import held_out_of
from graphsys.embedding.training.hooks.incremental import read_new_edges
from graphsys.embedding.training.hooks.warm_start import read_origin
from graphsys.embedding.training_log import TrainingLog

if TYPE_CHECKING:
    from graphsys.embedding.training.bucket_trainer import BucketWork


class Selection(Hook):
    """Leaves out held-out edges, edges of other parts, and with ``train_only`` old ones."""

    def before_bucket(
        self, trainer: Training, epoch: int, step: BucketTask, order: Rows
    ) -> Rows:
        """Choose the edges of a bucket."""
        name = trainer.context.model[step.edge_type].name
        only = None
        if trainer.context.config.train_only == "new":
            only = read_new_edges(
                trainer.context.path, trainer.context.state, name, step.split, step.bucket
            )
        held = held_out_of(trainer.context.config, name, step, len(order))
        chosen = edges_to_train(len(order), held, step.part, only)
        return order if chosen is None else chosen


class InheritedRates(Hook):
    """Scales the learning rates of rows that came from another run.

    The rates of the partitions of a unit are in memory while it is trained, float32.
    """

    def before_unit(self, trainer: Training, epoch: int, unit: list[BucketTask]) -> None:
        """Look up which rows of a unit's partitions came from there."""
        factor = trainer.context.config.init_factor
        before, now = trainer.rates, dict[Part, Floats]()
        for part in {part for step in unit for part in (step.src, step.dst)}:
            rates = before.get(part)
            if rates is None:
                origin = read_origin(trainer.context.path, trainer.context.state, *part)
                rates = np.where(origin >= 0, factor, 1.0).astype(np.float32)
            now[part] = rates
        trainer.rates = now


class Watch(Hook):
    """Measures the loss of held-out edges around every unit, and writes the log.

    Args:
        log: The run's log.
    """

    def __init__(self, log: TrainingLog) -> None:
        self._log = log
        self._before: dict[BucketTask, float] = {}
        self._began = 0.0

    def before_unit(self, trainer: Training, epoch: int, unit: list[BucketTask]) -> None:
        """Measure the held-out edges of a unit, whose partitions are in memory."""
        if trainer.context.config.eval_fraction:
            self._before = {step: self._measure(trainer, step)[0] for step in unit}
        self._began = time.monotonic()

    def unit_trained(self, trainer: Training, epoch: int, work: "list[BucketWork]") -> None:
        """Measure them again; write what happened."""
        seconds = time.monotonic() - self._began
        edges = sum(bucket.num_edges for bucket in work)
        loss = sum(float(bucket.losses.sum()) for bucket in work)
        facts: dict[str, float | None] = {
            "epoch": epoch + 1,
            "unit": trainer.context.state.unit + 1,
            "phase": work[0].step.phase + 1,
            "edges": edges,
            "loss": loss / max(edges, 1),
            "seconds": seconds,
            "edges_per_second": edges / seconds if seconds > 0 else None,
        }
        if trainer.context.config.eval_fraction:
            facts |= self._held_out_facts(trainer, [bucket.step for bucket in work])
        self._log.write("unit", **facts)

    def after_unit(self, trainer: Training) -> None:
        """Write the line of an epoch that is done."""
        state = trainer.context.state
        if state.unit:
            return
        facts = {"loss": state.losses[-1]}
        total, count = state.held_out
        if count:
            facts["held_out_loss"] = total / count
            history = state.metrics.setdefault("held_out_loss", [])
            history.append([state.epoch, total / count])
            state.held_out = [0.0, 0.0]
        self._log.write("epoch", epoch=state.epoch, **facts)

    def before_commit(self, trainer: Training) -> None:
        """Make the log durable up to here."""
        state = trainer.context.state
        state.log_bytes = self._log.sync()
        state.log_checksum = self._log.checksum(state.log_bytes)

    def _held_out_facts(
        self, trainer: Training, unit: list[BucketTask]
    ) -> dict[str, float | None]:
        after = {step: self._measure(trainer, step) for step in unit}
        count = sum(size for _, size in after.values())
        total = sum(loss for loss, _ in after.values())
        trainer.context.state.held_out[0] += total
        trainer.context.state.held_out[1] += count
        before = sum(self._before.values())
        return {
            "held_out_edges": count,
            "held_out_loss_before": before / count if count else None,
            "held_out_loss_after": total / count if count else None,
        }

    def _measure(self, trainer: Training, step: BucketTask) -> tuple[float, int]:
        """Return the summed loss of the held-out edges of a bucket, and their number."""
        relations, graph = trainer.context.model[step.edge_type], trainer.context.graph
        num_edges = graph.bucket_counts(relations.edge_type, step.split)[step.bucket]
        held = held_out_of(trainer.context.config, relations.name, step, int(num_edges))
        if not len(held):
            return 0.0, 0
        return trainer.measure(step, held), len(held)
