"""CUDA kernels in numba's simulator (a process of its own) against the CPU's results."""

from typing import Any

import pytest

from tests.cuda_sim.simulate import outcomes

pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")

CASES = (
    "Distances:twc", "Distances:edge", "Hops:warp", "Hops:block", "Components:thread",
    "Components:auto", "Ranks:warp", "Ranks:edge", "Communities:thread",
    "Communities:block", "Parents:warp", "Parents:twc", "Widths:thread", "Lottery:warp",
)  # fmt: skip
MORE = (
    "Ranks:thread:device_memory=5600", "Hops:twc:device_memory=4600",
    "Components:thread:device_memory=6704", "Communities:twc:blocks=2",
    "Distances:warp:graph=path:max_fused=1",
    "Distances:warp:graph=path:max_fused=16",
)  # fmt: skip


SHIPPED = (
    "min_cut.MinimumCut:warp:max_supersteps=9", "scc.StrongComponents:thread",
    "belief_propagation.BeliefPropagation:thread:max_supersteps=3",
    "matching.Matching:thread:max_supersteps=6", "k_core.KCore:twc",
)  # fmt: skip


def outcome(case: str) -> dict[str, Any]:
    return outcomes(*CASES, *MORE, *SHIPPED)[case]


@pytest.mark.parametrize("case", [*CASES, *MORE, *SHIPPED])
def test_results_are_those_of_the_cpu(case: str) -> None:
    found = outcome(case)
    assert found["differences"] == []
    assert found["supersteps"][0] == found["supersteps"][1]
    assert found["converged"][0] == found["converged"][1]
    assert (
        case in SHIPPED or found["distinct"] > 3
    )  # the graph is not so simple that anything would do


def test_rows_beyond_the_budget_are_copied_in_every_superstep() -> None:
    streamed = outcome("Ranks:thread:device_memory=5600")
    resident = outcome("Ranks:warp")
    assert streamed["bytes_copied"] > resident["bytes_copied"] + 4 * 130 * 4


def test_supersteps_enqueued_together_give_the_same_and_copy_less() -> None:
    alone = outcome("Distances:warp:graph=path:max_fused=1")
    fused = outcome("Distances:warp:graph=path:max_fused=16")
    assert fused["supersteps"] == alone["supersteps"]
    assert fused["supersteps"][0] > 40  # one superstep per node of the path
    assert fused["kernel_launches"] < alone["kernel_launches"]
