"""The choice of who visits rows, against warps counted one by one."""

import math

import numpy as np
import pytest

from graphsys.core.cuda.device import LaunchShape
from graphsys.core.errors import ConfigError
from graphsys.engine import algorithms
from graphsys.engine.cuda.strategy import check_strategy, choose, predicted_work
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from tests.cuda_sim.programs import Components

ALL = ("thread", "warp", "block", "twc", "edge")


def test_work_by_thread_is_that_of_every_warps_longest_lane(
    rng: np.random.Generator,
) -> None:
    degrees = rng.integers(0, 50, 100)
    warps = [max(degrees[i : i + 32].tolist()) for i in range(0, 100, 32)]
    expected = sum(10 + 60 * longest for longest in warps)
    assert predicted_work(degrees, 256)["thread"] == expected


def test_work_by_warp_rounds_every_row_up_to_32(rng: np.random.Generator) -> None:
    degrees = rng.integers(0, 200, 50)
    expected = sum(50 + 20 * math.ceil(degree / 32) for degree in degrees.tolist())
    assert predicted_work(degrees, 256)["warp"] == expected


def test_even_short_rows_go_to_threads() -> None:
    assert choose(predicted_work(np.full(1_000_000, 4), 256), ALL) == "thread"


def test_skewed_rows_do_not_go_to_threads(rng: np.random.Generator) -> None:
    degrees = np.minimum(rng.zipf(1.9, 300_000), 20_000)
    assert choose(predicted_work(degrees, 256), ("thread", "warp", "twc")) == "twc"


def test_long_rows_go_to_warps() -> None:
    assert choose(predicted_work(np.full(10_000, 64), 256), ALL[:3]) == "warp"


def test_nothing_to_do_costs_nothing() -> None:
    assert predicted_work(np.zeros(0, dtype=np.int64), 256)["twc"] == 0


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"one of auto, thread, .*got 'lane'"):
        check_strategy("lane")


@pytest.mark.parametrize("block", [0, 48, 2048])
def test_blocks_are_whole_warps(block: int) -> None:
    with pytest.raises(ConfigError, match="32, 64"):
        LaunchShape(block=block)


def edge() -> Topology:
    return Topology.from_edges(np.array([0]), np.array([1]), 2)


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(ConfigError, match="'cpu' or 'cuda', got 'tpu'"):
        run(Components, edge(), device="tpu")


def test_a_strategy_without_cuda_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs device='cuda'"):
        run(Components, edge(), strategy="warp")


def test_memory_of_a_device_without_cuda_is_refused() -> None:
    """As a strategy is: it would have no effect."""
    with pytest.raises(ConfigError, match="device_memory='1GB' needs device='cuda'; the"):
        run(Components, edge(), device_memory="1GB")
    with pytest.raises(ConfigError, match="the budget of a run on the CPU is memory"):
        algorithms.wcc(edge(), implementation="program", device_memory=1 << 20)
