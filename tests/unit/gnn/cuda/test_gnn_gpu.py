"""Message passing on a real GPU against the CPU's kernels; ``pytest -m gpu``."""

from typing import Any

import pytest

from tests.triton_sim.gnn_cases import CASES, TRAININGS
from tests.triton_sim.run_cases import on_card

pytestmark = pytest.mark.gpu
KERNELS = tuple(case for case in CASES if case.startswith("kernel:"))
ROWS = tuple(case for case in CASES if case.startswith("rows:"))


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, Any]]:
    """Run the interpreter's cases on the GPU; skip without one."""
    return on_card("tests.triton_sim.run_gnn", CASES + TRAININGS)


@pytest.mark.parametrize("case", KERNELS)
def test_kernels_are_those_of_the_cpu(outcomes: dict[str, Any], case: str) -> None:
    found = outcomes[case]
    assert "error" not in found, found["error"]
    assert found["from_cpu"] < 1e-4
    assert found["is_same_again"]


@pytest.mark.parametrize("case", ROWS)
def test_derived_rows_are_those_of_the_host(outcomes: dict[str, Any], case: str) -> None:
    found = outcomes[case]
    assert "error" not in found, found["error"]
    assert found["differs"] < 1e-6


@pytest.mark.parametrize("case", TRAININGS)
def test_trainings_have_the_losses_of_the_cpu(outcomes: dict[str, Any], case: str) -> None:
    found = outcomes[case]
    assert "error" not in found, found["error"]
    expected = pytest.approx(found["cpu_losses"], rel=10 * found["tolerance"])
    assert found["losses"] == expected
