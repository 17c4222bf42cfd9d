"""What a report says of the workers of a cluster."""

import time
from pathlib import Path
from typing import Any

import pytest

from graphsys.analysis.cluster import cluster_of
from graphsys.analysis.files import read_report, report_schema
from graphsys.analysis.profile import profile
from graphsys.core.events import Event, add_event, count, ended, recording, span
from graphsys.distributed.profile_events import recorded, tell_parts, tell_trainers
from tests.unit.analysis.schemas import violations


def part(rank: int, seconds: float, waited: float) -> dict[str, Any]:
    """Return what a worker gives back that recorded itself."""

    def work() -> dict[str, Any]:
        with span("exchange"):
            pass
        count("edges", 10 * (rank + 1))
        ended("superstep", time.perf_counter_ns(), 1000, number=0, mode="pull")
        steps = [{"sent_bytes": 40, "seconds": seconds, "waiting_seconds": waited}]
        return {
            "seconds": seconds,
            "waited_s": waited,
            "compile_seconds": 0.0,
            "bytes": [40],
            "steps": steps,
            "nodes": 5,
        }

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


def trainer(host: str, *spans: tuple[str, int, int], by_batch: bool) -> dict[str, Any]:
    """Return what a worker of a training gives back: spans from and to, in seconds."""
    names = {"work": "step" if by_batch else "compute"}
    events = [
        Event(
            names.get(name, name),
            begin * 10**9,
            (end - begin) * 10**9,
            attributes={"epoch": 0},
        )
        for name, begin, end in spans
    ]
    events.append(Event("edges", 10**9, value=7))
    return {
        "events": events,
        "elapsed_s": 9.0,
        "host": host,
        "clock_ns": time.time_ns() - time.perf_counter_ns(),
    }


def test_the_page_has_the_workers_of_a_training_of_embeddings(tmp_path: Path) -> None:
    """A rank may have parts of several epochs; what lies outside them does not count."""
    first = trainer(
        "a",
        ("epoch", 0, 10),
        ("read", 0, 4),
        ("work", 2, 8),
        ("communication", 5, 6),
        ("exchange", 8, 9),
        ("write_back", 7, 9),
        by_batch=False,
    )
    again = trainer("a", ("epoch", 20, 22), ("work", 20, 22), by_batch=False)
    other = trainer("b", ("epoch", 0, 10), ("exchange", 2, 30), by_batch=False)
    facts = [
        {
            "rank": rank,
            "units": 3 - rank,
            "sent_bytes": 64,
            "read_bytes": 256,
            "written_bytes": 512,
        }
        for rank in range(2)
    ]
    with profile(tmp_path / "r.html", level="L0"):
        tell_trainers("embedding", [(0, first), (1, other), (0, again)], facts, 2)
    report = read_report(tmp_path / "r.json")
    assert violations(report_schema(), report) == []
    found = report["cluster"]
    assert (found["kind"], found["restarts"], found["supersteps"]) == ("embedding", 2, [])
    one, two = found["workers"]
    assert [one[name] for name in ("host", "units", "edges", "nodes")] == ["a", 3, 14, None]
    assert (one["seconds"], two["seconds"]) == (12.0, 10.0)
    assert (one["read_seconds"], one["write_seconds"]) == (4.0, 2.0)
    assert (one["idle_seconds"], one["communication_seconds"]) == (1.0, 1.0)
    assert (one["waiting_seconds"], one["work_seconds"]) == (2.0, 10.0)
    assert (two["waiting_seconds"], two["work_seconds"]) == (8.0, 2.0)
    assert found["load_imbalance"] == pytest.approx(10 / 6)
    # prepares from 0 to 4, 5 to 6, 7 to 9; works from 2 to 5, 6 to 8, 20 to 22
    assert (one["overlap_alpha"], one["overlap_rho"]) == (3 / 7, 1.0)
    assert one["overlap_utilization"] == 7 / (7 + 7 - 3)
    assert two["overlap_alpha"] is None
    page = (tmp_path / "r.html").read_text()
    assert "<th>buckets</th><th>edges trained</th>" in page
    assert "<th>parameters, bytes</th><th>bytes read</th><th>bytes written</th>" in page
    assert "sampling, s" not in page
    assert "Lost workers were started again 2 times." in page
    lanes = [lane["name"] for lane in report["timeline"]["lanes"]]
    assert {"worker 0 waits", "worker 1 waits", "exchanging"} <= set(lanes)


def test_each_worker_has_a_lane_and_its_threads(tmp_path: Path) -> None:
    """Of 240 bins over 12 seconds; the first second of waiting is spent compiling."""
    seconds = 10**9

    def event(name: str, begin: int, end: int, **attributes: object) -> Event:
        length = (end - begin) * seconds
        return Event(name, begin * seconds, length, attributes=attributes)

    busy = (seconds, 2 * seconds)
    told = [
        [
            event("epoch", 0, 20, epoch=0),  # around all, and says nothing
            event("superstep", 2, 8, number=0),
            event("exchange", 5, 8),
            event("compile", 4, 6),
            event("kernel_launches", 2, 4, busy_ns=busy),
            event("kernel_launches", 3, 5, busy_ns=busy),  # while something compiled
        ],
        [event("superstep", 4, 14, number=0)],
    ]
    clock = time.time_ns() - time.perf_counter_ns()
    parts = [
        {**part(rank, 12.0, 3.0), "events": own, "clock_ns": clock}
        for rank, own in enumerate(told)
    ]
    with profile(tmp_path / "r.html", level="L0"):
        tell_parts(parts, 0)
    report = read_report(tmp_path / "r.json")
    assert violations(report_schema(), report) == []
    found = report["cluster"]
    begin, end = found["lanes_seconds"]
    assert end - begin == pytest.approx(12)
    one, two = ({it["name"]: it["shares"] for it in w["lanes"]} for w in found["workers"])
    assert {name: sum(shares) / 20 for name, shares in one.items()} == pytest.approx(
        {"at work": 2, "waiting": 2, "compiling": 2}, abs=0.01
    )
    assert [one["at work"][k] for k in (0, 39, 41)] == pytest.approx([1, 1, 0], abs=0.01)
    assert one["waiting"][81] == pytest.approx(1, abs=0.01)
    assert sum(two["at work"]) / 20 == pytest.approx(10, abs=0.01)
    assert found["workers"][0]["thread_seconds"] == [1.0, 2.0]
    assert found["workers"][1]["thread_seconds"] == []
    page = (tmp_path / "r.html").read_text()
    lanes = page[page.index('id="worker-lanes"') :].split("</div>")[0]
    assert lanes.count("<svg") == 2
    assert lanes.count('class="compiling"') == 1
    threads = page[page.index('id="worker-threads"') :].split("</div></div>")[0]
    assert [it in threads for it in ("thread 0: 1 s", "thread 1: 2 s")] == [True, True]


def test_the_page_has_the_workers_of_a_training_of_a_network(tmp_path: Path) -> None:
    part = trainer(
        "a",
        ("epoch", 0, 10),
        ("sample", 0, 4),
        ("gather", 4, 5),
        ("work", 3, 8),
        ("communication", 6, 8),
        ("communication", 11, 19),
        by_batch=True,
    )
    facts = {
        "rank": 0,
        "units": 5,
        "sent_bytes": 64,
        "read_bytes": None,
        "written_bytes": None,
    }
    with profile(tmp_path / "r.html", level="L0"):
        tell_trainers("gnn", [(0, part), (1, {"report": None})], [facts], 0)
    report = read_report(tmp_path / "r.json")
    assert violations(report_schema(), report) == []
    (row,) = report["cluster"]["workers"]
    assert (row["sample_seconds"], row["gather_seconds"]) == (4.0, 1.0)
    assert (row["communication_seconds"], row["waiting_seconds"]) == (2.0, 2.0)
    assert (row["idle_seconds"], row["read_seconds"]) == (None, None)
    page = (tmp_path / "r.html").read_text()
    assert "<th>batches</th><th>entries computed on</th>" in page
    assert "for gradients, s" in page
    assert "reading, s" not in page


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
    tell_trainers("gnn", [(0, trainer("a", by_batch=True))], [], 0)
    add_event(Event("edges", 0))
    with recording() as recorder:
        tell_parts([{"seconds": 1.0}], 0)  # workers did not record
    assert recorder.events == []
    assert cluster_of(recorder.events) is None
