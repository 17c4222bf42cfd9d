"""What ends a training from outside: progress and callbacks that count its steps."""

import shutil
from pathlib import Path

from graphsys.core.progress import Progress
from graphsys.training.callbacks import Callback, Step, Training


class Interrupt(Progress):
    """Stops a training after so many steps of progress."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def advance(self, steps: int, **figures: float) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise KeyboardInterrupt


class RemoveAt(Progress):
    """Removes the run when so many batches or buckets are trained."""

    def __init__(self, path: Path, steps: int) -> None:
        self.path, self.left = path, steps

    def advance(self, steps: int, **figures: float) -> None:
        self.left -= 1
        if self.left == 0:
            shutil.rmtree(self.path)


class Ends(Callback):
    """Ends a training, or breaks it, after so many steps."""

    def __init__(self, num_steps: int, err: BaseException | None = None) -> None:
        self._left, self._err = num_steps, err

    def on_step_end(self, training: Training, step: Step) -> None:
        self._left -= 1
        if self._left:
            return
        if self._err is not None:
            raise self._err
        training.stop()
