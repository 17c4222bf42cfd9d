"""The Triton kernels in their interpreter (a process of its own) against CPU and torch."""

from functools import cache
from typing import Any

import pytest

from tests.processes import INTERPRETED, rows_of
from tests.triton_sim.cases import CASES

pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")


STEPS = tuple(case for case in CASES if case.startswith("step:"))
BUCKETS = tuple(case for case in CASES if case.startswith("bucket:"))
RUNS = tuple(case for case in CASES if case.startswith("run:"))


@cache
def outcomes() -> dict[str, dict[str, Any]]:
    """Run all cases in one process."""
    words = "tests.triton_sim.run_embedding", *CASES
    return rows_of(*words, environment=INTERPRETED, timeout=1800)


@pytest.mark.parametrize("case", STEPS)
def test_step_is_that_of_the_cpu_and_of_autograd(case: str) -> None:
    found = outcomes()[case]
    assert found["loss"] == pytest.approx(found["torch_loss"], rel=1e-4)
    assert found["loss"] == pytest.approx(found["cpu_loss"], rel=1e-5)
    assert found["from_torch"] < 2e-4
    assert found["from_cpu"] < 1e-4
    assert found["moved"] > 1e-3


@pytest.mark.parametrize("case", BUCKETS)
def test_bucket_is_trained_as_on_the_cpu(case: str) -> None:
    found = outcomes()[case]
    assert found["batches"] > 2
    assert found["loss"] == pytest.approx(found["cpu_loss"], rel=found["tolerance"])
    assert found["moved"] > 0.05
    if "bfloat16" not in case:
        assert found["from_cpu"] < 2e-3
        assert found["operators_from_cpu"] < 2e-3


@pytest.mark.parametrize("case", RUNS)
def test_run_has_the_losses_and_rows_of_the_cpu(case: str) -> None:
    found = outcomes()[case]
    assert found["loss"] == pytest.approx(found["cpu_loss"], rel=found["tolerance"])
    assert found["from_cpu"] < 1e-3
    assert found["held_out_from_cpu"] < 1e-3
    assert found["moved"] > 0  # the loss fell
