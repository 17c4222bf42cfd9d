"""``graphsys doctor --warm-up``: common commands are run ahead, so that caches are full."""

import json
from pathlib import Path

import pytest

from graphsys.cli.machine import warm_up
from graphsys.cli.main import main
from graphsys.engine.algorithms import ALGORITHMS
from tests.conftest import Call, Run


def test_every_listed_algorithm_is_run_on_its_example() -> None:
    run = [words[1] for words in warm_up.algorithm_commands() if words[0] == "run"]
    assert run == sorted(ALGORITHMS)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the commands read, and the graphs of examples."""
    folder = tmp_path_factory.mktemp("warm-up")
    warm_up.write_inputs(folder)
    return folder


@pytest.mark.filterwarnings("default")  # what a command prints
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_an_algorithm_ends_on_its_example(
    name: str, inputs: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(inputs)
    for words in warm_up.algorithm_commands([name]):
        if words[0] == "dataset" and (inputs / words[words.index("-o") + 1]).exists():
            continue
        code, _, err = call(*words)
        assert code == 0, err


KINDS = ("embedding", "graph", "network")


def test_no_command_is_run_ahead_that_these_tests_do_not_run() -> None:
    listed = [words for chain in warm_up.command_chains() for words in chain]
    kinds = [getattr(warm_up, f"{kind}_commands")() for kind in (*KINDS, "algorithm")]
    assert sorted(listed) == sorted(words for commands in kinds for words in commands)


@pytest.mark.parametrize("kind", KINDS)
def test_other_commands_end_well(kind: str, inputs: Path, run_cli: Run) -> None:
    for words in getattr(warm_up, f"{kind}_commands")():
        done = run_cli(*words, cwd=inputs)
        assert done.returncode == 0, done.stderr


def chosen(monkeypatch: pytest.MonkeyPatch, *commands: list[str]) -> None:
    """Have the warm-up run these commands alone."""
    monkeypatch.setattr(warm_up, "command_chains", lambda: [[words] for words in commands])


def test_a_second_process_finds_what_was_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    chosen(monkeypatch, ["ingest", "edges.txt", "-o", "plain"], ["info", "--help"])
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "cache")  # also where commands run elsewhere
    assert main(["doctor", "--warm-up", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)["warm_up"]
    assert report["commands"] == 2
    assert report["seconds"] > 0
    assert report["failed"] == []
    assert list((tmp_path / "cache").rglob("*.nbi"))


def test_what_fails_is_reported_and_the_rest_is_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    chosen(monkeypatch, ["info", "none"], ["info", "--help"])
    assert main(["doctor", "--warm-up", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)["warm_up"]
    assert report["commands"] == 2
    [failure] = report["failed"]
    assert failure["command"] == "graphsys info none"
    assert failure["reason"].startswith("error: none ")
    assert main(["doctor", "--warm-up"]) == 0
    assert "not warmed up: graphsys info none" in capfd.readouterr().out
