"""A unit trained on the device: the trainer's loop and buffer stay, the slices go there."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from graphsys.core.errors import BudgetError
from graphsys.core.triton.device import require_device
from graphsys.embedding import run as runs
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.schedule import BucketTask, Part
from graphsys.embedding.model import RelationSet
from graphsys.embedding.rows.table_files import Table, TableFiles
from graphsys.embedding.training.bucket_trainer import BucketTrainer, BucketWork
from graphsys.embedding.training.cuda.support import require_supported
from graphsys.embedding.training.cuda.trainer import DeviceTrainer
from graphsys.embedding.training.objective import objective_of
from graphsys.embedding.training.trainer import Backend
from graphsys.kernels.cpu.embedding.calls import Objective


class DeviceFiles(TableFiles):
    """Files whose partitions are uploaded as soon as they are read.

    The host's buffer calls from its own thread, so an upload, or a download before a
    partition is written, runs beside the training of others.

    Args:
        device: Where partitions are trained.
        arguments: Those of :class:`TableFiles`.
    """

    def __init__(self, device: DeviceTrainer, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._device = device

    def load(self, part: Part) -> Table:
        """Read a partition, begin its upload, and drop from the device what has left."""
        table = super().load(part)
        for old in self._device.partitions.parts - set(self._device.held):
            self._device.partitions.drop(old)
        with _explained():
            self._device.partitions.load(part, *table)
        return table

    def store(self, part: Part, table: Table) -> None:
        """Bring a partition back from the device and write it."""
        self._device.partitions.store(part, *table)
        super().store(part, table)

    def flush(self, state: runs.EmbeddingRunState) -> None:
        """Bring the operators back, too, and make everything durable."""
        self._device.store_operators()
        super().flush(state)


class DeviceBucketTrainer(BucketTrainer):
    """Trains the slices of a unit on the device.

    Args:
        device: Where.
        arguments: Those of :class:`BucketTrainer`.
    """

    def __init__(self, device: DeviceTrainer, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._device = device
        device.held = self.tables
        self.num_workers = 1

    def _train_slice(
        self, pool: ThreadPoolExecutor, bucket: BucketWork, first: int, last: int
    ) -> None:
        step, relations = bucket.step, self.model[bucket.step.edge_type]
        with _explained():
            self._device.train_slice(
                relations.name,
                (step.src, step.dst),
                (self.tables[step.src], self.tables[step.dst]),
                relations.operators(self.operators[relations.name]),
                bucket.edges,
                bucket.settings,
                bucket.losses,
                first,
                last,
            )

    def _objective(self, relations: RelationSet) -> Objective:
        return objective_of(self.config)  # the kernels are the device's own

    def _refresh(self, step: BucketTask) -> None:
        for part in {step.src, step.dst}:
            self._device.partitions.store(part, *self.tables[part])
        self._device.store_operators()


@contextmanager
def _explained() -> Iterator[None]:
    """Say what to do when the device's memory is full."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as err:
        raise BudgetError(
            "device='cuda': partitions and batches do not fit in the device's memory; "
            "ingest with more partitions, or lower batch_size or buffer_partitions"
        ) from err


def cuda_backend(config: EmbeddingConfig) -> Backend:
    """Return what the trainer's loop needs to train on a CUDA device.

    Raises:
        ConfigError: A setting that no kernel knows, or there is no device.
        MissingDependencyError: Triton is not installed.
    """
    require_supported(config)
    require_device()
    device = DeviceTrainer(config.dim, is_bfloat16=config.row_dtype == "bfloat16")
    return Backend(
        files=partial(DeviceFiles, device),
        bucket_trainer=partial(DeviceBucketTrainer, device),
    )
