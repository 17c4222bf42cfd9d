"""Where slices of buckets are trained: on the CPU, or on a device."""

from collections.abc import Callable
from typing import NamedTuple

from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.training.bucket_trainer import BucketTrainer


class Backend(NamedTuple):
    """What the trainer's loop makes its files and its bucket trainer with.

    Attributes:
        files: Takes the arguments of :class:`TableFiles`.
        bucket_trainer: Takes those of :class:`BucketTrainer`.
    """

    files: Callable[..., TableFiles] = TableFiles
    bucket_trainer: Callable[..., BucketTrainer] = BucketTrainer
