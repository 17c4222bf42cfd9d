"""Running cases in numba's CUDA simulator, in a process that chooses it."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@cache
def outcomes(*cases: str) -> dict[str, dict[str, Any]]:
    """Run all cases in one process of its own, so that each program is lowered once."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cuda_sim.run_simulator", *cases],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["case"]: row for row in rows}
