"""Programs of vectors in numba's CUDA simulator: beside the CPU, SciPy and NumPy."""

import json
from typing import Any

import pytest

from tests.cuda_sim.run_vectors import SIZES
from tests.cuda_sim.simulate import outcomes
from tests.processes import SIMULATED, printed_by

pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")

CASES = (
    "Walkers:auto",
    "Walkers:twc:blocks=2:max_fused=4",
    "Features:warp",
    "Nearest:auto",
    "BothWays:auto",
    "Alike:warp",
    "Votes:auto",
    "Features:warp:graph=wide:blocks=40:shuffle=3:max_supersteps=1",
    "Nearest:block:blocks=2:shuffle=1",
    "Votes:edge:blocks=3:shuffle=2",
    "Alike:fused:blocks=2:shuffle=4",
)
STREAMED = {
    "Nearest:auto:graph=wide": "Nearest:auto:graph=wide:device_memory=54500",
    "BothWays:auto:graph=wide": "BothWays:auto:graph=wide:device_memory=327000",
}
CLOCKED = ("Walkers:warp:clocks=1", "Alike:warp:clocks=1")


def outcome(case: str) -> dict[str, Any]:
    return outcomes(*CASES, *STREAMED, *STREAMED.values(), *CLOCKED)[case]


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    """Run what is compared with other libraries, in one process."""
    *_, line = printed_by("-m", "tests.cuda_sim.run_vectors", environment=SIMULATED)
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.parametrize("case", CASES)
def test_vectors_are_those_of_the_cpu(case: str) -> None:
    found = outcome(case)
    assert found["differences"] == []
    assert found["supersteps"][0] == found["supersteps"][1]
    assert found["converged"][0] == found["converged"][1]
    assert found["distinct"] > 3
    assert found["fused_grids"] == []


@pytest.mark.parametrize("resident", list(STREAMED))
def test_vectors_stay_while_rows_are_streamed(resident: str) -> None:
    streamed = outcome(STREAMED[resident])
    assert streamed["differences"] == []
    assert streamed["bytes_copied"] > outcome(resident)["bytes_copied"] + 4 * 900


@pytest.mark.parametrize("kind", ["directed", "undirected"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_sums_are_those_of_a_matrix_whatever_the_length(
    kind: str, dtype: str, alone: dict[str, Any]
) -> None:
    wrong = {size: alone["sums"][kind][f"{dtype} {size}"] for size in SIZES}
    assert max(wrong.values()) <= (1e-13 if dtype == "float64" else 0), wrong


def test_reductions_are_numpy_s(alone: dict[str, Any]) -> None:
    # components are eighths of small numbers: every sum of them is exact
    assert alone["reductions"] == dict.fromkeys(alone["reductions"], 0.0)
    assert len(alone["reductions"]) == 6


def test_the_budget_of_a_device_counts_every_component(alone: dict[str, Any]) -> None:
    # 60 nodes of 130 float64: a state held twice, three arrays of messages at most
    assert "the nodes of Sums need 307." in alone["refusal"]
    assert (
        "raise device_memory, or use device='cpu' and memory in its place"
        in alone["refusal"]
    )


def test_lanes_are_counted_where_they_have_a_component() -> None:
    found = outcome("Walkers:warp:clocks=1")
    entries = sum(visit[2] for visit in found["visits"])
    counted = sum(it["lane_steps"] for it in found["clocks"])
    assert found["differences"] == []
    assert counted == 40 * entries > 0


def test_all_lanes_are_counted_where_they_walk_together() -> None:
    found = outcome("Alike:warp:clocks=1")
    entries = sum(visit[2] for visit in found["visits"])
    counted = sum(it["lane_steps"] for it in found["clocks"])
    assert found["differences"] == []
    assert entries < counted <= 32 * entries  # the third phase stops at the first found
