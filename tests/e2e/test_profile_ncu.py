"""``graphsys profile --level L4`` around a stand-in for ``ncu``: no GPU is needed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from graphsys.analysis.traces.ncu import CORE, STALLS
from tests.conftest import ROOT, Run

pytestmark = pytest.mark.e2e


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin" / "ncu"
    path.parent.mkdir()
    path.symlink_to(ROOT / "scripts" / "gpu_checking" / "stand_in_ncu")
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_NCU_LOG", str(tmp_path / "called.json"))
    monkeypatch.delenv("NCU", raising=False)
    return path


def metrics_at(page: Path) -> dict[str, Any]:
    report = json.loads(page.with_suffix(".json").read_text())
    return {metric["name"]: metric for metric in report["metrics"]}


def words_of(graph: Path, out: Path) -> list[Any]:
    return ["run", "pagerank", graph, "-o", out, "--param", "iterations=2"]


def test_counters_are_put_into_the_report(
    tmp_path: Path, small_graph: Path, run_cli: Run, ncu: Path
) -> None:
    page = tmp_path / "r.html"
    words = words_of(small_graph, tmp_path / "ranks.csv")
    done = run_cli("profile", "-o", page, "--level", "L4", "--", *words)
    assert done.returncode == 0, done.stderr
    assert "profile: with counters: " in done.stderr
    options, command = json.loads((tmp_path / "called.json").read_text())
    assert options["--metrics"].split(",") == list(CORE)
    assert options["--clock-control"] == "none"
    assert command[command.index("--") + 1 :] == [str(word) for word in words]
    metrics = metrics_at(page)
    assert metrics["kernel_invocations.ncu"]["value"] == 2
    assert metrics["lane_utilization.ncu"]["value"] == 1 / 32
    assert metrics["lane_utilization"]["source"] == "model"
    assert metrics["wall_seconds"]["value"] is None
    assert "ncu replays kernels" in metrics["wall_seconds"]["reason"]
    report = json.loads(page.with_suffix(".json").read_text())
    assert report["configuration"]["level"] == "L4"
    lanes = next(row for row in report["comparison"] if row["name"] == "lane_utilization")
    assert lanes["ncu"] == 1 / 32
    assert lanes["predicted"] > 0
    assert "Predicted and measured" in page.read_text()
    again = run_cli("profile", "-o", page, "--level", "L4", "--", *words)
    assert again.returncode == 2
    assert "exists; replace it with --overwrite" in again.stderr


def test_stall_reasons_are_counted_on_request(
    tmp_path: Path, small_graph: Path, run_cli: Run, ncu: Path
) -> None:
    page = tmp_path / "r.html"
    words = words_of(small_graph, tmp_path / "ranks.csv")
    done = run_cli("profile", "-o", page, "--level", "L4-stalls", "--", *words)
    assert done.returncode == 0, done.stderr
    options, _ = json.loads((tmp_path / "called.json").read_text())
    assert set(STALLS) < set(options["--metrics"].split(","))
    assert metrics_at(page)["stall_long_scoreboard"]["value"] == 1 / len(STALLS)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("denied", "counters were not permitted (ERR_NVGPUCTRPERM)"),
        ("unknown", "Failed to find metric smsp__warp_of_no_chip.sum"),
        ("none", "no kernel ran on a GPU; give the command --device cuda"),
        ("silent", "ncu wrote no counters"),
    ],
)
def test_without_counters_the_report_says_why(
    tmp_path: Path,
    small_graph: Path,
    run_cli: Run,
    ncu: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    reason: str,
) -> None:
    monkeypatch.setenv("STAND_IN_NCU", kind)
    page = tmp_path / "r.html"
    words = words_of(small_graph, tmp_path / "ranks.csv")
    done = run_cli("profile", "-o", page, "--level", "L4", "--", *words)
    assert done.returncode == 0, done.stderr
    assert reason in done.stderr
    metrics = metrics_at(page)
    assert metrics["lane_utilization.ncu"]["value"] is None
    assert reason in metrics["lane_utilization.ncu"]["reason"]
    assert metrics["lane_utilization"]["value"] > 0


def test_a_failed_command_and_an_ncu_that_refuses(
    tmp_path: Path,
    small_graph: Path,
    run_cli: Run,
    ncu: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = tmp_path / "r.html"
    words = ["run", "bfs", small_graph, "-o", tmp_path / "x.csv", "--param", "source=999"]
    done = run_cli("profile", "-o", page, "--level", "L4", "--", *words)
    assert done.returncode == 1
    assert json.loads(page.with_suffix(".json").read_text())["status"] == "failed"
    monkeypatch.setenv("STAND_IN_NCU", "refuses")
    done = run_cli("profile", "-o", tmp_path / "no.html", "--level", "L4", "--", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: ncu ended with 9 before the command ran" in done.stderr
    assert not (tmp_path / "no.html").exists()


def test_a_lacking_ncu_is_named(
    tmp_path: Path, small_graph: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCU", str(tmp_path / "none"))
    words = words_of(small_graph, tmp_path / "ranks.csv")
    done = run_cli("profile", "-o", tmp_path / "r.html", "--level", "L4", "--", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "level L4 starts ncu (Nsight Compute)" in done.stderr
    assert "use --level L3" in done.stderr
    assert list(tmp_path.iterdir()) == []
