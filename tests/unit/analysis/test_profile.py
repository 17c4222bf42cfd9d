"""``gs.profile``: reports, their schema, their figures, and what cannot be written."""

import json
import re
import threading
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

import graphsys as gs
import graphsys.engine.execute.prepared as runs
from graphsys.analysis.compare import compare_reports
from graphsys.analysis.files import read_report, report_schema
from graphsys.analysis.model.simt import walk
from graphsys.analysis.page.colors import COLORS
from graphsys.core.errors import (
    ConfigError,
    InputError,
    OutputExistsError,
    UnknownNameError,
)
from graphsys.core.events import observe
from graphsys.core.operators import OPERATORS
from graphsys.engine.execute import program_memory
from graphsys.engine.memory_plan import MemoryPlan
from graphsys.engine.topology import Topology
from graphsys.graph.csr import row_lengths
from tests.unit.analysis.schemas import violations
from tests.unit.analysis.test_row_visits import random_topology

NAMES = (
    "kernel_invocations",
    "work_per_invocation",
    "transfer_count",
    "transfer_bytes",
    "transfer_seconds",
    "overlap_alpha",
    "lane_utilization",
    "warp_variance",
    "cta_variance",
    "ctas_per_sm",
    "sm_imbalance",
)


def streamed(plan: Any, topology: Topology, _: int | None) -> MemoryPlan:
    """Choose to stream whatever there is."""
    choice = program_memory.choose(plan, topology, None)
    return replace(choice, mode="streamed", budget=0)


def metrics_of(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    assert violations(report_schema(), report) == []
    found = {metric["name"]: metric for metric in report["metrics"]}
    assert len(found) == len(report["metrics"])
    assert set(NAMES) <= set(found)
    for metric in found.values():
        assert (metric["value"] is None) == bool(metric["reason"]), metric
    return found


class Page(HTMLParser):
    """Checks that elements nest, and collects what a page refers to."""

    VOID = ("meta", "link", "br", "img", "rect", "line")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.references: list[str] = []
        self.charts = 0
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids |= {given["id"]} if given.get("id") else set()  # type: ignore[arg-type]
        self.references += [given[k] or "" for k in ("src", "href") if k in given]
        self.charts += tag == "svg"
        if tag not in self.VOID or (tag == "rect" and self._holds_a_title(given)):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None: ...

    def _holds_a_title(self, given: dict[str, str | None]) -> bool:
        return True

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_pagerank_gives_every_metric_and_the_models_of_its_rows(tmp_path: Path) -> None:
    topology = random_topology(1)
    page = tmp_path / "r.html"
    with gs.profile(page) as p:
        gs.algorithms.pagerank(topology, iterations=5)
    metrics = metrics_of(p.report)
    assert json.loads((tmp_path / "r.json").read_text()) == p.report
    assert p.report["status"] == "ok"
    assert metrics["kernel_invocations"]["value"] == 5
    assert metrics["work_per_invocation"]["value"] == topology.num_edges
    assert metrics["transfer_count"]["value"] == 0
    assert metrics["overlap_alpha"]["reason"] == "nothing was transferred"
    lengths = row_lengths(topology.csr("in").indptr)
    for mapping in ("thread", "warp", "twc"):
        expected = walk(lengths, mapping)
        assert metrics[f"lane_utilization.{mapping}"]["value"] == expected.utilization
        assert metrics[f"lane_utilization.{mapping}"]["exact"] is True
        facts = p.report["gpu"]["mappings"][mapping]
        assert facts["warp_steps"] == 5 * expected.steps
        assert facts["active_lane_histogram"] == (5 * expected.histogram).tolist()
        assert sum(facts["sm_ctas"]) == facts["ctas"] == 5 * len(expected.cta_times)
    steps = p.report["supersteps"]
    assert [step["number"] for step in steps] == [0, 1, 2, 3, 4]
    assert all(step["edges"] == topology.num_edges for step in steps)
    assert all(0 <= step["kernel_seconds"] <= step["seconds"] for step in steps)


def test_the_page_is_whole_and_fetches_nothing(tmp_path: Path) -> None:
    with gs.profile(tmp_path / "r.html", command="a <b> & c") as p:
        gs.algorithms.bfs(random_topology(2), source=7)
    text = (tmp_path / "r.html").read_text()
    page = Page(text)
    assert page.references == ["data:,"]
    assert not re.search(r"https?://|@import|url\(", text)
    wanted = {
        "wall",
        "verdict",
        "numbers",
        "bandwidth",
        "timeline",
        "degrees",
        "supersteps",
        "shares",
        "mappings",
        "lanes",
        "sizes",
        "copies",
        "operators",
        "metrics",
        "configuration",
    }
    assert wanted <= page.ids
    lanes = p.report["timeline"]["lanes"]
    # the three numbers', copies, bytes a second; when each was done; two a mapping
    assert page.charts == 3 + 2 + len(lanes) + 2 * 8
    assert "a &lt;b&gt; &amp; c" in text
    assert "<b> & c" not in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    places = [text.index(f'id="{it}"') for it in ("wall", "verdict", "numbers", "timeline")]
    assert places == sorted(places)
    assert len(re.findall(r"#[0-9a-f]{3,6}\b", text)) == 2 * len(COLORS)


def test_entries_are_an_upper_bound_at_level_0_and_exact_at_level_1() -> None:
    topology = random_topology(3)
    with gs.profile(level="L0") as low:
        gs.algorithms.bfs(topology, source=7, implementation="program")
    with gs.profile(level="L1") as high:
        gs.algorithms.bfs(topology, source=7, implementation="program")
    bound = metrics_of(low.report)["work_per_invocation"]
    count = metrics_of(high.report)["work_per_invocation"]
    assert (bound["exact"], count["exact"]) == (False, True)
    assert count["value"] < bound["value"]
    assert metrics_of(low.report)["lane_utilization"]["reason"] == "not asked for: level L0"
    assert low.report["gpu"] is None


def test_a_native_algorithm_without_supersteps_says_so() -> None:
    with gs.profile() as p:
        gs.algorithms.triangle_count(random_topology(4))
    metrics = metrics_of(p.report)
    assert metrics["kernel_invocations"]["value"] > 0
    assert metrics["work_per_invocation"]["value"] is None
    assert "walked rows" in metrics["lane_utilization"]["reason"]


def test_streamed_rows_have_lanes_but_no_sectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 3000, (60_000, 2))
    monkeypatch.setattr(runs, "choose", streamed)
    with gs.ingest(edges, tmp_path / "g", partitions=2).graph as graph, gs.profile() as p:
        gs.algorithms.pagerank(graph, implementation="program", iterations=2)
    metrics = metrics_of(p.report)
    assert metrics["lane_utilization"]["value"] > 0
    assert "streamed" in metrics["coalescing_efficiency"]["reason"]
    assert metrics["transfer_bytes"]["value"] > 0
    assert metrics["overlap_alpha"]["value"] is not None


def test_a_failure_is_reported_and_raised(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError), gs.profile(tmp_path / "r.html"):
        gs.algorithms.bfs(random_topology(1), source=10**6)
    report = read_report(tmp_path / "r.json")
    metrics_of(report)
    assert report["status"] == "failed"
    assert report["error"].startswith("UnknownNameError: ")
    assert "The command failed" in (tmp_path / "r.html").read_text()


def test_an_interrupt_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), gs.profile(tmp_path / "r.html"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_nothing_profiled_is_a_report_too() -> None:
    with gs.profile() as p:
        pass
    metrics = metrics_of(p.report)
    assert metrics["kernel_invocations"]["value"] == 0
    assert p.report["verdict"]["summary"].startswith("Nothing was measured")
    assert "not measured: no kernel was launched" in p.summary()
    assert p.events().num_rows == 0


def test_events_are_an_arrow_table() -> None:
    with gs.profile() as p:
        gs.algorithms.pagerank(random_topology(1), iterations=2)
    table = p.events()
    assert table.column_names == [
        "name",
        "start_ns",
        "duration_ns",
        "value",
        "thread_id",
        "attributes",
    ]
    rows = [row for row in table.to_pylist() if row["name"] == "superstep"]
    assert [json.loads(row["attributes"])["number"] for row in rows] == [0, 1]


def test_outputs_are_checked_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'r.txt': expected a name that ends in .html"):
        gs.profile(tmp_path / "r.txt")
    (tmp_path / "r.json").write_text("{}")
    with pytest.raises(OutputExistsError, match=r"r.json exists; .* --overwrite"):
        gs.profile(tmp_path / "r.html")
    gs.profile(tmp_path / "r.html", overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"is a file; name a folder for r\.html"):
        gs.profile(tmp_path / "file" / "r.html")
    with pytest.raises(ConfigError, match=r"cannot make files in /proc; name another fold"):
        gs.profile("/proc/r.html")
    with pytest.raises(ConfigError, match="one of L0, L1, L3, L4, L4-stalls, got 'L9'"):
        gs.profile(level="L9")
    with pytest.raises(UnknownNameError, match="unknown GPU model 'h1000'"):
        gs.profile(gpu_model="h1000")
    with pytest.raises(ConfigError, match="call summary"):
        gs.profile().summary()


def test_comparing_tells_what_changed() -> None:
    reports = []
    for iterations, model in ((2, "h100"), (4, "a100")):
        with gs.profile(gpu_model=model) as p:
            gs.algorithms.pagerank(random_topology(1), iterations=iterations)
        reports.append(p.report)
    found = compare_reports(*reports)
    assert found["configuration"] == {"gpu_model": ["H100 SXM", "A100"]}
    changes = {change["name"]: change for change in found["changes"]}
    assert changes["supersteps"]["ratio"] == 2.0
    assert "lane_utilization.thread" not in changes
    assert compare_reports(reports[0], reports[0])["changes"] == []


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text('{"schema_version": 1')
    with pytest.raises(InputError, match="not JSON"):
        read_report(path)
    path.write_text('{"schema_version": 1}')
    with pytest.raises(
        InputError, match="no report of graphsys profile, it lacks 'command'"
    ):
        read_report(path)
    with gs.profile() as p:
        pass
    path.write_text(json.dumps({**p.report, "schema_version": 7}))
    with pytest.raises(InputError, match="schema version 7, this graphsys reads 1"):
        read_report(path)


@pytest.mark.parametrize("implementation", ["native", "program"])
def test_what_the_model_takes_is_in_no_time_that_is_printed(implementation: str) -> None:
    topology = random_topology(6, num=5000)
    run = gs.algorithms.bfs
    plain = run(topology, source=7, implementation=implementation)
    with gs.profile() as p:
        done = run(topology, source=7, implementation=implementation)
    assert 0 <= done.seconds < plain.seconds + 0.2
    assert done.compile_seconds < plain.compile_seconds + 0.5
    modelled = p.report["configuration"]["model_seconds"]
    metrics = metrics_of(p.report)
    assert modelled > 0
    assert metrics["superstep_seconds"]["value"] <= metrics["wall_seconds"]["value"]


class SeenError(Exception):
    """Ends an observation before its observer sees it."""


def test_a_run_that_waits_for_an_observer_compiles_no_longer_than_it_takes() -> None:
    """numba compiles in one thread at a time: an observer's turn is not the run's."""
    kernel = numba.njit(lambda value: value + 1)
    has_begun = threading.Event()

    def make() -> None:
        with global_compiler_lock:
            has_begun.set()
            time.sleep(0.5)
        raise SeenError

    def look() -> None:
        with pytest.raises(SeenError):
            observe("rows", make)

    with gs.profile() as p:
        other = threading.Thread(target=look)
        other.start()
        has_begun.wait()
        kernel(1)
        other.join()
    told = {metric["name"]: metric["value"] for metric in p.report["metrics"]}
    assert 0 < told["compile_seconds"] <= told["wall_seconds"]
    spans = p.events().to_pylist()
    took = sum(event["duration_ns"] for event in spans if event["name"] == "compile")
    assert took / 1e9 > told["compile_seconds"]  # the wait is told, and not counted


def test_observers_in_two_threads_at_once_take_the_time_of_one() -> None:
    def look() -> None:
        observe(OPERATORS, lambda: time.sleep(0.3))

    with gs.profile() as p:
        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.5)
    told = {metric["name"]: metric["value"] for metric in p.report["metrics"]}
    assert told["wall_seconds"] >= 0.5
