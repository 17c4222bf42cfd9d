"""The loop of both trainers: epochs of steps, evaluation, checkpoints, the end.

A trainer says what a step is, and what is evaluated; when that happens is said here. A kill
at any moment leaves the last checkpoint, from which the same loop goes on.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

from graphsys.core.compiling import CompileWatch
from graphsys.core.events import span
from graphsys.core.progress import Progress
from graphsys.training.callbacks import Callback, Step, Training
from graphsys.training.checkpoint import explained_full_disk


class TrainingLoop(Training, ABC):
    """Carries a checkpoint to the end.

    Args:
        path: The run's folder; None: nothing is written.
        graph: The graph trained on.
        config: The settings.
        state: The checkpoint to go on from; the training changes it.
        callbacks: Called in this order.
    """

    def __init__(
        self,
        path: Path | None,
        graph: Any,
        config: Any,
        state: Any,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        super().__init__(path, graph, config, state)
        self.callbacks = tuple(callbacks)
        self._saved: tuple[int, int] | None = self.position if state.files else None
        self._saved_s = time.monotonic()

    def run(self, progress: Progress) -> None:
        """Train until all epochs are done, early stopping or a callback ends it.

        Raises:
            TrainingFailedError: The loss is not a number.
            StorageFullError: A checkpoint cannot be written; the one before stays.
        """
        if self.state.is_complete and self.is_over:
            return
        self.state.is_complete = False  # a callback had stopped it
        with (
            explained_full_disk(self.path),
            self.running(),
            CompileWatch() as compiling,
        ):
            self._saved_s = time.monotonic()
            self._call("on_train_start")
            self.close_interrupted_epoch()
            while not (self.is_over or self.is_stopping()):
                with span("epoch", epoch=self.state.epoch):
                    is_whole = self._train_epoch(progress)
                if is_whole:
                    self.close_epoch()
                if self._is_due() and not (self.is_saved or self.is_over):
                    self.checkpoint()
            self.state.metrics["compile_seconds"] = compiling.seconds
            self.finish()
            self._call("on_train_end")
        progress.close()

    def _train_epoch(self, progress: Progress) -> bool:
        """Train the steps of an epoch that are left; return whether all of them."""
        self._call("on_epoch_start")
        if self.is_stopping(within_epoch=True):
            return False
        with closing(self.train_steps(progress)) as steps:
            for step in steps:
                self._call("on_step_end", step)
                self.end_step(step)
                if step.is_last or not step.can_pause:
                    continue
                if self.is_stopping(within_epoch=True):
                    return False
                if self._is_due():
                    self.pause()
        self.end_epoch()
        return True

    def close_epoch(self) -> None:
        """Do what follows an epoch; a kill before the next commit does it again."""
        metrics = self.evaluate()
        if metrics is not None:
            self._time_target(metrics)
            self._call("on_evaluation", metrics)
        self._call("on_epoch_end")

    def checkpoint(self) -> None:
        """Make everything trained so far durable.

        Raises:
            StorageFullError: The disk is full; the checkpoint before stays.
        """
        self.save()
        self._saved, self._saved_s = self.position, time.monotonic()
        self._call("on_checkpoint")

    @property
    def is_saved(self) -> bool:
        """Whether the last checkpoint has all that was trained."""
        return self._saved == self.position

    def is_stopping(self, *, within_epoch: bool = False) -> bool:
        """Return whether a callback wants the training to end here."""
        return self._is_stopping

    @property
    @abstractmethod
    def position(self) -> tuple[int, int]:
        """Epochs completed, and steps of the next one."""

    @property
    @abstractmethod
    def monitored(self) -> tuple[str, bool]:
        """Name of the evaluations' metric that is watched, and whether lower is better."""

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether all epochs are done, or early stopping has ended the training."""

    def running(self) -> AbstractContextManager[object]:
        """Return what has to be open while steps are trained."""
        return nullcontext()

    def close_interrupted_epoch(self) -> None:
        """Do what follows an epoch, where the checkpoint was made in between."""

    @abstractmethod
    def train_steps(self, progress: Progress) -> Generator[Step]:
        """Train the steps of the current epoch that are left, and count them."""

    def end_step(self, step: Step) -> None:
        """Let go of what a step has in memory."""

    @abstractmethod
    def end_epoch(self) -> None:
        """Count an epoch as completed."""

    @abstractmethod
    def evaluate(self) -> Mapping[str, Any] | None:
        """Evaluate where that is due; return what was measured."""

    def pause(self) -> None:
        """Make a checkpoint within an epoch."""
        self.checkpoint()

    @abstractmethod
    def save(self) -> None:
        """Write a checkpoint."""

    @abstractmethod
    def finish(self) -> None:
        """Commit the run as complete."""

    def _time_target(self, metrics: Mapping[str, Any]) -> None:
        """Write down how long the target took, once an evaluation has reached it."""
        target, found = self.config.target, self.state.metrics
        if target is None or found.get("epochs_to_target") is not None:
            return
        name, is_lower_better = self.monitored
        value = metrics[name]
        is_reached = value <= target if is_lower_better else value >= target
        found["epochs_to_target"] = self.epoch if is_reached else None
        if not is_reached:
            return
        found["seconds_to_target"] = self.state.seconds
        if self.state.cpu_seconds:  # that of a cluster's workers is not known
            found["cpu_seconds_to_target"] = self.state.cpu_seconds
        if self.config.stop_at_target:
            self.stop()

    def _is_due(self) -> bool:
        since = time.monotonic() - self._saved_s
        return bool(since >= self.config.checkpoint_seconds)

    def _call(self, event: str, *arguments: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self, *arguments)
