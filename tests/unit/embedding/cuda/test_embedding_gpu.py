"""The embedding trainer on a real GPU against the CPU's kernels; ``pytest -m gpu``."""

from typing import Any

import pytest

from tests.triton_sim.cases import CASES
from tests.triton_sim.run_cases import on_card

pytestmark = pytest.mark.gpu
STEPS = tuple(case for case in CASES if case.startswith("step:"))
OTHERS = tuple(case for case in CASES if not case.startswith("step:"))


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, Any]]:
    """Run the interpreter's cases on the GPU; skip without one."""
    return on_card("tests.triton_sim.run_embedding", CASES)


@pytest.mark.parametrize("case", STEPS)
def test_step_is_that_of_autograd(outcomes: dict[str, Any], case: str) -> None:
    found = outcomes[case]
    assert "error" not in found, found["error"]
    assert found["from_torch"] < 1e-3
    assert found["moved"] > 1e-3


@pytest.mark.parametrize("case", OTHERS)
def test_buckets_and_runs_have_the_losses_of_the_cpu(
    outcomes: dict[str, Any], case: str
) -> None:
    found = outcomes[case]
    assert "error" not in found, found["error"]
    assert found["loss"] == pytest.approx(found["cpu_loss"], rel=found["tolerance"])
