"""What becomes of a profile whose command is interrupted, fails or meets our fault."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphsys.cli import main as cli


def with_outcome(monkeypatch: pytest.MonkeyPatch, outcome: Any) -> None:
    """Have every command but ``profile`` end so."""
    real = cli.perform

    def perform(arguments: Sequence[str]) -> tuple[int, str | None]:
        if arguments[0] == "profile":
            return real(arguments)
        if isinstance(outcome, Exception):
            raise outcome
        found: tuple[int, str | None] = outcome
        return found

    monkeypatch.setattr(cli, "perform", perform)


def profiled(page: Path) -> int:
    return cli.main(["profile", "-o", str(page), "--level", "L0", "--", "info", "x"])


def test_an_interrupt_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_outcome(monkeypatch, (130, None))
    assert profiled(tmp_path / "r.html") == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [1, 2])
def test_a_failure_is_written_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    with_outcome(monkeypatch, (code, "the loss is nan"))
    assert profiled(tmp_path / "r.html") == 1
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["status"], report["error"]) == ("failed", "the loss is nan")
    assert report["command"] == "graphsys info x"


def test_a_fault_of_ours_is_written_and_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_outcome(monkeypatch, ZeroDivisionError("a fault"))
    with pytest.raises(ZeroDivisionError):
        profiled(tmp_path / "r.html")
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["error"] == "ZeroDivisionError: a fault"


def test_the_old_report_survives_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r.html").write_text("old")
    with_outcome(monkeypatch, (130, None))
    words = ["profile", "-o", str(tmp_path / "r.html"), "--overwrite", "--", "info", "x"]
    assert cli.main(words) == 130
    assert (tmp_path / "r.html").read_text() == "old"
