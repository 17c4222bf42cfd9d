"""A calibration has a process of its own, which gives its memory back."""

import sys
from pathlib import Path

import pytest

from graphsys.core.errors import ConfigError
from graphsys.core.progress import Progress
from graphsys.planning import rates
from graphsys.planning.rates import known_rates, write_rates
from tests.unit.planning.test_plan import some_rates


class Steps(Progress):
    def __init__(self) -> None:
        self.done = 0

    def advance(self, steps: int, **figures: float) -> None:
        self.done += steps


@pytest.fixture
def measured_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in Python's place."""
    monkeypatch.setenv("GRAPHSYS_CACHE", str(tmp_path / "cache"))
    program = tmp_path / "program"
    program.write_text("")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))

    def here(progress: Progress) -> None:
        pytest.fail("measured in this process")

    monkeypatch.setattr(rates, "calibrate", here)
    return program


def test_rates_come_from_another_process(measured_by: Path, tmp_path: Path) -> None:
    write_rates(some_rates(), tmp_path / "known.json")
    copy = f'cp {tmp_path / "known.json"} "$4"'
    measured_by.write_text(f"#!/bin/sh\necho step\necho step\n{copy}\n")
    steps = Steps()
    assert known_rates(steps) == some_rates()
    assert steps.done == 2
    assert (tmp_path / "cache" / "rates" / "rates.json").exists()


@pytest.mark.parametrize("ending", ["echo no room >&2; exit 3", "echo no room >&2"])
def test_a_calibration_that_ends_without_rates_is_told(
    measured_by: Path, ending: str
) -> None:
    measured_by.write_text(f"#!/bin/sh\n{ending}\n")
    expected = r"^measuring this machine ended with [03] and 'no room', expected rates; see"
    with pytest.raises(ConfigError, match=expected):
        known_rates()
