"""What a training tells when it ends."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsys.core.notebook.tables import fields_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class TrainReport:
    """What a training run did.

    Attributes:
        run: The run's folder; for a dry run, where it would be.
        epochs: Epochs completed, over all resumptions.
        seconds: Time spent training, over all resumptions; of networks evaluation apart.
        edges_per_second: Edges trained in that time; of networks entries of blocks.
        metrics: Of embeddings the mean loss per edge of the last epoch (``loss``) and
            evaluations while training (``valid_mrr``); of networks ``loss`` (with side
            tasks also ``task_loss`` and one of each, before weights),
            ``valid_loss`` and ``valid_accuracy`` of the best epoch, and seconds of
            sampling, gathering, forward, backward and step. Both have ``compile_seconds``
            (of the last command, in its own process: kernels, on first use only),
            ``overlap_alpha``,
            ``epochs_to_target``, ``seconds_to_target`` and ``cpu_seconds_to_target`` where
            there is a ``target`` (None: not reached; training alone, without evaluations),
            bytes read and written, memory planned and reached; a dry run has the plan, and
            the time that it is estimated to take.
    """

    run: Path
    epochs: int
    seconds: float
    edges_per_second: float
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def plot(self, *, axes: "Axes | None" = None) -> "Axes":
        """Draw losses and evaluations over the epochs by matplotlib (extra ``plot``).

        Args:
            axes: Where to draw; axes of a new figure by default.

        Returns:
            The axes of the losses; ``axes.figure.savefig("losses.png")`` keeps them.

        Raises:
            ConfigError: There is no run, as after a dry run.
            MissingDependencyError: matplotlib is not installed.
        """
        from graphsys.training.history import history

        return history(self.run).plot(axes=axes)

    def _repr_html_(self) -> str:
        facts = {
            "epochs": self.epochs,
            "seconds": self.seconds,
            "edges per second": round(self.edges_per_second),
        }
        return fields_table(str(self.run), {**facts, **self.metrics})


def report_of(out: Path, state: Any) -> TrainReport:
    """Return what a training reports when it ends.

    Args:
        out: The run's folder.
        state: Its last checkpoint.
    """
    speed = state.num_edges / state.seconds if state.seconds else 0.0
    return TrainReport(
        run=out,
        epochs=state.epoch,
        seconds=state.seconds,
        edges_per_second=speed if math.isfinite(speed) else 0.0,
        metrics=dict(state.metrics),
    )
