"""CUDA kernels in numba's simulator (a process of its own) against the CPU's results."""

import json
from typing import Any

import pytest

from tests.cuda_sim.simulate import outcomes
from tests.processes import SIMULATED, printed_by

pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")

CASES = (
    "Distances:twc",
    "Distances:edge",
    "Hops:warp",
    "Hops:block",
    "Components:thread",
    "Components:auto",
    "Ranks:warp",
    "Ranks:edge",
    "Communities:thread",
    "Communities:block",
    "Parents:warp",
    "Parents:twc",
    "Widths:thread",
    "Lottery:warp",
    "Means:warp",
    "Means:thread",
)
MORE = (
    "Ranks:thread:device_memory=4600",
    "Hops:twc:device_memory=3600",
    "Components:thread:device_memory=4600",
    "Communities:twc:blocks=2",
    "Distances:warp:graph=path:max_fused=1",
    "Distances:warp:graph=path:max_fused=16",
)

SHUFFLED = tuple(
    f"{case}:graph=wide:blocks=400:max_supersteps=2:shuffle=1"
    for case in ("Distances:warp", "Communities:warp")
)
"""Hundreds of blocks, which no card runs in the order of their numbers."""

SHIPPED = (
    "min_cut.MinimumCut:warp:max_supersteps=9",
    "scc.StrongComponents:thread",
    "belief_propagation.BeliefPropagation:thread:max_supersteps=3",
    "matching.Matching:thread:max_supersteps=6",
    "k_core.KCore:twc",
)


def outcome(case: str) -> dict[str, Any]:
    return outcomes(*CASES, *MORE, *SHIPPED)[case]


@pytest.mark.parametrize("case", SHUFFLED)
def test_results_do_not_depend_on_the_order_of_blocks_and_threads(case: str) -> None:
    found = outcomes(*SHUFFLED)[case]
    assert found["differences"] == []
    assert found["supersteps"][0] == found["supersteps"][1]
    assert max(found["grids"]) >= 256


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
    streamed = outcome("Ranks:thread:device_memory=4600")
    resident = outcome("Ranks:warp")
    assert streamed["bytes_copied"] > resident["bytes_copied"] + 4 * 130 * 4


def test_rows_stay_from_one_run_to_the_next_and_only_columns_that_are_read_come() -> None:
    *_, line = printed_by("-m", "tests.cuda_sim.run_kept_rows", environment=SIMULATED)
    found = json.loads(line)
    assert found["bfs"] - found["bfs again"] == found["rows"]
    assert found["sssp"] - found["sssp again"] == found["weights"]
    # one graph's rows at most, and none beside blocks that are streamed
    assert found["bfs of the first"] == found["bfs after that"] == found["bfs"]
    assert found["bfs, streamed"] > 2 * found["bfs"]
    assert found["kept"] == [True]
    assert found["kept after all"] == 0


CLOCKED = (
    "Ranks:warp:clocks=1:blocks=2",
    "Hops:warp:clocks=1",
    "Distances:edge:clocks=1",
    "Communities:block:clocks=1",
)


@pytest.mark.parametrize("case", CLOCKED)
def test_instrumented_kernels_count_every_entry_and_change_no_result(case: str) -> None:
    found = outcomes(*CLOCKED)[case]
    assert found["differences"] == []
    over_rows = [it for it in found["clocks"] if it["lane_steps"]]
    assert over_rows
    assert all(it["shortest"] > 0 and set(it["sms"]) <= {0, 1} for it in found["clocks"])
    visited = sum(entries for _, _, entries, _ in found["visits"])
    is_exact = all(exact for *_, exact in found["visits"])
    counted = sum(it["lane_steps"] for it in over_rows)
    # lanes counted inside the kernels are the entries that the host says are visited
    assert counted == visited if is_exact else 0 < counted <= visited
    assert found["fused_grids"] == []


def test_records_tell_the_sm_of_every_block() -> None:
    launches = outcomes(*CLOCKED)["Ranks:warp:clocks=1:blocks=2"]["clocks"]
    assert {"warps": 2, "sms": [0, 1]}.items() <= launches[-1].items()
    plain = outcomes(*CASES, *MORE, *SHIPPED)["Ranks:warp"]
    assert plain["clocks"] == plain["visits"] == []


def test_supersteps_enqueued_together_give_the_same_and_copy_less() -> None:
    alone = outcome("Distances:warp:graph=path:max_fused=1")
    fused = outcome("Distances:warp:graph=path:max_fused=16")
    assert fused["supersteps"] == alone["supersteps"]
    assert fused["supersteps"][0] > 40  # one superstep per node of the path
    assert fused["kernel_launches"] < alone["kernel_launches"]


def test_gpu_check_sets_predicted_beside_measured() -> None:
    *_, line = printed_by("-m", "tests.cuda_sim.run_predicted", environment=SIMULATED)
    found = json.loads(line)
    assert [row["case"] for row in found["rows"]] == ["pagerank, hub", "sssp, hub"]
    assert found["left_out"] == ["pagerank, hub, twc", "sssp, hub, twc"]
    for row in found["rows"]:
        known = {it["name"]: it for it in row["comparison"]}
        launches = known["predicted_launches"]
        assert launches["predicted"] == launches["clock"] <= launches["host"]
        assert 0 < known["lane_utilization"]["predicted"] <= 1
        assert known["lane_utilization"]["clock"] == 1 / 32  # lanes count alone here
    assert "| sssp, hub, warp | " in found["table"]
    assert "- ctas per sm: The model gives every row its own place" in found["table"]
