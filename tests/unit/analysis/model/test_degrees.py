"""Lanes by degree: what classes of rows hold adds up to what the warps do."""

import numpy as np
import pytest

from graphsys.analysis.model.degrees import DegreeTotals, degrees_of
from graphsys.analysis.model.devices import GPUS
from graphsys.analysis.model.predicted import gpu_facts
from graphsys.analysis.model.row_model import RowModel
from graphsys.analysis.model.simt import walk
from graphsys.core.row_trace import RowVisit


def lock_step(lengths: list[int]) -> list[tuple[int, int]]:
    """Run warps of a thread a row; return lane-steps at work and held, by row."""
    found = []
    for first in range(0, len(lengths), 32):
        rows = lengths[first : first + 32]
        steps = 0
        while any(length > steps for length in rows):
            steps += 1
        found += [(length, steps) for length in rows]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_classes_are_those_of_rows_run_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.zipf(1.6, 300 + seed), 5000) - 1
    rows = degrees_of(lengths, lengths, "thread").as_rows()
    wanted: dict[int, list[int]] = {}
    for length, held in lock_step(lengths.tolist()):
        own = wanted.setdefault(length.bit_length(), [0, 0, 0])
        own[0], own[1], own[2] = own[0] + 1, own[1] + length, own[2] + held
    assert [row["rows"] for row in rows] == [wanted[k][0] for k in sorted(wanted)]
    for row, k in zip(rows, sorted(wanted), strict=True):
        _, active, held = wanted[k]
        assert row["entries"] == active
        assert row["at_least"] <= max(active, 0)
        assert row["lane_utilization"]["thread"] == pytest.approx(active / held)
        assert row["lane_utilization"]["auto"] == row["lane_utilization"]["thread"]


@pytest.mark.parametrize("mapping", ["thread", "warp", "block", "twc"])
def test_all_classes_together_are_what_the_warps_do(mapping: str) -> None:
    lengths = np.minimum(np.random.default_rng(7).zipf(1.5, 64 * 20), 3000) - 1
    if mapping == "twc":  # its list of short rows ends in a warp that is not full
        short = lengths[lengths < 32]
        lengths = np.concatenate([lengths, np.ones(-len(short) % 32, dtype=np.int64)])
    found = degrees_of(lengths, lengths, mapping)
    walked = walk(lengths, mapping)
    assert found.active[0].sum() == walked.active == lengths.sum()
    assert found.held[0].sum() == 32 * walked.steps
    assert found.rows.sum() == len(lengths)


def test_rows_without_lanes_of_their_own_have_no_share() -> None:
    lengths = np.array([3, 0, 9])
    rows = degrees_of(lengths, lengths, "edge").as_rows()
    assert [row["lane_utilization"]["auto"] for row in rows] == [None] * 3
    assert [(row["at_least"], row["at_most"]) for row in rows] == [(0, 0), (2, 3), (8, 15)]
    assert DegreeTotals().as_rows() == []
    empty = np.zeros(0, dtype=np.int64)
    assert degrees_of(empty, empty, "thread").as_rows() == []


def test_the_model_adds_launches_up() -> None:
    model = RowModel(GPUS["h100"])
    visit = RowVisit(superstep=0, kind="pull", lengths=np.array([1, 1, 40]))
    model([visit, visit])
    rows = gpu_facts(model)["degrees"]
    assert [(row["at_least"], row["rows"], row["entries"]) for row in rows] == [
        (1, 4, 4),
        (32, 2, 80),
    ]
    # 40 steps for each of the two short rows, 64 lane-steps of a warp for the long one
    assert rows[0]["lane_utilization"]["thread"] == pytest.approx(1 / 40)
    assert rows[1]["lane_utilization"]["warp"] == pytest.approx(40 / 64)
