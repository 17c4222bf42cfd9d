"""Where slices of buckets are trained: on the CPU, or on a device."""

from collections.abc import Callable
from typing import NamedTuple

from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.training.bucket_trainer import UnitTrainer


class Backend(NamedTuple):
    """What the trainer's loop makes its files and its unit trainer with.

    Attributes:
        files: Takes the arguments of :class:`TableFiles`.
        unit_trainer: Takes those of :class:`UnitTrainer`.
    """

    files: Callable[..., TableFiles] = TableFiles
    unit_trainer: Callable[..., UnitTrainer] = UnitTrainer
