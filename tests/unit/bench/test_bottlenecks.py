"""The tables of the study, and what its controls say of themselves."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from graphsys.analysis.model.simt import walk
from graphsys.core.events import recording
from tests.conftest import ROOT


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what imports modules of ``bench``, as scripts/bench/run does."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module


def test_controls_visit_what_they_compute(bench: Any) -> None:
    controls = bench("bench.cases.bottlenecks_controls").CONTROLS
    wanted = {"GEMM": 8 * 8 * 64, "reduction": 8 * 8 * 32, "stencil": 5 * 64 - 4 * 8,
              "histogram": 8 * 8}  # fmt: skip
    for name, control in controls.items():
        amount, run = control(8)
        seen: list[Any] = []
        with recording({"rows": seen.extend}) as recorder:
            run()
        (visit,) = seen
        assert visit.lengths.sum() == len(visit.indices) == amount == wanted[name]
        assert sum(e.name == "kernel_launches" for e in recorder.events) == 1
        if name in ("GEMM", "reduction"):
            assert walk(visit.lengths, "thread").utilization == 1.0


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
    assert found["A. Launches"][2].startswith("10 launches against 1 (medians), 2 per")
    assert "show nothing about it" in found["A. Launches"][3]  # nothing could refute it
    assert found["D. SIMT lanes"][3] == "does not hold"
    assert found["B. Stalls"][3] == "its cause was not found"
    few = figures | {"kernel_invocations": 2.0, "h100 lane_utilization thread": 0.1}
    found = {row[0]: row for row in findings([("BFS, x", few), ("control y", even)])}
    assert "show nothing about it" in found["A. Launches"][3]
    assert found["D. SIMT lanes"][3].startswith(
        "holds for a thread per row; twc keeps 10.0"
    )
