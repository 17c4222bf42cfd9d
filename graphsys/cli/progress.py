"""Progress on stderr: a bar for a person, now and then a line for a log."""

import sys
import time
from typing import Any

from graphsys.cli.console import is_terminal, print_note, visible
from graphsys.core.memory import format_bytes
from graphsys.core.progress import Progress

LOG_INTERVAL_S = 20.0
COMPILE_INTERVAL_S = 5.0
_SHORT_S = 1.0
_COUNTS = ("rows", "edges")
_LEAST_RATE = 10.0  # "1 file/s" tells nobody anything


def open_progress() -> Progress:
    """Return what suits stderr: bars on a terminal, else sparse lines."""
    return BarProgress() if is_terminal(sys.stderr) else LogProgress()


def format_amount(amount: float, unit: str) -> str:
    """Write an amount with its unit.

    Examples:
        >>> format_amount(64_000_000, "edges"), format_amount(2048, "bytes")
        ('64.0M edges', '2.0 KiB')
    """
    if unit == "bytes":
        return format_bytes(amount)
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if amount >= size:
            size = 1e3 if letter == "k" else size
            return f"{amount / size:.1f}{letter} {unit}".rstrip()
    return f"{amount:.0f} {unit}".rstrip()


class _Stage:
    """The numbers of the stage under way.

    A figure called ``rows`` or ``edges`` is a count so far and shown as a rate; any other
    is shown as it was last told.
    """

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        self.name = visible(name)
        self.total = total
        self.unit = unit
        self.done = 0
        self.figures: dict[str, float] = {}
        self.began = time.monotonic()

    def advance(self, steps: int, figures: dict[str, float]) -> None:
        self.done += steps
        self.figures |= figures

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def seconds_left(self) -> float | None:
        if not self.total or not 0 < self.done < self.total:
            return None
        return self.seconds * (self.total - self.done) / self.done

    def describe(self) -> str:
        """Return amounts, rates and figures, for example ``1.0 GiB, 8.2M rows/s``."""
        seconds = max(self.seconds, 1e-9)
        parts = []
        if self.done and self.unit:
            of = f" of {format_amount(self.total, self.unit)}" if self.total else ""
            parts.append(format_amount(self.done, self.unit) + of)
        counts = {name: self.figures[name] for name in _COUNTS if name in self.figures}
        if not counts and self.done and self.unit:
            counts = {self.unit: self.done}
        parts += [
            f"{format_amount(n / seconds, name)}/s"
            for name, n in counts.items()
            if n / seconds >= _LEAST_RATE
        ]
        parts += [
            f"{name} {value:.4g}"
            for name, value in self.figures.items()
            if name not in _COUNTS
        ]
        return ", ".join(parts)


class CompileNotice:
    """Tells of compiling that takes a while; called before each kernel that is compiled."""

    def __init__(self) -> None:
        self._kernels = 0
        self._began = 0.0
        self._next_s = _SHORT_S / 2

    def __call__(self) -> None:
        """Count a kernel, and write a line if the last one is long ago."""
        now = time.monotonic()
        if self._kernels == 0:
            self._began = now
        self._kernels += 1
        if now - self._began >= self._next_s:
            self._next_s = now - self._began + COMPILE_INTERVAL_S
            print_note(
                f"compiling for this processor, on first use only: {self._kernels} kernels "
                f"so far, {now - self._began:.0f} s"
            )


class LogProgress(Progress):
    """Writes a line when a stage that took a while ends, and every 20 s until then."""

    def __init__(self) -> None:
        self._stage: _Stage | None = None
        self._last_line = 0.0

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Begin a stage; tell how the one before went."""
        self.close()
        self._stage = _Stage(name, total, unit)
        self._last_line = self._stage.began

    def advance(self, steps: int, **figures: float) -> None:
        """Count, and write a line if the last one is long ago."""
        stage = self._stage
        if stage is None:
            return
        stage.advance(steps, figures)
        now = time.monotonic()
        if now - self._last_line >= LOG_INTERVAL_S:
            self._last_line = now
            left = stage.seconds_left
            eta = f", ETA {left:.0f} s" if left is not None else ""
            print_note(f"{stage.name}: {stage.describe()}{eta}")

    def close(self) -> None:
        """Tell how the last stage went."""
        stage, self._stage = self._stage, None
        if stage is not None and stage.seconds >= _SHORT_S:
            print_note(f"{stage.name}: {stage.seconds:.1f} s, {stage.describe()}")


class BarProgress(Progress):
    """Draws one bar for the stage under way and leaves a line for each that ended."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._bars: Any = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[detail]}", markup=False),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=8,
        )
        self._stage: _Stage | None = None
        self._task: Any = None

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Begin a stage and its bar."""
        self._end_stage()
        self._stage = _Stage(name, total, unit)
        self._task = self._bars.add_task(self._stage.name, total=total, detail="")
        self._bars.start()

    def advance(self, steps: int, **figures: float) -> None:
        """Move the bar."""
        if self._stage is not None:
            self._stage.advance(steps, figures)
            self._bars.update(self._task, advance=steps, detail=self._stage.describe())

    def close(self) -> None:
        """Take the bar away."""
        self._end_stage()
        self._bars.stop()

    def _end_stage(self) -> None:
        stage, self._stage = self._stage, None
        if stage is None:
            return
        self._bars.remove_task(self._task)
        if stage.seconds >= _SHORT_S:
            line = f"{stage.name}: {stage.seconds:.1f} s, {stage.describe()}"
            self._bars.console.print(line, style="dim", markup=False, highlight=False)
