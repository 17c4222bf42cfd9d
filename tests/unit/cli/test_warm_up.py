"""``graphsys doctor --warm-up``: common commands are run ahead, so that caches are full."""

import json
import subprocess
from pathlib import Path

import pytest

from graphsys.cli.machine import warm_up
from graphsys.cli.main import main
from graphsys.engine.algorithms import ALGORITHMS
from tests.conftest import ROOT


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


def test_the_demo_warms_an_environment_up_once(tmp_path: Path) -> None:
    scripts, programs = tmp_path / "scripts", tmp_path / "venv" / "bin"
    scripts.mkdir()
    programs.mkdir(parents=True)
    (scripts / "demo").write_bytes((ROOT / "scripts" / "demo").read_bytes())
    (scripts / "_venv.sh").write_text(
        f"root={tmp_path} venv={tmp_path}/venv\n"
        "install_graphsys() { touch -d '1 hour ago' $venv/graphsys-installed; }\n"
    )
    for name in ("graphsys", "python"):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/called\n')
        program.chmod(0o755)

    def called(*flags: str) -> list[str]:
        (tmp_path / "called").unlink(missing_ok=True)
        done = subprocess.run(
            ["bash", scripts / "demo", *flags], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return (tmp_path / "called").read_text().splitlines()

    warm = "graphsys doctor --warm-up --json"
    assert warm not in called("--cold")
    words = called("--fresh")
    assert words.index(warm) == 1  # behind --version
    assert any(text.startswith("graphsys train embedding") for text in words[2:])
    assert warm not in called("--fresh")
