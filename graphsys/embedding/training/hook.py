"""What others may do while a training runs, without the loop knowing them.

A hook overrides what it needs. Hooks are called on the training's thread, in the order in
which they were given; whatever a hook draws it keys by (seed, epoch, edge type, bucket), so
that a resumed run is equal to an unbroken one.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.schedule import BucketTask, Part
from graphsys.embedding.rows.table_files import Floats, Table

if TYPE_CHECKING:
    from graphsys.embedding.training.bucket_trainer import BucketWork


class Training(Protocol):
    """What a hook sees of a training.

    Attributes:
        context: What it is about, with the checkpoint that is being made.
        rates: Factors on the learning rates of rows by partition, float32 ``[N]``; 1 for
            partitions that are left out.
    """

    context: EmbeddingContext
    rates: dict[Part, Floats]

    def measure(self, step: BucketTask, rows: npt.NDArray[np.uint32]) -> float:
        """Return the summed loss of edges of a bucket whose partitions are in memory."""

    def checkpoint(self) -> None:
        """Make everything trained so far durable."""

    def commit(self) -> None:
        """Make a change of the state alone durable."""


class LocalTraining(Training, Protocol):
    """What a hook sees besides where one process trains, with its partitions at hand."""

    @property
    def tables(self) -> Mapping[Part, Table]:
        """Rows and state of the partitions in memory."""

    @property
    def operators(self) -> Mapping[str, Floats]:
        """Parameters and state of every edge type's operators."""

    def gradients(self, work: "BucketWork") -> dict[str, Floats]:
        """Return gradients of a batch of a bucket, and change nothing."""


class Hook:
    """Does nothing; the base of all hooks."""

    def before_bucket(
        self, trainer: Training, epoch: int, step: BucketTask, order: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint32]:
        """Choose which edges of a bucket are trained, before they are shuffled.

        Args:
            trainer: The training.
            epoch: Epochs completed.
            step: The bucket.
            order: Positions in the bucket that the hooks before this one left, uint32.

        Returns:
            Those that are to be trained; ``order`` itself for all. The array is shuffled
            in place, so a selection that is kept must be copied.
        """
        return order

    def before_unit(self, trainer: Training, epoch: int, unit: list[BucketTask]) -> None:
        """See a unit before it is trained, with its partitions in memory."""

    def unit_trained(self, trainer: Training, epoch: int, work: "list[BucketWork]") -> None:
        """See a unit after it was trained, with its partitions in memory."""

    def after_unit(self, trainer: Training) -> None:
        """See the state after a unit; it may not be in a checkpoint yet."""

    def after_epoch(self, trainer: Training) -> bool:
        """See an epoch trained; :meth:`Training.checkpoint` makes it durable.

        Called again by a resume if the epoch was not closed (``RunState.closed_epochs``).

        Returns:
            Whether the training is to end here.
        """
        return False

    def after_training(self, trainer: Training) -> None:
        """See the last checkpoint, before the run is committed as complete."""

    def before_commit(self, trainer: Training) -> None:
        """Make durable what a checkpoint is about to refer to."""
