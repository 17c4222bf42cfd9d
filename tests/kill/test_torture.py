"""A few cases of ``scripts/torture``, which goes on for an hour when asked to."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "torture"
FAULTS = ("lost", "crashes", "tracebacks", "silently_wrong", "hangs", "unclear", "litter")


def torture(state: Path, *arguments: str) -> dict[str, Any]:
    """Run it, and return what its state file holds."""
    environment = {**os.environ, "GRAPHSYS_VENV": str(Path(sys.executable).parents[1])}
    ended = subprocess.run(
        [SCRIPT, "--state", state, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    told = json.loads(ended.stdout)
    assert all(told["totals"][name] == 0 for name in FAULTS)
    found: dict[str, Any] = json.loads(state.read_text())
    return {**found, "totals": told["totals"]}


@pytest.mark.kill
def test_killed_writers_leave_the_old_the_new_or_what_can_be_gone_on_from(
    tmp_path: Path,
) -> None:
    """Of appends, ingests that spill, and trainings with a buffer; all end as unbroken."""
    scenes = {
        "append": ("append", "append and delete", "compact"),
        "ingest": ("ingest spilled", "ingest spilled over"),
        "embed": ("embed buffered", "embed seldom"),
    }
    chosen = [word for names in scenes.values() for it in names for word in ("--scene", it)]
    found = torture(tmp_path / "state", *chosen, "--cases", "20", "--seed", "15")
    figures = found["rows"][0]["attacks"]["kills"]
    left = {
        kind: {
            state: sum(figures.get(f"{name}: {state}", 0) for name in names)
            for state in ("old", "new", "part", "none")
        }
        for kind, names in scenes.items()
    }
    assert sum(left["append"].values()) >= 6
    assert left["append"]["old"] > 0
    assert left["append"]["new"] > 0
    assert left["append"]["none"] == left["append"]["part"] == 0
    assert sum(left["ingest"].values()) >= 5
    assert left["ingest"]["part"] == 0
    assert sum(left["embed"].values()) >= 5
    assert left["embed"]["part"] > 0


@pytest.mark.slow
@pytest.mark.kill
def test_kills_and_damage_lose_nothing_and_go_on_where_they_ended(tmp_path: Path) -> None:
    state = tmp_path / "state"
    earlier = {"commit": "0", "attacks": {"kills": {"seconds": 9.5, "kills": 1000}}}
    begun = {"seed": 0, "next": {"kills": 700}, "faults": [], "rows": [earlier]}
    state.write_text(json.dumps(begun))
    found = torture(state, "--only", "kills", "--only", "damage", "--cases", "15")
    assert found["next"] == {"kills": 715, "damage": 15}
    assert found["rows"][0] == earlier
    assert found["totals"]["kills"] >= 1012
    assert found["totals"]["states"] >= 12
    assert found["totals"]["commands"] >= 80
    command = "scripts/torture --state PATH --only kills --only damage --cases 15"
    assert found["rows"][1]["command"] == command
