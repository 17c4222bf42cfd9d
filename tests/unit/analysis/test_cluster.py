"""What a report says of the workers of a cluster."""

import time
from pathlib import Path
from typing import Any

import pytest

from graphsys.analysis.cluster import cluster_of
from graphsys.analysis.files import read_report, report_schema
from graphsys.analysis.profile import profile
from graphsys.core.events import Event, add_event, count, ended, recording, span
from graphsys.distributed.seen import recorded, tell_parts
from tests.unit.analysis.schemas import violations


def part(rank: int, seconds: float, waited: float) -> dict[str, Any]:
    """Return what a worker gives back that recorded itself."""

    def work() -> dict[str, Any]:
        with span("exchange"):
            pass
        count("edges", 10 * (rank + 1))
        ended("superstep", time.perf_counter_ns(), 1000, number=0, mode="pull")
        steps = [{"sent_bytes": 40, "seconds": seconds, "waiting_seconds": waited}]
        return {"seconds": seconds, "waited_s": waited, "compile_seconds": 0.0,
                "bytes": [40], "steps": steps, "nodes": 5}  # fmt: skip

    return {**recorded(work), "elapsed_s": seconds, "clock_ns": 10**9 * (rank + 1)}


def test_the_page_has_every_worker_and_the_first_ones_steps(tmp_path: Path) -> None:
    parts = [part(0, 4.0, 1.0), part(1, 4.0, 3.0)]
    with profile(tmp_path / "r.html", level="L0"):
        tell_parts(parts, 1, 64)
    report = read_report(tmp_path / "r.json")
    assert violations(report_schema(), report) == []
    found = report["cluster"]
    assert [row["work_seconds"] for row in found["workers"]] == [3.0, 1.0]
    assert [row["edges"] for row in found["workers"]] == [10, 20]
    assert found["load_imbalance"] == 1.5
    assert found["waiting_share"] == 0.5
    assert (found["sent_bytes"], found["bound_bytes"], found["restarts"]) == (80, 64, 1)
    (step,) = found["supersteps"]
    assert (step["sent_bytes"], step["most_work_seconds"]) == (80, 3.0)
    assert len(report["supersteps"]) == 1  # both took it together
    page = (tmp_path / "r.html").read_text()
    assert 'id="workers"' in page
    assert "the busiest of 2 workers worked <b>1.5</b>" in page.lower()
    assert "1.25" in page  # times the bound
    assert "Lost workers had all begin again 1 times." in page
    assert "2 workers waited for each other" in str(report["verdict"])


def test_clocks_of_other_machines_are_brought_to_this_one() -> None:
    told = part(0, 1.0, 0.5)
    here = time.time_ns() - time.perf_counter_ns()
    told["clock_ns"] = here + 7_000_000_000
    own = [event.start_ns for event in told["events"] if event.name == "exchange"]
    with recording() as recorder:
        tell_parts([told], 0)
    (waits,) = [event for event in recorder.events if event.name == "worker 0 waits"]
    assert waits.start_ns - own[0] == pytest.approx(7e9, abs=5e6)


def test_nobody_is_told_where_nobody_listens() -> None:
    tell_parts([part(0, 1.0, 0.5)], 0)  # no recorder
    add_event(Event("edges", 0))
    with recording() as recorder:
        tell_parts([{"seconds": 1.0}], 0)  # workers did not record
    assert recorder.events == []
    assert cluster_of(recorder.events) is None
