"""What tests ask of processes is itself tested where it went wrong before."""

import subprocess

import pytest

from tests.processes import descendants


def test_children_may_have_smaller_numbers_than_their_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As they have where numbers have begun anew at the largest one."""
    rows = [
        "  7 9001 ray::RemoteWorker.run",
        " 12 7 sh -c x y",
        "9000 1 cli",
        "9001 9000 raylet",
    ]
    listed = "\n".join(rows)

    def run(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 0, stdout=listed)

    monkeypatch.setattr(subprocess, "run", run)
    assert sorted(descendants(9000)) == [
        (7, "ray::RemoteWorker.run"),
        (12, "sh -c x y"),
        (9001, "raylet"),
    ]
    assert descendants(12) == []
