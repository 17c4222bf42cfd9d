"""``graphsys profile`` as a user runs it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.e2e.conftest import answer

pytestmark = pytest.mark.e2e


def report_at(page: Path) -> dict[str, Any]:
    assert page.read_text().startswith("<!DOCTYPE html>")
    found: dict[str, Any] = json.loads(page.with_suffix(".json").read_text())
    return found


def test_the_profiled_command_prints_what_it_always_prints(
    tmp_path: Path, small_graph: Path, run_cli: Run
) -> None:
    words = ["run", "bfs", small_graph, "-o", tmp_path / "hops.csv", "--param", "source=0"]
    page = tmp_path / "r.html"
    done = run_cli("profile", "-o", page, "--", *words, "--json")
    facts = answer(done)
    assert (facts["algorithm"], facts["supersteps"]) == ("bfs", 3)
    assert "profile: wrote" in done.stderr
    report = report_at(page)
    assert report["command"].startswith("graphsys run bfs ")
    assert report["status"] == "ok"
    assert report["gpu"]["name"] == "H100 SXM"
    assert len(report["supersteps"]) == 3
    again = run_cli("profile", "-o", page, "--", *words, "--overwrite")
    assert (again.returncode, again.stdout) == (2, "")
    assert "exists; replace it with --overwrite" in again.stderr


def test_a_training_tells_its_transfers(
    tmp_path: Path, demo_graph: Path, run_cli: Run
) -> None:
    page = tmp_path / "r.html"
    options = ["--preset", "demo-complex", "--set", "epochs=1", "--set", "dim=16"]
    done = run_cli(
        "profile",
        "-o",
        page,
        "--",
        "train",
        "embedding",
        demo_graph,
        "-o",
        tmp_path / "run",
        *options,
        "--json",
    )
    facts = answer(done)
    metrics = {metric["name"]: metric for metric in report_at(page)["metrics"]}
    assert metrics["transfer_count"]["value"] > 0
    assert metrics["transfer_bytes"]["value"] >= facts["metrics"]["bytes_written"] > 0
    assert 0 <= metrics["partition_hit_rate"]["value"] < 1
    assert metrics["partition_imbalance"]["value"] >= 1
    rows = {row["name"]: row for row in report_at(page)["operators"]}
    assert rows["train_batches: gemm"]["flop"] > rows["train_batches: scatter"]["flop"] > 0
    assert rows["train_batches"]["limit_share"] > 0
    assert metrics["kernel_invocations"]["value"] > 0
    assert metrics["work_per_invocation"]["value"] > 0
    for name in ("lane_utilization", "sm_imbalance", "predicted_launches"):
        assert metrics[name]["value"] > 0
        assert metrics[name]["source"] == "model"
    # every query of a batch has equally many candidates: its CTAs are equal
    assert metrics["cta_variance.scores"]["value"] == pytest.approx(0, abs=0.1)
    assert metrics["cta_variance"]["source"] == "model"
    assert metrics["lane_utilization"]["value"] <= 1
    # a row of 16 numbers is half a warp's; two gathered rows may lie side by side
    assert metrics["lane_utilization.gather"]["value"] == 0.5
    assert 2 <= metrics["value_sectors_per_request.gather"]["value"] <= 4
    # a row that several positions name is updated once, by as many steps
    assert metrics["cta_variance.update"]["value"] > 0
    assert "their tiles" in metrics["value_sectors_per_request.scores"]["reason"]


def test_clocks_that_no_kernel_has_are_said_to_be_missing(
    tmp_path: Path, small_graph: Path, run_cli: Run
) -> None:
    page = tmp_path / "r.html"
    words = ["run", "bfs", small_graph, "-o", tmp_path / "h.csv", "--param", "source=0"]
    done = run_cli("profile", "-o", page, "--level", "L3", "--", *words)
    assert done.returncode == 0, done.stderr
    assert "profile: no clocks: no instrumented kernel ran; give the command --device" in (
        done.stderr
    )
    metrics = {metric["name"]: metric for metric in report_at(page)["metrics"]}
    assert metrics["lane_utilization"]["value"] > 0
    assert metrics["lane_utilization.clock"]["value"] is None


def test_warp_schedulers_are_simulated_on_request(
    tmp_path: Path, small_graph: Path, run_cli: Run
) -> None:
    page = tmp_path / "r.html"
    words = ["run", "bfs", small_graph, "-o", tmp_path / "h.csv", "--param", "source=0"]
    done = run_cli("profile", "-o", page, "--schedulers", "--", *words)
    assert done.returncode == 0, done.stderr
    assert (
        "profile: simulated instructions per cycle of a warp scheduler: round-robin 0."
        in (done.stderr)
    )
    metrics = {metric["name"]: metric for metric in report_at(page)["metrics"]}
    found = [metrics[f"scheduler_ipc.{it}"] for it in ("round-robin", "gto", "two-level")]
    values = [metric["value"] for metric in found]
    assert 0 < min(values) <= max(values) <= 1
    assert {(metric["source"], metric["exact"]) for metric in found} == {("model", False)}
    assert 0 < metrics["l1_hit_rate"]["value"] < 1
    assert metrics["l2_hit_rate.states"]["value"] is not None
    assert metrics["predicted_stall_share"]["value"] == pytest.approx(1 - values[0])
    assert "% of sectors in L1; " in done.stderr
    spread = metrics["scheduler_spread"]["value"]
    assert spread == pytest.approx(max(values) / min(values) - 1)
    done = run_cli(
        "profile", "-o", page, "--overwrite", "--schedulers", "--", "info", small_graph
    )
    assert "profile: no schedulers: nothing here walked rows" in done.stderr
    done = run_cli("profile", "-o", page, "--overwrite", "--", *words, "--overwrite")
    assert "scheduler_spread" not in page.with_suffix(".json").read_text()


def test_a_failed_command_leaves_a_report(
    tmp_path: Path, small_graph: Path, run_cli: Run
) -> None:
    page = tmp_path / "r.html"
    done = run_cli(
        "profile",
        "-o",
        page,
        "--",
        "run",
        "bfs",
        small_graph,
        "-o",
        tmp_path / "x.csv",
        "--param",
        "source=999",
    )
    assert done.returncode == 1
    assert done.stderr.count("error: ") == 1
    report = report_at(page)
    assert report["status"] == "failed"
    assert "999" in report["error"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give a command after --"),
        (["--", "profile"], "cannot profile 'profile'"),
        (["--", "info", "x"], "name the page to write with --out FILE.html"),
        (["-o", "r.html", "--json", "--", "info", "x"], "--json belongs to --compare"),
        (["-o", "r.pdf", "--", "info", "x"], "ends in .html"),
        (
            ["-o", "r.html", "--level", "L7", "--", "info", "x"],
            "level must be one of L0, L1",
        ),
        (
            ["-o", "r.html", "--level", "L2", "--", "info", "x"],
            "L2 explains a GPU's trace: profile -o PAGE.html --trace FILE",
        ),
        (
            ["-o", "r.html", "--schedulers", "--level", "L0", "--", "info", "x"],
            "schedulers are simulated over rows, which level L0 does not look at",
        ),
        (
            ["-o", "r.html", "--gpu-model", "b7", "--", "info", "x"],
            "unknown GPU model 'b7'",
        ),
        (["--compare", "a.json"], "--compare takes two reports' .json"),
        (["--compare", "a.json", "b.json"], "a.json: no such file"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, run_cli: Run, words: list[str], message: str
) -> None:
    done = run_cli("profile", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_two_reports_are_compared(tmp_path: Path, small_graph: Path, run_cli: Run) -> None:
    for name, model in (("a", "h100"), ("b", "a100")):
        run_cli(
            "profile",
            "-o",
            tmp_path / f"{name}.html",
            "--gpu-model",
            model,
            "--",
            "run",
            "pagerank",
            small_graph,
            "-o",
            tmp_path / f"{name}.csv",
        )
    pair = (tmp_path / "a.json", tmp_path / "b.json")
    found = answer(run_cli("profile", "--compare", *pair, "--json"))
    assert found["configuration"]["gpu_model"] == ["H100 SXM", "A100"]
    assert "ctas_per_sm" in {change["name"] for change in found["changes"]}
    shown = run_cli("profile", "--compare", *pair)
    assert shown.stdout.startswith("metric\ta.json\tb.json\tratio\tunit\n")


def test_spans_are_written_as_a_chrome_trace_that_can_be_read_back(
    tmp_path: Path, small_graph: Path, run_cli: Run
) -> None:
    words = ["run", "pagerank", small_graph, "-o", tmp_path / "r.csv"]
    spans = tmp_path / "spans.json.gz"
    done = run_cli(
        "profile", "-o", tmp_path / "r.html", "--chrome-trace", spans, "--", *words
    )
    assert done.returncode == 0, done.stderr
    done = run_cli("profile", "-o", tmp_path / "t.html", "--trace", spans)
    assert done.returncode == 0, done.stderr
    assert "no kernel of a GPU" in done.stderr
    assert report_at(tmp_path / "t.html")["configuration"]["events"] > 0
    again = run_cli("profile", "-o", tmp_path / "t.html", "--trace", spans)
    assert again.returncode == 2


def test_an_ingest_is_broken_down_into_its_spans(
    tmp_path: Path, edges_file: Path, run_cli: Run
) -> None:
    page = tmp_path / "r.html"
    done = run_cli("profile", "-o", page, "--", "ingest", edges_file, "-o", tmp_path / "g")
    assert done.returncode == 0, done.stderr
    names = {row["name"] for row in report_at(page)["operators"]}
    assert {"scan", "number", "group", "write"} <= names
