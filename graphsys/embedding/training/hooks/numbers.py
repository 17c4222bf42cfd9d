"""Which numbers a training of embeddings has: by table and operator, and beyond 16 bits.

There only if the config asks for it (``numbers``, ``tensorboard``); see
:mod:`graphsys.training.number_tally` for what is counted. Rows and parameters are taken as
they are when they were trained last in an epoch, gradients of one batch of every bucket,
after the unit of that bucket.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from graphsys.core.events import count
from graphsys.embedding.data.schedule import Part
from graphsys.embedding.rows.row_precision import to_floats
from graphsys.embedding.training.hook import Hook, LocalTraining, Training
from graphsys.training.number_tally import NUMBERS, Tally
from graphsys.training.tensorboard import Board

if TYPE_CHECKING:
    from graphsys.embedding.training.bucket_trainer import BucketWork

_ROWS = 1 << 15
"""Rows that are counted at a time: a tally makes copies."""


class Numbers(Hook):
    """Counts numbers epoch by epoch, and writes for TensorBoard.

    Args:
        folder: The run's, where TensorBoard's file is wanted; else None.
        epoch: Epochs done before.
        counts: Whether numbers are counted, not the loss alone written.

    Raises:
        MissingDependencyError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path | None, epoch: int, *, counts: bool) -> None:
        self._board = Board(folder, epoch)
        self._counts = counts
        self._parts: dict[Part, Tally] = {}
        self._gradients: dict[str, Tally] = {}

    def unit_trained(self, trainer: Training, epoch: int, work: "list[BucketWork]") -> None:
        """Count the rows of a unit's partitions, and gradients of its buckets."""
        if not self._counts:
            return
        local = cast("LocalTraining", trainer)  # a cluster refuses the setting
        for part in {part for it in work for part in (it.step.src, it.step.dst)}:
            self._parts[part] = self._rows(local, part)
        for bucket in work:
            relations = trainer.context.model[bucket.step.edge_type]
            names = {
                "src": f"rows.{bucket.step.src[0]}",
                "dst": f"rows.{bucket.step.dst[0]}",
                "operators": f"operators.{relations.name}",
            }
            for which, values in local.gradients(bucket).items():
                if values.size:
                    tally = self._gradients.setdefault(names[which], Tally())
                    tally.add(torch.from_numpy(values))

    def after_epoch(self, trainer: Training) -> bool:
        """Tell what was counted; it is durable with the checkpoint that follows."""
        state = trainer.context.state
        if self._counts and self._parts:
            rows = self._told(cast("LocalTraining", trainer))
            state.metrics[NUMBERS] = rows
            count(NUMBERS, len(rows), epoch=state.epoch - 1, rows=rows)
            self._board.write_numbers(state.epoch, rows)
        self._parts, self._gradients = {}, {}
        if state.losses:
            scalars = {"loss": state.losses[-1], "seconds": state.seconds}
            self._board.write(state.epoch, scalars)
        return False

    def after_training(self, trainer: Training) -> None:
        """Close TensorBoard's file."""
        self._board.close()

    def _rows(self, trainer: LocalTraining, part: Part) -> Tally:
        table, tally = trainer.tables[part][0], Tally()
        dtype = trainer.context.config.row_dtype
        for begin in range(0, len(table), _ROWS):
            rows = to_floats(table[begin : begin + _ROWS], dtype)
            tally.add(torch.from_numpy(rows))
        return tally

    def _told(self, trainer: LocalTraining) -> list[dict[str, Any]]:
        """Return a row for each kind and table, as a training of networks does."""
        values: dict[str, Tally] = {}
        for part, tally in self._parts.items():
            values.setdefault(f"rows.{part[0]}", Tally()).merge(tally)
        for name, table in trainer.operators.items():
            parameters = table[0::2]
            if parameters.size:
                own = values.setdefault(f"operators.{name}", Tally())
                own.add(torch.from_numpy(parameters.copy()))
        kinds = {"gradient": self._gradients, "parameter": values}
        return [
            {"kind": kind, "layer": layer, **tally.facts()}
            for kind, tallies in kinds.items()
            for layer, tally in sorted(tallies.items())
        ]
