"""``graphsys doctor --warm-up``: common commands are run ahead, so that caches are full."""

import json
from pathlib import Path

import pytest

from graphsys.cli.machine import warm_up
from graphsys.cli.main import main
from graphsys.engine.algorithms import ALGORITHMS


def test_every_listed_algorithm_is_among_the_commands() -> None:
    run = {words[1] for words in warm_up._graph_commands() if words[0] == "run"}
    assert run == set(ALGORITHMS)


def test_a_second_process_finds_what_was_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ingest = ["ingest", "edges.txt", "-o", "plain"]
    monkeypatch.setattr(warm_up, "_embedding_commands", lambda: iter([ingest]))
    monkeypatch.setattr(warm_up, "_graph_commands", lambda: iter([["info", "--help"]]))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "cache")  # also where commands run elsewhere
    assert main(["doctor", "--warm-up", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["warm_up"]["commands"] == 2
    assert told["warm_up"]["seconds"] > 0
    assert list((tmp_path / "cache").rglob("*.nbi"))


def test_a_command_that_fails_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warm_up, "_embedding_commands", lambda: iter([["info", "none"]]))
    monkeypatch.setattr(warm_up, "_graph_commands", lambda: iter(()))
    assert main(["doctor", "--warm-up"]) == 2
    error = capfd.readouterr().err.splitlines()[-1]
    assert error.startswith("error: graphsys info none failed: error: none ")
