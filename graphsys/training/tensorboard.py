"""What a training writes for TensorBoard, in the run's folder ``tensorboard``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphsys.core.errors import MissingDependencyError
from graphsys.training.callbacks import Callback, Training
from graphsys.training.number_tally import NUMBERS

FOLDER = "tensorboard"


def find_writer() -> Any:
    """Return the class that writes; before anything of a run is written.

    Raises:
        MissingDependencyError: TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as err:
        raise MissingDependencyError(
            "tensorboard = true needs the package tensorboard, which is not installed; "
            "pip install 'graphsys[tensorboard]'"
        ) from err
    return SummaryWriter


class TensorBoard(Callback):
    """Writes curves and distributions epoch by epoch.

    Args:
        path: The run's folder.
        epoch: Epochs done: what an earlier, killed training wrote after them is hidden.

    Raises:
        MissingDependencyError: TensorBoard is not installed.
    """

    def __init__(self, path: Path, epoch: int) -> None:
        self._writer: Any = find_writer()(str(path / FOLDER), purge_step=epoch + 1)

    def on_evaluation(self, training: Training, metrics: Mapping[str, Any]) -> None:
        """Write what an evaluation found."""
        self._write(training.epoch, metrics)

    def on_epoch_end(self, training: Training) -> None:
        """Write numbers of the epoch, by name, and what was counted in it."""
        self._write(training.epoch, training.curves)
        if training.config.numbers:
            self._write_numbers(training.epoch, training.metrics.get(NUMBERS, ()))

    def on_train_end(self, training: Training) -> None:
        """Write what is waiting and close the file."""
        self._writer.close()

    def _write(self, epoch: int, scalars: Mapping[str, Any]) -> None:
        for name, value in scalars.items():
            if isinstance(value, int | float):
                self._writer.add_scalar(name, value, epoch)

    def _write_numbers(self, epoch: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write distributions of an epoch: a histogram by size, and shares beyond 16 bits.

        Args:
            epoch: From 1.
            rows: As :meth:`~graphsys.training.number_tally.Tally.facts` returns
                them, with ``kind`` and ``layer``.
        """
        for row in rows:
            name = f"{row['kind']}/{row['layer']}"
            for share in (
                "over_float16",
                "under_float16",
                "over_bfloat16",
                "under_bfloat16",
                "odd",
            ):
                self._writer.add_scalar(
                    f"numbers/{share}/{name}", row[f"{share}_share"], epoch
                )
            if row["exponents"]:
                self._write_histogram(f"log2/{name}", row["exponents"], epoch)

    def _write_histogram(
        self, name: str, exponents: Sequence[Sequence[int]], epoch: int
    ) -> None:
        """Write how many numbers have which exponent; bins without any are left out."""
        places, counts = [it[0] for it in exponents], [it[1] for it in exponents]
        pairs = list(zip(places, counts, strict=True))
        self._writer.add_histogram_raw(
            name,
            min=places[0],
            max=places[-1] + 1,
            num=sum(counts),
            sum=sum(k * n for k, n in pairs),
            sum_squares=sum(k * k * n for k, n in pairs),
            bucket_limits=[place + 1 for place in places],
            bucket_counts=counts,
            global_step=epoch,
        )
