"""A dozen kills of appends and compactions; ``scripts/kill_append`` makes two hundred."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "kill_append"


@pytest.mark.kill
def test_a_killed_append_leaves_the_old_graph_or_the_new_one(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-P", str(SCRIPT), "--kills", "6", "--json", str(report)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(report.read_text())
    counts = [n for left in found["left"].values() for n in left.values()]
    assert sum(counts) == found["kills"] == 6
    states = {state for left in found["left"].values() for state in left}
    assert {"old", "new"} <= states
