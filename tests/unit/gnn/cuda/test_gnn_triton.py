"""Message passing by Triton's interpreter (a process of its own) against the CPU's."""

from functools import cache
from typing import Any

import pytest

from tests.processes import INTERPRETED, rows_of
from tests.triton_sim.gnn_cases import CASES, CHECKS, TRAININGS

pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")

KERNELS = tuple(case for case in CASES if case.startswith("kernel:"))
ROWS = tuple(case for case in CASES if case.startswith("rows:"))


@cache
def outcomes() -> dict[str, dict[str, Any]]:
    """Run all cases in one process."""
    words = "tests.triton_sim.run_gnn", *CASES, *TRAININGS, *CHECKS
    return rows_of(*words, environment=INTERPRETED, timeout=1800)


@pytest.mark.parametrize("case", KERNELS)
def test_values_and_gradients_are_those_of_the_cpu(case: str) -> None:
    found = outcomes()[case]
    assert found["is_on_device"]
    assert found["results"] >= 2
    assert found["from_cpu"] < (1e-12 if case.endswith("float64") else 1e-5)
    assert found["is_same_again"]
    if ":empty:" not in case and ":none:" not in case:
        assert found["largest"] > 0.5


@pytest.mark.parametrize("case", ROWS)
def test_what_is_derived_from_rows_is_that_of_the_host(case: str) -> None:
    assert outcomes()[case]["differs"] < 1e-6


@pytest.mark.parametrize("case", TRAININGS)
def test_training_has_the_losses_of_the_cpu(case: str) -> None:
    found = outcomes()[case]
    assert found["losses"] == pytest.approx(found["cpu_losses"], rel=found["tolerance"])
    assert len(set(found["losses"])) > 1
    assert found.get("metrics_from_cpu", 0) <= found["tolerance"]
    assert found.get("predictions_from_cpu", 0) <= 10 * found["tolerance"]


def test_hot_rows_of_features_are_not_copied() -> None:
    for case, rate in (("sage,cached,prefetch", 0.28), ("gcn,typed,cached", 0.28)):
        on_cpu, on_device = outcomes()[f"training:{case}"]["hit_rates"]
        assert on_cpu is None
        assert rate - 0.05 < on_device < 0.9  # 10 of 36 rows are on the device


def test_gpu_check_leaves_out_what_it_has_no_time_for() -> None:
    outcome = outcomes()[CHECKS[0]]
    assert outcome["late"] == []
    assert "GraphSAGE, 1 batches, graphsys, cpu" in outcome["left_out"]
