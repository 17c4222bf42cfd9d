"""Many supersteps in one cooperative launch: the same results for a few launches."""

import importlib
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphsys.core.cuda.device import LaunchShape
from graphsys.core.errors import ConfigError
from graphsys.engine.codegen.plan import plan_of
from graphsys.engine.codegen.spec import spec_of
from graphsys.engine.cuda.fused_source import can_fuse_pull, can_fuse_push
from graphsys.engine.cuda.launch import DeviceLauncher
from tests.cuda_sim.programs import PROGRAMS
from tests.cuda_sim.simulate import outcomes

# fused, the same one superstep after another, and how many times fewer launches at least
PAIRS = (
    (
        "bfs.BreadthFirst:fused:graph=path",
        "bfs.BreadthFirst:thread:graph=path:max_fused=1",
        30,
    ),
    (
        "sssp.ShortestPaths:fused:graph=path:blocks=2",
        "sssp.ShortestPaths:thread:graph=path:blocks=2:max_fused=1",
        10,
    ),
    (
        "wcc.WeakComponents:fused:graph=path",
        "wcc.WeakComponents:thread:graph=path:max_fused=1",
        20,
    ),
    ("pagerank.PageRank:fused:iterations=12", "pagerank.PageRank:warp:iterations=12", 5),
)
ALONE = (
    "pagerank.PageRank:fused:tolerance=0.01:blocks=2",
    "Ranks:fused:blocks=2",
    "Hops:fused",
    "Components:fused:blocks=2",
    "Widths:fused",
    "Distances:fused:blocks=9",
    "Doublings:fused:blocks=2",
    "Lottery:fused",
    "Parents:fused",
    "Distances:auto:graph=path:max_supersteps=9",
)
CASES = (*(case for pair in PAIRS for case in pair[:2]), *ALONE)


def outcome(case: str) -> dict[str, Any]:
    pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")
    return outcomes(*CASES)[case]


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_the_cpu(case: str) -> None:
    found = outcome(case)
    assert found["differences"] == []
    assert found["supersteps"][0] == found["supersteps"][1]
    assert found["converged"][0] == found["converged"][1]
    assert found["distinct"] > 3 or "WeakComponents" in case  # a path is one component


@pytest.mark.parametrize(("fused", "apart", "times"), PAIRS)
def test_one_launch_runs_many_supersteps(fused: str, apart: str, times: int) -> None:
    few, many = outcome(fused), outcome(apart)
    assert few["supersteps"] == many["supersteps"]
    assert times * few["kernel_launches"] <= many["kernel_launches"]
    assert few["bytes_copied"] < 1.5 * many["bytes_copied"]
    assert few["fused_grids"] != []
    assert many["fused_grids"] == []


def test_supersteps_beyond_the_end_are_undone() -> None:
    found = outcome("pagerank.PageRank:fused:tolerance=0.01:blocks=2")
    # fewer than the 16 that were run before the host could ask ``until``
    assert 2 < found["supersteps"][1] < 16
    assert found["differences"] == []


def test_the_grid_is_not_larger_than_what_is_resident() -> None:
    assert outcome("Distances:fused:blocks=9")["fused_grids"] == ["4"]  # of the shim


def test_programs_that_cannot_be_fused_run_as_with_auto() -> None:
    for case in ("Lottery:fused", "Parents:fused"):
        assert outcome(case)["fused_grids"] == []


def test_small_frontiers_share_launches_by_themselves() -> None:
    assert outcome("Distances:auto:graph=path:max_supersteps=9")["fused_grids"] != []


def fusable(program: Any) -> list[bool]:
    plan = plan_of(spec_of(program), {"weight": np.dtype(np.float64)})
    checks = (can_fuse_push, can_fuse_pull)
    return [any(check(plan, phase) for check in checks) for phase in plan.phases]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bfs.BreadthFirst", [True]),
        ("sssp.ShortestPaths", [True]),
        ("wcc.WeakComponents", [True, False]),
        ("pagerank.PageRank", [True]),
        ("cdlp.Cdlp", [False]),
        ("bfs.BreadthFirstTree", [True, False]),
    ],
)
def test_which_phases_can_be_fused(name: str, expected: list[bool]) -> None:
    module, _, kind = name.partition(".")
    loaded = importlib.import_module(f"graphsys.engine.programs.{module}")
    assert fusable(getattr(loaded, kind)) == expected


def test_tuples_and_phases_that_do_not_repeat_are_not_fused() -> None:
    assert fusable(PROGRAMS["Parents"]) == [False]
    assert fusable(PROGRAMS["Lottery"]) == [False, False]


@pytest.mark.parametrize("held", [0, 3])
def test_a_grid_that_could_never_wait_for_itself_is_refused(held: int) -> None:
    compiled = SimpleNamespace(max_cooperative_grid_blocks=lambda _block: held)
    function = SimpleNamespace(
        typeof_pyval=type, compile=lambda _types: compiled, overloads={(): compiled}
    )
    launcher: Any = SimpleNamespace(
        _resident={}, shape=LaunchShape(block=256, max_blocks=8), compile_seconds=0.0
    )
    resident = partial(DeviceLauncher._resident_blocks, launcher, "pull_0", function, [])
    if held:
        assert resident() == held
        return
    with pytest.raises(ConfigError, match="does not hold one block of 256 threads"):
        resident()
