"""Counts on CUDA: in numba's simulator (a process of its own), and in machine code."""

import shutil
from functools import cache
from typing import Any

import numpy as np
import pytest

from graphsys.core.cuda import device as cuda_device
from graphsys.core.errors import BudgetError, ConfigError
from graphsys.mining.counting import count, count_all
from graphsys.mining.motifs import motif_census
from graphsys.mining.simple_graph import SimpleGraph
from tests.processes import SIMULATED, printed_by, rows_of

EDGES = np.array([0, 1, 2, 2]), np.array([1, 2, 0, 3])


@cache
def outcomes() -> dict[str, Any]:
    pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")
    return rows_of("tests.cuda_sim.run_mining", environment=SIMULATED, timeout=600)


@pytest.mark.parametrize("case", ["loop", "karate", "hub", "dense", "asked"])
def test_counts_are_those_of_the_cpu(case: str) -> None:
    for what, (one, other) in outcomes()[case]["pairs"].items():
        assert one == other, what


def test_cliques_of_the_karate_club_are_the_known_ones() -> None:
    assert outcomes()["karate"]["pairs"]["cliques 5"][1] == [45, 11, 2]


def test_sums_beyond_64_bits_are_exact() -> None:
    assert outcomes()["large"]["pairs"]["sum"] == [str(1 << 69)] * 2


def test_what_is_counted_in_is_filled_on_the_device() -> None:
    # cursors and totals alone: not a number for every node and block
    assert outcomes()["dense"]["largest_copy"] <= 64


def test_a_launch_is_told() -> None:
    assert "count_cliques" in outcomes()["asked"]["launches"]


COMPILE = """
import numpy as np
from graphsys.mining.offline import compile_mining

for report in compile_mining(np.dtype(np.int32)):
    print(report.name, report.registers, report.stack_bytes, report.spill_bytes)
"""


def test_kernels_spill_nothing() -> None:
    pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")
    pytest.importorskip("nvidia.cu13", reason="the CUDA compiler is not installed")
    if shutil.which("ptxas") is None:
        pytest.skip("ptxas is not on PATH")
    # a process of its own: compiling without a driver replaces a function of numba-cuda
    rows = [line.split() for line in printed_by("-c", COMPILE)]
    assert [row[0] for row in rows] == ["count_cliques", "sum_edges", "count_squares"]
    for name, registers, stack, spilled in rows:
        assert (int(stack), int(spilled)) == (0, 0), name
        assert 8 <= int(registers) <= 128, name


def test_unknown_devices_are_refused() -> None:
    with pytest.raises(ConfigError, match="device must be 'cpu' or 'cuda', got 'gpu'"):
        count(EDGES, "triangle", device="gpu")
    with pytest.raises(ConfigError, match="device must be 'cpu' or 'cuda', got 'gpu'"):
        motif_census(EDGES, 3, device="gpu")


@pytest.fixture
def with_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say that there is a GPU, for what is refused before it is used."""
    monkeypatch.setattr(cuda_device, "require_device", lambda: None)


@pytest.mark.usefixtures("with_device")
@pytest.mark.parametrize("pattern", ["house", "6-cycle", "a:x-b", "a!b b-c c-a a-d b-d"])
def test_patterns_that_a_gpu_does_not_count_are_named(pattern: str) -> None:
    with pytest.raises(
        ConfigError, match=r"nodes, without labels, but the pattern '.*' is"
    ):
        count_all(EDGES, ["triangle", pattern], device="cuda")


@pytest.mark.usefixtures("with_device")
def test_larger_censuses_are_refused_on_a_gpu() -> None:
    with pytest.raises(ConfigError, match="counts motifs of 3 and 4 nodes, got 5"):
        motif_census(EDGES, 5, device="cuda")
    with pytest.raises(ConfigError, match="but this is none of them"):
        count(EDGES, "5-star", induced="vertex", device="cuda")


def test_rows_that_do_not_fit_the_device_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from graphsys.mining.census import device

    monkeypatch.setattr(device, "require_device", lambda: None)
    monkeypatch.setattr(device, "default_shape", cuda_device.LaunchShape)
    monkeypatch.setattr(device, "free_memory", lambda: 100)
    with pytest.raises(BudgetError, match=r"4 edges need \d+ B on the device, 90 B are"):
        device.DeviceKernels(SimpleGraph.of(EDGES))
