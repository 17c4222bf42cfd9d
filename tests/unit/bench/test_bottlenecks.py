"""The tables of the study, and what its controls say of themselves."""

import importlib
from typing import Any

import pytest

from graphsys.analysis.simt import walk
from graphsys.core.events import recording
from tests.conftest import ROOT


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what imports modules of ``bench``, as scripts/bench/run does."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module


def test_controls_visit_what_they_compute(bench: Any) -> None:
    controls = bench("bench.cases.bottlenecks_controls").CONTROLS
    wanted = {"GEMM": 8**3, "reduction": 8 * 32 * 32, "stencil": 5 * 64 - 4 * 8,
              "histogram": 8 * 1024}  # fmt: skip
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
