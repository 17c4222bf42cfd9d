"""Where slices of buckets are trained: on the CPU, or on a device."""

from collections.abc import Callable
from typing import NamedTuple

from graphsys.core.errors import ConfigError
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.tables import TableFiles
from graphsys.embedding.unit import UnitTrainer


class Backend(NamedTuple):
    """What the trainer's loop makes its files and its unit trainer with.

    Attributes:
        files: Takes the arguments of :class:`TableFiles`.
        unit_trainer: Takes those of :class:`UnitTrainer`.
    """

    files: Callable[..., TableFiles] = TableFiles
    unit_trainer: Callable[..., UnitTrainer] = UnitTrainer


def open_backend(device: str, config: EmbeddingConfig) -> Backend:
    """Return the backend of a device by name.

    Raises:
        ConfigError: There is no such device, here or at all, or it lacks a setting.
        MissingDependencyError: A package for it is not installed.
    """
    if device == "cpu":
        return Backend()
    if device != "cuda":
        raise ConfigError(f"--device: got {device!r}, expected cpu or cuda")
    from graphsys.embedding.cuda.unit import cuda_backend

    return cuda_backend(config)
