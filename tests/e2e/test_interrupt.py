"""Ctrl-C: what is kept is said, with the command that goes on."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import Run

pytestmark = pytest.mark.e2e
TRAIN = ("--set", "dim=4", "--set", "epochs=250", "--set", "eval_fraction=0")


@pytest.fixture
def graph(tmp_path: Path, run_cli: Run) -> Path:
    lines = [f"{k} {(k * 7 + j) % 50}" for k in range(50) for j in (1, 2, 5)]
    (tmp_path / "edges.txt").write_text("\n".join(lines))
    done = run_cli("ingest", tmp_path / "edges.txt", "-o", tmp_path / "graph")
    assert done.returncode == 0, done.stderr
    return tmp_path / "graph"


def interrupted(command: list[str], sign: Path) -> tuple[int, str]:
    """Start a command, interrupt it once a file is there; return code and stderr."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not sign.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    return process.returncode, error


def test_an_interrupted_training_says_how_to_go_on(
    graph: Path, tmp_path: Path, graphsys_command: str, run_cli: Run
) -> None:
    out = tmp_path / "run"
    command = [graphsys_command, "train", "embedding", str(graph), "-o", str(out), *TRAIN]
    code, error = interrupted(command, out / "run.json")
    assert code == 130, error
    line = next(it for it in error.splitlines() if it.startswith("interrupted: "))
    assert f"{out} keeps " in line
    assert line.endswith(f"go on with graphsys train embedding {graph} -o {out} --resume")
    assert "Traceback" not in error
    again = run_cli("train", "embedding", graph, "-o", out, "--resume", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["epochs"] == 250


def test_an_interrupted_run_says_what_its_checkpoint_keeps(
    graph: Path, tmp_path: Path, graphsys_command: str
) -> None:
    kept = tmp_path / "kept"
    (tmp_path / "slow.py").write_text(SLOW)
    command = [
        graphsys_command,
        "run",
        str(tmp_path / "slow.py"),
        str(graph),
        "-o",
        str(tmp_path / "x.csv"),
        "--checkpoint",
        str(kept),
        "--checkpoint-every",
        "1",
    ]
    code, error = interrupted(command, kept / "checkpoint.json")
    assert code == 130, error
    assert f"interrupted: {kept} keeps the last checkpoint; go on by the same" in error
    assert "Traceback" not in error
    assert not (tmp_path / "x.csv").exists()


SLOW = """
import time

import graphsys as gs


class Slow(gs.VertexProgram):
    value = gs.state("float64", default=1.0)
    combine = gs.sum

    def message(self, src, edge):
        return src.value

    def update(self, node, message):
        return message / 3.0

    def until(self, totals):
        time.sleep(0.05)
        return False
"""
