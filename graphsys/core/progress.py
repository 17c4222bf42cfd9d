"""How long work tells how far it is; the command line draws it, a library is silent.

Nothing here imports IPython unless a notebook runs, which has it.
"""

import contextlib
import html
import sys
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

_EVERY_S = 0.2
_FIRST_S = 0.5
_COUNTS = ("rows", "edges")


_FIGURES: ContextVar[dict[str, float] | None] = ContextVar("figures", default=None)


class Progress:
    """Receives stages and steps; this base class ignores them."""

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Begin a stage; the one before has ended.

        Args:
            name: What is done ("read", "sort", "epoch 3").
            total: Steps until the end, where known.
            unit: What one step is ("bytes", "edges", "buckets").
        """

    def advance(self, steps: int, **figures: float) -> None:
        """Say that ``steps`` more are done, with figures to show (``loss=0.3``)."""

    def close(self) -> None:
        """End the last stage."""

    @property
    def is_heard(self) -> bool:
        """Whether it tells anybody: ticking for nobody is no use."""
        return type(self) is not Progress


class NotebookProgress(Progress):
    """Shows a line in the cell of a notebook that runs; anywhere else it is silent."""

    def __init__(self) -> None:
        self._line: ProgressLine | None = None

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Begin a stage; a new cell gets a line of its own."""
        cell = cell_number()
        if cell is None:
            return
        if self._line is None or self._line.cell != cell:
            self._line = ProgressLine(cell)
        self._line.begin(name, total, unit)

    def advance(self, steps: int, **figures: float) -> None:
        """Count, and write the line anew if the last time is long ago."""
        if self._line is not None:
            self._line.advance(steps, figures)

    def close(self) -> None:
        """Leave the line as it is at the end."""
        line, self._line = self._line, None
        if line is not None:
            line.end()

    @property
    def is_heard(self) -> bool:
        """Whether a notebook's cell runs."""
        return cell_number() is not None


SILENT = Progress()
IN_NOTEBOOKS: Progress = NotebookProgress()
"""What long work takes that was given no other: silent but in notebooks."""


@contextlib.contextmanager
def collected_figures() -> Iterator[dict[str, float]]:
    """Collect what :func:`tell_figures` is told in a block, the last of each name."""
    figures: dict[str, float] = {}
    token = _FIGURES.set(figures)
    try:
        yield figures
    finally:
        _FIGURES.reset(token)


def tell_figures(**figures: float) -> None:
    """Say how far work is that knows of no :class:`Progress` (``level=3``).

    Whoever runs it and has one shows them with its next step; else nobody does.
    """
    found = _FIGURES.get()
    if found is not None:
        found.update(figures)


def cell_number() -> int | None:
    """Return the number of the notebook's cell that runs, None outside of notebooks."""
    if "ipykernel" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    is_notebook = type(shell).__name__ == "ZMQInteractiveShell"
    return int(shell.execution_count) if is_notebook else None


class Display(Protocol):
    """A place of a cell's output that is written over."""

    def update(self, shown: Any) -> None:
        """Show this there."""


class ProgressLine:
    """The stage under way, as a line of the cell: what is done, figures, seconds.

    A stage that is over within half a second is not shown.
    """

    def __init__(self, cell: int) -> None:
        self.cell = cell
        self._display: Display | None = None
        self._shown = 0.0
        self.begin("", None, "")

    def begin(self, name: str, total: int | None, unit: str) -> None:
        """Begin a stage; the last words of the one before stay until it is shown."""
        if self._display is not None:
            self._show()
        self.name, self.total, self.unit = name, total, unit
        self.done, self.figures, self.began = 0, dict[str, float](), time.monotonic()

    def advance(self, steps: int, figures: Mapping[str, float]) -> None:
        """Count, and show it if that is due."""
        self.done += steps
        self.figures |= figures
        now = time.monotonic()
        if now - self._shown >= _EVERY_S and now - self.began >= _FIRST_S:
            self._show()

    def end(self) -> None:
        """Show the last stage as it ended, if anything was shown."""
        if self._display is not None:
            self._show()

    def text(self) -> str:
        """Return what the line says."""
        parts = [self.name]
        if self.done and self.unit:
            of = f" of {self.total:,}" if self.total else ""
            parts.append(f"{self.done:,}{of} {self.unit}")
        parts += [
            f"{name} {value:,.0f}" if name in _COUNTS else f"{name} {value:.4g}"
            for name, value in self.figures.items()
        ]
        return ", ".join([*parts, f"{time.monotonic() - self.began:.0f} s"])

    def _show(self) -> None:
        self._shown = time.monotonic()
        if self._display is None:
            self._display = _new_display()
        self._display.update(_Line(self.text()))


class _Line:
    """A line of text that a notebook shows, as text and as HTML."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<small>{html.escape(self._text)}</small>"


def _new_display() -> Display:
    from IPython.display import display

    made: Display = display(_Line(""), display_id=True)
    return made
