"""What a training writes for TensorBoard, in the run's folder ``tensorboard``."""

from pathlib import Path
from typing import Any

from graphsys.core.errors import MissingDependencyError
from graphsys.gnn.config import GnnConfig

FOLDER = "tensorboard"


class Board:
    """Writes scalars epoch by epoch; nothing unless the config asks for it.

    Args:
        path: The run's folder, or None.
        config: The settings.
        epoch: Epochs done: what an earlier, killed training wrote after them is hidden.

    Raises:
        MissingDependencyError: TensorBoard is not installed.
    """

    def __init__(self, path: Path | None, config: GnnConfig, epoch: int) -> None:
        self._writer: Any = None
        if path is None or not config.tensorboard:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as err:
            raise MissingDependencyError(
                "tensorboard = true needs the package tensorboard, which is not installed; "
                "pip install 'graphsys[tensorboard]'"
            ) from err
        self._writer = SummaryWriter(str(path / FOLDER), purge_step=epoch + 1)

    def write(self, epoch: int, scalars: dict[str, float]) -> None:
        """Note numbers of an epoch, by name."""
        if self._writer is not None:
            for name, value in scalars.items():
                self._writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Write what is waiting and close the file."""
        if self._writer is not None:
            self._writer.close()
