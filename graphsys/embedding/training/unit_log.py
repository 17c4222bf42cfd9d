"""What the log of a run says of a unit, with the loss of its held-out edges around it."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.edge_selection import Rows
from graphsys.embedding.data.schedule import BucketTask
from graphsys.embedding.training.edge_sets import held_out_of
from graphsys.embedding.training_log import TrainingLog

if TYPE_CHECKING:
    from graphsys.embedding.training.bucket_trainer import BucketWork


class UnitLog:
    """Writes a line for every unit; its partitions are in memory before and after.

    Args:
        context: The training; sums of the held-out loss go to its state.
        log: Where lines go.
        measure: Returns the summed loss of edges of a bucket.
    """

    def __init__(
        self,
        context: EmbeddingContext,
        log: TrainingLog,
        measure: Callable[[BucketTask, Rows], float],
    ) -> None:
        self._context, self._log, self._measure_rows = context, log, measure
        self._has_held_out = bool(context.config.eval_fraction)
        self._before: dict[BucketTask, float] = {}
        self._began = 0.0

    def begin(self, unit: list[BucketTask]) -> None:
        """Measure the held-out edges of a unit before it is trained."""
        if self._has_held_out:
            self._before = {step: self._measure(step)[0] for step in unit}
        self._began = time.monotonic()

    def end(self, epoch: int, number: int, work: "list[BucketWork]") -> None:
        """Measure them again; write what happened in a unit of an epoch."""
        seconds = time.monotonic() - self._began
        edges = sum(bucket.num_edges for bucket in work)
        loss = sum(float(bucket.losses.sum()) for bucket in work)
        facts: dict[str, float | None] = {
            "epoch": epoch + 1,
            "unit": number + 1,
            "phase": work[0].step.phase + 1,
            "edges": edges,
            "loss": loss / max(edges, 1),
            "seconds": seconds,
            "edges_per_second": edges / seconds if seconds > 0 else None,
        }
        if self._has_held_out:
            facts |= self._held_out_facts([bucket.step for bucket in work])
        self._log.write("unit", **facts)

    def _held_out_facts(self, unit: list[BucketTask]) -> dict[str, float | None]:
        after = {step: self._measure(step) for step in unit}
        count = sum(size for _, size in after.values())
        total = sum(loss for loss, _ in after.values())
        self._context.state.held_out[0] += total
        self._context.state.held_out[1] += count
        before = sum(self._before.values())
        return {
            "held_out_edges": count,
            "held_out_loss_before": before / count if count else None,
            "held_out_loss_after": total / count if count else None,
        }

    def _measure(self, step: BucketTask) -> tuple[float, int]:
        """Return the summed loss of the held-out edges of a bucket, and their number."""
        context = self._context
        relations = context.model[step.edge_type]
        counts = context.graph.bucket_counts(relations.edge_type, step.split)
        num_edges = int(counts[step.bucket])
        held = held_out_of(context.config, relations.name, step, num_edges)
        if not len(held):
            return 0.0, 0
        return self._measure_rows(step, held), len(held)
