"""Callbacks: what users, and the trainers themselves, do while a training runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsys.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step that was trained: a batch of a network, a group of buckets of an embedding.

    Attributes:
        number: Its place in the epoch, from 0.
        num_edges: Edges trained; of a network entries of its blocks.
        loss: Mean loss.
        is_last: Whether the epoch is trained with it.
        can_pause: Whether a checkpoint, or the end of the training, may follow it.
        work: What was trained, which the trainer lets go after the step: a
            :class:`~graphsys.gnn.data.loader.Batch`, or the buckets.
    """

    number: int
    num_edges: int
    loss: float
    is_last: bool
    can_pause: bool = True
    work: Any = None


class Training:
    """A training that runs, as a callback sees it.

    Attributes:
        path: The run's folder; None where nothing is written.
        graph: The graph trained on.
        config: The settings.
        state: What the next checkpoint says in ``run.json``; to be read only.
    """

    def __init__(self, path: Path | None, graph: Any, config: Any, state: Any) -> None:
        self.path, self.graph, self.config, self.state = path, graph, config, state
        self._is_stopping = False

    @property
    def epoch(self) -> int:
        """Epochs completed."""
        return int(self.state.epoch)

    @property
    def seconds(self) -> float:
        """Time spent training so far, over all resumptions."""
        return float(self.state.seconds)

    @property
    def losses(self) -> tuple[float, ...]:
        """Mean loss of every completed epoch."""
        return tuple(self.state.losses)

    @property
    def metrics(self) -> dict[str, Any]:
        """A copy of the metrics so far, as a :class:`TrainReport` has them."""
        return dict(self.state.metrics)

    @property
    def monitored(self) -> tuple[str, bool]:
        """Name of the evaluations' metric that is watched, and whether lower is better."""
        raise NotImplementedError

    @property
    def curves(self) -> dict[str, float]:
        """Numbers of the last epoch, by name."""
        return {}

    def stop(self) -> None:
        """End the training after this step, or this epoch where several processes train.

        The run is complete then: it can be evaluated and asked. A resume trains the epochs
        that are left, as if nobody had stopped it.
        """
        self._is_stopping = True


class Callback:
    """Is called while a training runs: override what you need.

    Callbacks are called in the order in which they are given, on the thread that trains;
    where several processes train, in the first alone. On a cluster, networks call copies
    in the first worker; embeddings, whose workers train buckets alone, call them in the
    process that asked. They are not part of a run: a resume has those that it is given.
    What one raises ends the training, and the last checkpoint stays.
    """

    def on_train_start(self, training: Training) -> None:
        """See the training before its first step, or before a resume's first."""

    def on_epoch_start(self, training: Training) -> None:
        """See an epoch begin, or go on; ``training.epoch`` is its number from 0."""

    def on_step_end(self, training: Training, step: Step) -> None:
        """See a step that was trained."""

    def on_evaluation(self, training: Training, metrics: Mapping[str, Any]) -> None:
        """See an evaluation while training: ``eval_every`` says after which epochs.

        Args:
            training: The training.
            metrics: What was measured, by split and name, such as ``valid_mrr``.
        """

    def on_epoch_end(self, training: Training) -> None:
        """See an epoch trained and evaluated; ``training.epoch`` counts it.

        Called again by a resume where the training was killed in between.
        """

    def on_checkpoint(self, training: Training) -> None:
        """See a checkpoint that was committed to ``training.path``."""

    def on_train_end(self, training: Training) -> None:
        """See the run complete; not called where the training fails."""


def require_callbacks(callbacks: object) -> None:
    """Check what a program gives as callbacks, before a run is begun.

    Raises:
        ConfigError: It is no list of objects of :class:`Callback`.
    """
    found = callbacks if isinstance(callbacks, Sequence) else (callbacks,)
    odd = [it for it in found if not isinstance(it, Callback)]
    if odd or found is not callbacks:
        it = odd[0] if odd else callbacks
        shown = f"the class {it.__name__}" if isinstance(it, type) else type(it).__name__
        raise ConfigError(
            f"callbacks: got {shown}, expected a list of objects of classes that derive "
            "from Callback, such as callbacks=[MyCallback()]"
        )
