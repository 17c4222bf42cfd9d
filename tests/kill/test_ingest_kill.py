"""Five kills of an ingest; ``scripts/kill_ingest`` makes fifty."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "kill_ingest"


@pytest.mark.kill
def test_a_killed_ingest_leaves_the_old_graph_or_the_new_one(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-P", str(SCRIPT), "--kills", "5", "--json", str(report)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(report.read_text())
    assert found["kills"] == 5
    assert sum(found["left_after_fresh"].values()) == 3
    assert sum(found["left_after_overwrite"].values()) == 2
