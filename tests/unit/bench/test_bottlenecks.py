"""The tables of the study, and what its controls say of themselves."""

import importlib
import os
import re
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import UnknownNameError
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
    tables = bench("bench.cases.bottlenecks_table").tables
    graph = {
        "kernel_invocations": 20.0,
        "supersteps": 9.0,
        "h100 work_per_invocation": 5.0,
        "h100 lane_utilization thread": 0.25,
    }
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
    script = bench("bench.cases.bottlenecks_table")
    page = script.PAGE.read_text()
    files = {name: getattr(script, name) for name in ("PAGE", "PICTURE", "SWEEP_PICTURE")}
    for name, file in files.items():
        monkeypatch.setattr(script, name, tmp_path / file.name)
    assert script.main(["--document"]) == 0
    for file in files.values():
        assert (tmp_path / file.name).read_text() == file.read_text()
    assert "nothing here ran" in page
    command = ROOT / "scripts" / "bench" / "bottlenecks"
    assert f"`{command.relative_to(ROOT)}`" in page
    assert os.access(command, os.X_OK)
    steps = re.findall(r'^"\$here/(\w+)" (\S+)', command.read_text(), re.MULTILINE)
    assert steps == [
        ("run", "bottlenecks"),
        ("run", "schedulers"),
        ("run", "instructions"),
        ("run", "bottlenecks_table"),
    ]


def test_the_package_holds_no_pages_of_results_and_no_pictures() -> None:
    usual = {
        "README.md",
        "GLOSSARY.md",
        "SETTINGS.md",
        "MODELS.md",
        "PBG.md",
        "FIRST_HOUR.md",
    }
    usual |= {"EXAMPLES.md"}
    folders = [ROOT / name for name in ("graphsys", "datasets", "partitioners")]
    pages = [path for folder in folders for path in folder.rglob("*.md")]
    assert {path.name for path in pages} <= usual
    assert not [path for folder in folders for path in folder.rglob("*.png")]


def test_the_sweep_is_told_from_the_smallest_to_the_largest(bench: Any) -> None:
    runs = [
        (f"PR, road-1e{k}, x", {"entries": 10.0**k, "kernel_invocations": k * 1.0})
        for k in (6, 4, 5)
    ]
    text = bench("bench.cases.bottlenecks_table").sweep(runs)
    assert text[2] == "| launches | road | 4 / 5 / 6 | 1 |"


def test_graphs_are_named_by_kind_and_size(bench: Any) -> None:
    case = bench("bench.cases.bottlenecks")
    graph = case.load("road-1e4")
    facts = case.degree_facts(graph)
    assert facts["nodes"] == 2499  # 50 by 50, the last without a road
    assert 8000 < facts["entries"] == graph.num_edges < 10_000
    uneven = case.degree_facts(case.load("rmat-1e4"))["degree_variation"]
    assert 0 < facts["degree_variation"] < 0.5 < uneven
    with pytest.raises(UnknownNameError, match="graph 'road-1e9'"):
        case.load("road-1e9")


def test_inputs_up_to_1e8_edges_are_known(bench: Any, tmp_path: Path) -> None:
    case, chosen = bench("bench.cases.bottlenecks"), bench("bench.__main__").chosen
    wanted = "rmat-1e7,road-1e8"
    assert chosen(wanted, case.KNOWN_INPUTS, "inputs") == ("rmat-1e7", "road-1e8")
    assert "rmat-1e8" not in case.INPUTS  # nobody waits for it unasked
    assert case.left_out("rmat-1e5", 100_000) == ()
    assert {"SP", "SSSP"}.isdisjoint(case.left_out("road-1e6", 1_000_000))
    assert {"SP", "APSP"} <= set(case.left_out("rmat-1e7", 10_000_000))
    assert "SSSP" not in case.left_out("rmat-1e7", 10_000_000)
    assert "SSSP" in case.left_out("road-1e7", 10_000_000)
    works = case.works(
        quick=True, folder=tmp_path, limits=None, missing=[], inputs=("uniform-1e4",)
    )
    names = [work.name for work in works]
    assert len(names) == len(case.APPLICATIONS)  # and no control


def test_kinds_of_graphs_may_have_different_sizes(bench: Any) -> None:
    script = bench("bench.cases.bottlenecks_table")
    rows = [
        (
            f"BFS, {kind}-1e{size}, 1M edges",
            {"entries": 10.0**size, "kernel_invocations": float(size)},
        )
        for kind, sizes in (("rmat", (4, 5, 8)), ("road", (4, 5)))
        for size in sizes
    ]
    rows.append(("control GEMM, 1M values", {"kernel_invocations": 1.0}))
    assert script.sizes(rows) == "1e4, 1e5 and 1e8"
    text = "\n".join(script.sweep(rows))
    assert "| launches | rmat | 4 / 5 / 8 | 1 |" in text
    assert "| launches | road | 4 / 5 | 1 |" in text
