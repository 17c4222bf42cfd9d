"""Message passing on a real GPU against the CPU's kernels; ``pytest -m gpu``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import ConfigError, MissingDependencyError
from graphsys.core.triton.device import is_interpreted, require_device

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def outcomes() -> list[dict[str, Any]]:
    """Run the interpreter's cases on the GPU; skip without one."""
    try:
        require_device()
    except (ConfigError, MissingDependencyError) as err:
        pytest.skip(str(err))
    if is_interpreted():
        pytest.skip("TRITON_INTERPRET=1: not a GPU")
    from tests.triton_sim.gnn_cases import CASES, TRAININGS

    done = subprocess.run(
        [sys.executable, "-m", "tests.triton_sim.run_gnn", *CASES, *TRAININGS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_kernels_are_those_of_the_cpu(outcomes: list[dict[str, Any]]) -> None:
    kernels = [row for row in outcomes if "from_cpu" in row]
    assert kernels
    wrong = [r for r in kernels if r["from_cpu"] > 1e-4 or not r["is_same_again"]]
    assert wrong == []


def test_derived_rows_are_those_of_the_host(outcomes: list[dict[str, Any]]) -> None:
    rows = [row for row in outcomes if "differs" in row]
    assert rows
    assert [row for row in rows if row["differs"] > 1e-6] == []


def test_trainings_have_the_losses_of_the_cpu(outcomes: list[dict[str, Any]]) -> None:
    trainings = [row for row in outcomes if "losses" in row]
    assert trainings
    wrong = [
        row
        for row in trainings
        if row["losses"] != pytest.approx(row["cpu_losses"], rel=10 * row["tolerance"])
    ]
    assert wrong == []
