"""Vectors of programs in the SIMT model: a warp takes one entry at a time."""

from typing import Any

import numpy as np
import pytest

from graphsys.analysis.model.devices import GPUS
from graphsys.analysis.model.row_model import RowModel
from graphsys.analysis.model.sectors import requests_of
from graphsys.analysis.profile import profile
from graphsys.core.row_trace import RowVisit
from graphsys.engine import program as gs
from graphsys.engine.run import run
from graphsys.engine.topology import Topology

WIDTHS = [1, 3, 16, 31, 32, 33, 64, 100]


def random_visit(width: int) -> RowVisit:
    """Rows with gaps between them, some of which are empty."""
    rng = np.random.default_rng(width)
    lengths = np.minimum(rng.zipf(1.7, 30), 40).astype(np.int64)
    lengths[::5] = 0
    starts = np.cumsum(lengths + 2) - lengths
    return RowVisit(
        superstep=0,
        kind="pull",
        lengths=lengths,
        starts=starts,
        indices=rng.integers(0, 500, int(starts[-1] + lengths[-1])).astype(np.int32),
        width=width,
        value_bytes=4,
        by_entry=True,
        mapping="warp",
    )


def walked(visit: RowVisit) -> list[list[tuple[int, int]]]:
    """Return the entry and column of each lane of each step, as a kernel goes."""
    assert visit.starts is not None
    steps = []
    for start, length in zip(visit.starts.tolist(), visit.lengths.tolist(), strict=True):
        for e in range(start, start + length):
            for first in range(0, visit.width, 32):
                steps.append([(e, j) for j in range(first, min(first + 32, visit.width))])
    return steps


@pytest.mark.parametrize("width", WIDTHS)
def test_requests_are_those_of_a_walk_lane_by_lane(width: int) -> None:
    visit = random_visit(width)
    assert visit.indices is not None
    own, steps = requests_of(visit)["warp"], walked(visit)
    index = [{4 * e // 32 for e, _ in lanes} for lanes in steps]
    value = [{4 * (int(visit.indices[e]) * width + j) for e, j in it} for it in steps]
    assert own.requests == len(steps)
    assert own.lanes == sum(map(len, steps))
    assert own.index_sectors == sum(map(len, index))
    assert own.value_sectors == sum(len({a // 32 for a in it}) for it in value)
    assert own.value_lines == sum(len({a // 128 for a in it}) for it in value)


@pytest.mark.parametrize("width", WIDTHS)
def test_lanes_beyond_a_vector_are_idle(width: int) -> None:
    visit, model = random_visit(width), RowModel(GPUS["h100"])
    model([visit])
    steps = walked(visit)
    (launch,) = model.launches
    assert launch.chosen == "warp"
    assert launch.steps["warp"] == len(steps)
    assert launch.active["warp"] == sum(map(len, steps))
    histogram = np.bincount([len(lanes) for lanes in steps], minlength=33)
    (found,) = [it for name, it in model.totals.items() if name == "warp"]
    np.testing.assert_array_equal(found.histogram, histogram)
    told = [row["lane_utilization"]["auto"] for row in model.degrees.as_rows()]
    rounded = -(-width // 32) * 32
    assert {it for it in told if it is not None} == {width / rounded}


@pytest.mark.parametrize(("size", "share"), [(3, 3 / 32), (32, 1.0), (40, 40 / 64)])
def test_a_profile_of_vectors_says_how_many_lanes_work(size: int, share: float) -> None:
    class Means(gs.VertexProgram):
        x = gs.state("float32", shape=(size,))
        combine, max_supersteps = gs.mean, 2

        def init(self, node: Any) -> Any:
            return gs.random(1, node.id, gs.component)

        def message(self, src: Any) -> Any:
            return src.x

        def update(self, node: Any, message: Any) -> Any:
            return message

    src, dst = np.random.default_rng(1).integers(0, 200, (2, 3000))
    with profile() as recorded:
        run(Means(), Topology.from_edges(src, dst, 200))
    metrics = {it["name"]: it["value"] for it in recorded.report["metrics"]}
    assert metrics["lane_utilization"] == pytest.approx(share)
    assert metrics["kernel_invocations"] > 0
