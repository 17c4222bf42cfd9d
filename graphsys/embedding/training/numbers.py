"""Which numbers a training of embeddings has: by table and operator, and beyond 16 bits.

There only if the config asks for it (``numbers``); see
:mod:`graphsys.training.number_tally` for what is counted. Rows and parameters are taken as
they are when they were trained last in an epoch, gradients of one batch of every bucket,
after the unit of that bucket.
"""

from typing import Any

import torch

from graphsys.core.events import count
from graphsys.embedding.data.schedule import Part
from graphsys.embedding.rows.row_precision import to_floats
from graphsys.training.callbacks import Callback, Step, Training
from graphsys.training.number_tally import NUMBERS, Tally

_ROWS = 1 << 15
"""Rows that are counted at a time: a tally makes copies."""


class Numbers(Callback):
    """Counts numbers epoch by epoch."""

    def __init__(self) -> None:
        self._parts: dict[Part, Tally] = {}
        self._gradients: dict[str, Tally] = {}

    def on_step_end(self, training: Training, step: Step) -> None:
        """Count the rows of a unit's partitions, and gradients of its buckets.

        After the last unit of an epoch the checkpoint that follows has what was counted.
        """
        trainer: Any = training  # in this process: a cluster refuses the setting
        for part in {part for it in step.work for part in (it.step.src, it.step.dst)}:
            self._parts[part] = self._rows(trainer, part)
        for bucket in step.work:
            relations = trainer.context.model[bucket.step.edge_type]
            names = {
                "src": f"rows.{bucket.step.src[0]}",
                "dst": f"rows.{bucket.step.dst[0]}",
                "operators": f"operators.{relations.name}",
            }
            for which, values in trainer.bucket_trainer.gradients(bucket).items():
                if values.size:
                    tally = self._gradients.setdefault(names[which], Tally())
                    tally.add(torch.from_numpy(values))
        if step.is_last:
            rows = self._table(trainer)
            training.state.metrics[NUMBERS] = rows
            count(NUMBERS, len(rows), epoch=training.epoch, rows=rows)
            self._parts, self._gradients = {}, {}

    def _rows(self, trainer: Any, part: Part) -> Tally:
        table, tally = trainer.buffer.resident[part][0], Tally()
        dtype = trainer.context.config.row_dtype
        for begin in range(0, len(table), _ROWS):
            rows = to_floats(table[begin : begin + _ROWS], dtype)
            tally.add(torch.from_numpy(rows))
        return tally

    def _table(self, trainer: Any) -> list[dict[str, Any]]:
        """Return a row for each kind and table, as a training of networks does."""
        values: dict[str, Tally] = {}
        for part, tally in self._parts.items():
            values.setdefault(f"rows.{part[0]}", Tally()).merge(tally)
        for name, table in trainer.files.operators.items():
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
