"""A unit's training on a cluster: parameters are exchanged within it, its log is kept."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from graphsys.distributed.embedding.parameter_server import Floats
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.schedule import BucketTask, Part
from graphsys.embedding.rows.table_files import Table
from graphsys.embedding.training.bucket_trainer import BucketTrainer, BucketWork, Order
from graphsys.embedding.training_log import TrainingLog
from graphsys.kernels.cpu.embedding.bags import Extras

SYNC_BATCHES = 16
"""Batches of a thread after which a worker looks whether an exchange is due."""
SYNC_S = 0.1
"""Time between two exchanges of parameters, and the batches above."""


class UnitTrainer(BucketTrainer):
    """Exchanges parameters between slices, when no thread trains.

    Args:
        context, tables, operators, extras, choose_edges: See :class:`BucketTrainer`.
        synchronize: Exchanges.

    Attributes:
        synchronized_s: When it last did, by the monotonic clock.
    """

    def __init__(
        self,
        context: EmbeddingContext,
        tables: Mapping[Part, Table],
        operators: Mapping[str, Floats],
        extras: Callable[[str, str], Extras],
        choose_edges: Callable[[int, BucketTask, Order], Order],
        synchronize: Callable[[], None],
    ) -> None:
        super().__init__(context, tables, operators, extras, choose_edges)
        self._synchronize, self.synchronized_s = synchronize, 0.0

    def _train_slice(
        self, pool: ThreadPoolExecutor, bucket: BucketWork, first: int, last: int
    ) -> None:
        size = SYNC_BATCHES * self.num_workers
        for begin in range(first, last, size):
            super()._train_slice(pool, bucket, begin, min(begin + size, last))
            if time.monotonic() - self.synchronized_s >= SYNC_S:
                self._synchronize()
                self.synchronized_s = time.monotonic()


class LogLines(TrainingLog):
    """Keeps the lines of a unit for the process that writes the log."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, Mapping[str, Any]]] = []

    def write(self, event: str, **facts: Any) -> None:
        """Keep a line."""
        self._lines.append((event, facts))

    def taken(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """Return the lines since the last call."""
        found, self._lines = tuple(self._lines), []
        return found
