"""Clocks inside kernels: what becomes of records, and reports that have them."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphsys.analysis.files import report_schema
from graphsys.analysis.page.page import page_of
from graphsys.analysis.profile import profile
from graphsys.analysis.side_by_side import comparison
from graphsys.analysis.traces.clocks import (
    NO_CLOCKS,
    ClockModel,
    clock_facts,
    clock_metrics,
)
from graphsys.core.clocks import CLOCKS, DEVICE_ROWS, KernelClocks
from graphsys.core.errors import ConfigError
from graphsys.core.events import is_asked, observe, span
from graphsys.core.row_trace import RowVisit
from tests.unit.analysis.schemas import violations


def launch(kernel: str = "pull_thread_0", *, steps: dict[int, int]) -> KernelClocks:
    """Return a launch of 3 CTAs of 2 warps on 2 of 4 SMs."""
    lanes = np.zeros(33, dtype=np.int64)
    for active, count in steps.items():
        lanes[active] = count
    return KernelClocks(
        kernel=kernel,
        block=64,
        begins=np.array([100, 110, 0, 0, 500, 500]),
        ends=np.array([200, 310, 100, 100, 600, 800]),
        sms=np.array([0, 0, 1, 1, 0, 0]),
        lane_steps=lanes,
        num_sms=4,
    )


def test_records_are_added_up_by_kernel_and_for_those_that_walk_rows() -> None:
    model = ClockModel()
    model(launch(steps={32: 3, 8: 1}))
    model(launch("apply_0", steps={}))
    values = {metric.name: metric for metric in clock_metrics(model)}
    assert values["launches_over_rows.clock"].value == 1
    assert values["lane_utilization.clock"].value == (3 * 32 + 8) / (4 * 32)
    assert values["ctas_per_sm.clock"].value == 3 / 4
    assert values["ctas_per_sm_max.clock"].value == 2
    assert values["ctas_per_sm_min.clock"].value == 0
    # CTAs of 210, 100 and 300 cycles; SM 0 has the first and the last
    assert values["sm_imbalance.clock"].value == pytest.approx(510 / (610 / 4))
    times = np.array([210.0, 100.0, 300.0])
    assert values["cta_variance.clock"].value == pytest.approx(times.std() / times.mean())
    cvs = [50 / 150, 0.0, 100 / 200]
    assert values["warp_variance.clock"].value == pytest.approx(np.mean(cvs))
    assert values["ctas_per_sm.clock"].exact
    assert not values["sm_imbalance.clock"].exact
    facts = clock_facts(model)
    assert facts is not None
    assert [row["name"] for row in facts] == ["pull_thread_0", "apply_0"]
    assert facts[1]["lane_utilization"] is None


def test_numbers_of_sms_may_have_gaps() -> None:
    model = ClockModel()
    model(launch(steps={32: 3}))
    numbered = np.array([0, 0, 131, 131, 0, 0])  # a device of 4 SMs, one of them 131
    model(replace(launch(steps={32: 3}), sms=numbered))
    facts = clock_facts(model)
    assert facts is not None
    assert facts[0]["sm_ctas"] == [4, 1, 0, 1]
    assert facts[0]["sm_work"] == [1020.0, 100.0, 0.0, 100.0]
    imbalance = (510 + 510) / ((1020 + 200) / 4)
    assert facts[0]["sm_imbalance"] == pytest.approx(imbalance)


def test_a_report_shows_what_clocks_say_beside_what_was_predicted() -> None:
    rows = RowVisit(
        superstep=0, kind="pull", lengths=np.full(64, 3, dtype=np.int64), mapping="warp"
    )
    with profile(level="L3") as p, span("superstep", number=0, mode="pull"):
        assert is_asked(CLOCKS)
        assert is_asked(DEVICE_ROWS)
        observe("rows", lambda: [rows])
        observe(CLOCKS, lambda: launch(steps={3: 64}))
    report: dict[str, Any] = json.loads(json.dumps(p.report))
    assert violations(report_schema(), report) == []
    lanes = next(row for row in report["comparison"] if row["name"] == "lane_utilization")
    assert lanes["predicted"] == lanes["clock"] == 3 / 32  # by warp, as the device did
    assert lanes["ratio"] == 1.0
    assert report["supersteps"][0]["gpu_mapping"] == "warp"
    page = page_of(report)
    assert "Predicted and measured" in page
    assert "Inside the kernels" in page
    assert "pull_thread_0" in page


def test_without_a_device_the_report_says_why_there_are_no_clocks() -> None:
    with profile(level="L3") as p:
        pass
    metrics = {metric["name"]: metric for metric in p.report["metrics"]}
    assert metrics["lane_utilization.clock"]["value"] is None
    assert metrics["lane_utilization.clock"]["reason"] == NO_CLOCKS
    assert p.report["clocks"] is None
    assert p.report["comparison"] == comparison(p.report["metrics"]) == []
    assert "Inside the kernels" not in page_of(p.report)


def test_level_4_belongs_to_the_command_line() -> None:
    with pytest.raises(ConfigError, match="L4 starts ncu around a process: use graphsys"):
        profile(level="L4")
