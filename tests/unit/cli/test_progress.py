"""Progress is sparse in a log, and drawn on a terminal."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphsys.cli import progress
from graphsys.cli.progress import BarProgress, CompileNotice, LogProgress, open_progress


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


def test_compiling_that_takes_a_while_is_told_now_and_then(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    notice = CompileNotice()
    clock.now = 100.0
    notice()
    clock.now += 0.2
    notice()
    assert capsys.readouterr().err == ""
    for _ in range(16):
        clock.now += 0.5
        notice()
    assert capsys.readouterr().err.splitlines() == [
        "compiling for this processor, on first use only: 3 kernels so far, 1 s",
        "compiling for this processor, on first use only: 13 kernels so far, 6 s",
    ]


def test_an_empty_cache_is_told_of_and_a_full_one_is_not(tmp_path: Path) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("0 1\n1 2\n2 0\n")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run(
            [sys.executable, "-m", "graphsys", "ingest", edges, "-o", tmp_path / name],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        for name in ("cold", "warm")
    ]
    assert "compiling for this processor, on first use only: " in said[0]
    assert "compiling" not in said[1]
