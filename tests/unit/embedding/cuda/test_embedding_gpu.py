"""The embedding trainer on a real GPU against the CPU's kernels; ``pytest -m gpu``."""

import subprocess
import sys
from pathlib import Path

import pytest

from graphsys.core.errors import ConfigError, MissingDependencyError
from graphsys.core.triton.device import is_interpreted, require_device

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, object]]:
    """Run the interpreter's cases on the GPU; skip without one."""
    import json

    try:
        require_device()
    except (ConfigError, MissingDependencyError) as err:
        pytest.skip(str(err))
    if is_interpreted():
        pytest.skip("TRITON_INTERPRET=1: not a GPU")
    from tests.triton_sim.cases import CASES

    done = subprocess.run(
        [sys.executable, "-m", "tests.triton_sim.run_embedding", *CASES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["case"]: row for row in rows}


def test_steps_are_those_of_autograd(outcomes: dict[str, dict[str, float]]) -> None:
    wrong = {
        case: row
        for case, row in outcomes.items()
        if case.startswith("step:") and (row["from_torch"] > 1e-3 or row["moved"] < 1e-3)
    }
    assert wrong == {}


def test_buckets_and_runs_have_the_losses_of_the_cpu(
    outcomes: dict[str, dict[str, float]],
) -> None:
    wrong = {
        case: row
        for case, row in outcomes.items()
        if not case.startswith("step:")
        and abs(row["loss"] / row["cpu_loss"] - 1) > row["tolerance"]
    }
    assert wrong == {}
