"""How fast this machine trains and writes: a second of each, to estimate the time."""

import dataclasses
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphsys.core.progress import SILENT
from graphsys.core.rng import generator
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.schedule import BucketTask
from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.run import EmbeddingRunState
from graphsys.embedding.training.bucket_trainer import BucketTrainer, Order
from graphsys.embedding.training.plan import TrainingPlan
from graphsys.storage.transaction import disk_errors

_FIRST_EDGES = 20_000
_DISK_BYTES = 32 << 20


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What was measured.

    Attributes:
        edges_per_second: Edges trained, on all workers.
        read_rate, write_rate: Bytes per second of the disk, past the page cache.
    """

    edges_per_second: float
    read_rate: float
    write_rate: float

    def estimate(self, plan: TrainingPlan, config: EmbeddingConfig) -> Mapping[str, Any]:
        """Return the time of an epoch and of the run, in seconds; guesses both.

        What is read, and written when partitions leave, goes on beside the training if
        the buffer has a spare place; checkpoints do not.
        """
        compute = plan.num_edges / self.edges_per_second
        read, written = plan.read_bytes / self.read_rate, plan.write_bytes / self.write_rate
        beside, between = (read, written) if plan.num_checkpoints else (read + written, 0.0)
        epoch = (max if plan.layout.prefetch else _sum)(compute, beside) + between
        return {
            "estimated_seconds_per_epoch": epoch,
            "estimated_seconds": epoch * config.epochs,
            "estimated_compute_seconds_per_epoch": compute,
            "estimated_io_seconds_per_epoch": read + written,
            "probed_edges_per_second": self.edges_per_second,
            "probed_read_bytes_per_second": self.read_rate,
            "probed_write_bytes_per_second": self.write_rate,
        }


def probe(context: EmbeddingContext, *, seconds: float = 1.0) -> Probe:
    """Train edges of the largest bucket and write a file that nobody sees.

    Args:
        context: The training; its path is a folder on the disk of the run.
        seconds: About how long to train; no more than one pass over the bucket.

    Raises:
        StorageFullError: The folder cannot be written.
    """
    step = max(context.steps, key=lambda step: step.num_edges)
    files = TableFiles(dataclasses.replace(context, state=EmbeddingRunState(graph={})))
    tables = {part: files.load(part) for part in {step.src, step.dst}}
    chosen = min(_FIRST_EDGES, step.num_edges)

    def choose_edges(epoch: int, step: BucketTask, order: Order) -> Order:
        rng = generator(context.config.seed, "probe", chosen)
        return rng.choice(order, chosen, replace=False, shuffle=False)

    trainer = BucketTrainer(context, tables, files.operators, files.extras, choose_edges)
    while True:
        began = time.perf_counter()
        trainer.train(0, [step], SILENT)
        taken = time.perf_counter() - began
        rate = chosen / taken
        if taken >= seconds / 2 or chosen == step.num_edges:
            break
        chosen = min(step.num_edges, max(2 * chosen, int(rate * seconds)))
    tables.clear()
    read_rate, write_rate = _disk_rates(context.path)
    return Probe(edges_per_second=rate, read_rate=read_rate, write_rate=write_rate)


def _disk_rates(folder: Path) -> tuple[float, float]:
    """Return bytes per second of reading and of writing, with a file without a name."""
    block = np.random.default_rng(0).bytes(1 << 20)
    with disk_errors(folder), tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        began = time.perf_counter()
        for _ in range(_DISK_BYTES // len(block)):
            file.write(block)
        os.fsync(file.fileno())
        written = time.perf_counter() - began
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        began = time.perf_counter()
        while file.read(len(block)):
            pass
        read = time.perf_counter() - began
    return _DISK_BYTES / read, _DISK_BYTES / written


def _sum(compute: float, beside: float) -> float:
    return compute + beside
