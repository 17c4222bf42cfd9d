"""Commands that results state are run again as they were typed."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module, imported as scripts/measure_again does."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("bench.again")


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ("scripts/a --only 50M distinct, 100M --save", ["--only", "50M distinct, 100M"]),
        ("scripts/a --folder --rounds 5 --save", ["--folder", "w/a", "--rounds", "5"]),
        ("scripts/a --state FOLDER --save", ["--state", "w/a"]),
        ("scripts/a --scale 20 FOLDER --save", ["--scale", "20", "w/a"]),
    ],
)
def test_stated_commands_become_words(again: Any, stated: str, words: list[str]) -> None:
    assert again.runnable(stated, Path("w")) == ["scripts/a", *words, "--save"]


def test_a_folder_at_the_end_of_a_command_is_given(again: Any) -> None:
    words = again.runnable("scripts/a --folder", Path("w"))
    assert words == ["scripts/a", "--folder", "w/a"]


def test_what_is_measured_on_any_machine_is_not_measured_again(
    again: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for machine, commit in (("intel", "old"), ("amd", "new")):
        rows = [{"command": "scripts/bench/run ingest --save", "commit": commit}]
        rows += [{"command": "scripts/bench/run ingest --only a --save", "commit": "old"}]
        path = tmp_path / f"ingest_{machine}-2c_202611.json"
        path.write_text(json.dumps({"rows": rows}))
    shares = {"old": 0.5, "new": 0.01}
    monkeypatch.setattr(again, "RESULTS", tmp_path)
    monkeypatch.setattr(again, "_changed", lambda commit, _measured: shares[commit])
    assert list(again.stale_commands()) == ["scripts/bench/run ingest --only a --save"]


def test_every_committed_result_can_be_read_for_its_commands(
    again: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "_changed", lambda _commit, _measured: 1.0)
    for command in again.stale_commands():
        script, *_ = again.runnable(command, Path("w"))
        assert (ROOT / script).is_file(), command
