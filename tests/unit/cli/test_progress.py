"""Progress is sparse in a log, and drawn on a terminal."""

import io
import sys
from typing import Any

import pytest

from graphsys.cli import progress
from graphsys.cli.progress import BarProgress, LogProgress, open_progress


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_a_pipe_gets_lines_and_a_terminal_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(open_progress(), LogProgress)
    stream: Any = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    assert isinstance(open_progress(), BarProgress)


def test_short_stages_are_silent(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    log = LogProgress()
    log.stage("read", 100, "bytes")
    clock.now += 0.5
    log.advance(100)
    log.close()
    log.close()
    assert capsys.readouterr().err == ""


def test_long_stages_tell_rows_bytes_and_rates(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LogProgress()
    log.stage("read", 4 << 30, "bytes")
    for number in (1, 2, 3):
        clock.now += 10
        log.advance(1 << 30, rows=50_000_000 * number)
    log.stage("sort", unit="edges")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "read: 2.0 GiB of 4.0 GiB, 5.0M rows/s, ETA 20 s",
        "read: 30.0 s, 3.0 GiB of 4.0 GiB, 5.0M rows/s",
    ]


def test_other_figures_are_shown_as_last_told(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LogProgress()
    log.stage("epoch 1", 2_000_000, "edges")
    clock.now += 1
    log.advance(1_000_000, loss=0.5)
    clock.now += 1
    log.advance(1_000_000, loss=0.25)
    log.close()
    assert capsys.readouterr().err == (
        "epoch 1: 2.0 s, 2.0M edges of 2.0M edges, 1.0M edges/s, loss 0.25\n"
    )


def test_bars_draw_and_leave_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_SHORT_S", 0.0)
    bars = BarProgress()
    bars.stage("read", 10, "rows")
    bars.advance(10)
    bars.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "read: 0.0 s, 10 rows of 10 rows" in captured.err
