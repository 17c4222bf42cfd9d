"""The tables of the study, and what its controls say of themselves."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what imports modules of ``bench``, as scripts/bench/run does."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module


def test_a_control_is_profiled_as_a_graph_is(bench: Any) -> None:
    case = bench("bench.cases.bottlenecks")
    _, run = bench("bench.controls.catalog").CONTROLS["LU"].bind(64 * 64)
    figures = case.Profiled(run, ("thread", "auto"))().result["figures"]
    assert figures["kernel_invocations"] == 10
    assert figures["transfer_count"] == 2
    assert figures["transfer_bytes"] == 2 * 4 * 64 * 64
    assert 0.5 < figures["h100 lane_utilization thread"] < 0.99
    assert figures["h100 lane_utilization auto"] == figures["h100 lane_utilization thread"]
    assert figures["m2050 cta_variance thread"] > 0
    assert not [name for name in figures if name.endswith((" edge", " twc", " warp"))]


def test_tables_have_a_row_for_every_run(bench: Any) -> None:
    tables = bench("bench.bottlenecks_table").tables
    graph = {"kernel_invocations": 20.0, "supersteps": 9.0, "h100 work_per_invocation": 5.0,
             "h100 lane_utilization thread": 0.25}  # fmt: skip
    control = {"kernel_invocations": 1.0, "h100 lane_utilization thread": 1.0}
    runs = [
        {"work": "BFS, tiny", "figures": graph},
        {"work": "control GEMM", "figures": control},
    ]
    text = tables({"machine": {"runs": runs}})
    assert "| BFS, tiny | 20 | 9 | 5 |" in text
    assert "| control GEMM | 100.0% | - |" in text
    assert "| launches | 20 | 1 |" in text
    assert "| lanes at work, thread | 0.25 | 1 |" in text


def test_the_committed_page_is_that_of_the_committed_results(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = bench("bench.bottlenecks_table")
    page = script.PAGE.read_text()
    monkeypatch.setattr(script, "PAGE", tmp_path / "page.md")
    assert script.main(["--document"]) == 0
    assert (tmp_path / "page.md").read_text() == page
    assert "nothing here ran" in page


def test_the_package_holds_no_pages_of_results_and_no_pictures() -> None:
    usual = {"README.md", "SETTINGS.md", "PBG.md", "FIRST_HOUR.md"}
    folders = [ROOT / name for name in ("graphsys", "datasets", "partitioners")]
    pages = [path for folder in folders for path in folder.rglob("*.md")]
    assert {path.name for path in pages} <= usual
    assert not [path for folder in folders for path in folder.rglob("*.png")]


def test_findings_follow_the_figures(bench: Any) -> None:
    findings = bench("bench.bottlenecks_findings").findings
    names = ("cta_variance", "sm_imbalance", "ctas_per_sm")
    figures = {f"{gpu} {name} {mapping}": 1.0
               for gpu in ("h100", "m2050") for name in names
               for mapping in ("thread", "auto")}  # fmt: skip
    figures |= {f"h100 lane_utilization {mapping}": 1.0
                for mapping in ("thread", "sub-warp", "warp", "twc", "edge",
                                "merge-path")}  # fmt: skip
    figures |= {"kernel_invocations": 10.0, "supersteps": 5.0,
                "h100 work_per_invocation": 7.0, "h100 coalescing_efficiency thread": 0.9,
                "h100 value_sectors_per_request thread": 4.0}  # fmt: skip
    even = {**figures, "kernel_invocations": 1.0}
    found = {row[0]: row for row in findings([("BFS, x", figures), ("control y", even)])}
    assert found["A. Launches"][2].startswith(
        "10 launches against 1 (medians), more in 100%"
    )
    assert found["A. Launches"][3].startswith("does not hold: 10.0 times the launches, 1 ")
    assert found["D. SIMT lanes"][3] == "does not hold"
    assert found["B. Stalls"][3] == "its cause was not found"
    few = figures | {"kernel_invocations": 2.0, "h100 lane_utilization thread": 0.1}
    found = {row[0]: row for row in findings([("BFS, x", few), ("control y", even)])}
    assert found["A. Launches"][3].startswith("does not hold: 2.0 times")
    assert found["D. SIMT lanes"][3].startswith(
        "holds for a thread per row; twc keeps 10.0"
    )
    more = figures | {"h100 work_per_invocation": 3.5}
    found = {row[0]: row for row in findings([("BFS, x", more), ("control y", even)])}
    assert found["A. Launches"][3].startswith(
        "holds: 10.0 times the launches, 2.0 times less"
    )
    copies = even | {"transfer_count": 3.0, "transfer_bytes": 1200.0}
    found = {row[0]: row for row in findings([("BFS, x", more), ("control y", copies)])}
    assert found["A. Transfers"][2].startswith(
        "Controls copy 3 times (median), 400 bytes each"
    )


def test_superiority_counts_pairs(bench: Any) -> None:
    superiority = bench("bench.bottlenecks_findings").superiority
    rows = [("BFS", {"n": 3.0}), ("PR", {"n": 1.0}), ("control a", {"n": 1.0}), ("x", {})]
    assert superiority(rows, "n") == (1 + 0.5) / 2
    assert np.isnan(superiority(rows[:2], "n"))
