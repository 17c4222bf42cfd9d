"""Commands of tests stay forks, whatever Ray has set in the process of the tests."""

import os
from pathlib import Path

import pytest

from tests import warm_command


def test_what_ray_sets_asks_for_no_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = warm_command._environment()
    monkeypatch.setenv("RAY_CLIENT_MODE", "0")
    monkeypatch.setenv("PYTHONBREAKPOINT", "ray.util.rpdb.set_trace")
    assert warm_command._environment() == before
    assert warm_command._of_ray()["RAY_CLIENT_MODE"] == "0"
    monkeypatch.setenv("NUMBA_OPT", "0")
    assert warm_command._environment() != before


def test_a_fork_has_the_callers_variables_of_ray(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAY_OLD", "1")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(
            "graphsys.cli.main.main",
            lambda _: os.write(writing, repr(warm_command._of_ray()).encode()) * 0,
        )
        texts = [f"{tmp_path}/out", f"{tmp_path}/err"]
        warm_command._be_the_command([], "/", texts, {"RAY_NEW": "2"})
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as told:
        assert told.read() == "{'RAY_NEW': '2'}"
