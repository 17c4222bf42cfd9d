"""Five kills of a training; ``scripts/kill_training`` makes fifty."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "kill_training"


@pytest.mark.kill
def test_a_killed_training_resumes_to_the_same_bits(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-P", str(SCRIPT), "--kills", "5", "--json", str(report)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(report.read_text())
    assert found["kills"] >= 5
    # a kill before the first checkpoint, or after the end, tries nothing
    assert found["kills_with_a_checkpoint_to_go_on_from"] >= 1
    assert found["checkpoints_seen"] >= 1
    assert found["completed_runs_equal"] >= 1
