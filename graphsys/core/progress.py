"""How long work tells how far it is; the command line draws it, a library is silent."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from graphsys.core.notebook.progress_line import ProgressLine, cell_number

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
