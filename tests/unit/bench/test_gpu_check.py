"""What a card is to tell is walked through without one: each step, kills, a second call."""

import importlib
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.conftest import ROOT

SCRIPT = ROOT / "scripts" / "gpu_check"


@pytest.fixture
def checking(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a module as scripts/gpu_check does."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return lambda name: importlib.import_module(f"gpu_checking.{name}")


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def call(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPT), *map(str, words)], capture_output=True, text=True, check=False
    )


def test_every_step_runs_in_the_simulator(tmp_path: Path, checking: Any) -> None:
    pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")
    out = tmp_path / "f.jsonl"
    done = call("--simulate", "--minutes", 30, "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = rows_of(out)
    assert [row for row in rows if "error" in row] == []
    ends = {row["step"]: row["status"] for row in rows if row.get("kind") == "end"}
    assert ends == {step.name: "done" for step in checking("steps").STEPS}
    told = {checking("steps").name_of(row) for row in rows}
    assert set(checking("predicted").planned_counters()) <= told
    compared = [
        row["compared_with"] for row in rows if row["step"] == "engine" and "case" in row
    ]
    assert set(compared) == {"checksums", "the CPU and checksums"}
    require_kernels_and_trainings([row for row in rows if row["step"] == "gnn"])
    again = call("--simulate", "--out", out)
    assert again.stdout.count("done by an earlier call") == len(ends)
    (begin,) = rows_of(out)[len(rows) :]
    assert begin["kind"] == "begin"


def require_kernels_and_trainings(rows: list[dict[str, Any]]) -> None:
    """Look at what the step of networks tells."""
    timed = [row for row in rows if "case" in row]
    ours = [row for row in timed if ", graphsys" in row["case"]]
    watched = [row for row in ours if "kernels" in row]
    assert len(watched) == 1
    assert len(ours) == 5 + 1 + 4  # sums and attention; what is watched; trainings
    kernels = [row for row in ours if "seconds" in row and row not in watched]
    assert all(row["edges_per_second"] > 0 < row["seconds_backward"] for row in kernels)
    trained = [row for row in ours if "loss" in row]
    assert len(trained) == 4
    assert all(row["seconds_per_100"] > 0 for row in trained)
    assert [row["device_cache_hit_rate"] > 0.2 for row in trained[2:3]] == [True]
    assert "sum of 100 float32, torch.sparse.mm" in {row["case"] for row in timed}


def test_a_step_that_takes_too_long_is_killed_and_told(
    tmp_path: Path, checking: Any
) -> None:
    out = tmp_path / "f.jsonl"
    steps = {step.name: step for step in checking("steps").STEPS}
    checking("process").run_step(steps["engine"], out, 0.2, is_simulated=True)
    (end,) = rows_of(out)
    assert (end["step"], end["status"]) == ("engine", "timeout")


def test_a_step_that_fails_is_told_and_not_done(tmp_path: Path, checking: Any) -> None:
    out = tmp_path / "f.jsonl"
    smoke = next(it for it in checking("steps").STEPS if it.name == "smoke")
    checking("process").run_step(smoke, out, 60, is_simulated=False)  # no GPU is here
    *_, error, end = rows_of(out)
    assert "no CUDA device or driver" in error["error"]
    assert end["status"] == "failed"
    assert checking("__main__").finished(out) == set()


def test_the_summary_names_what_was_not_reached_and_errors(checking: Any) -> None:
    rows = [
        {
            "step": "smoke",
            "kind": "end",
            "status": "done",
            "seconds": 1.0,
            "rows": 1,
            "errors": 0,
        },
        {"step": "engine", "case": "bfs, kron20", "strategy": "twc", "error": "differs"},
        {"step": "engine", "case": "bfs, kron20", "edges_per_second": 2e9},
        {
            "step": "engine",
            "kind": "end",
            "status": "failed",
            "seconds": 2.0,
            "rows": 2,
            "errors": 1,
        },
    ]
    lines = checking("summary").summary(rows, ["smoke", "engine", "gnn"])
    assert lines[1].split()[:2] == ["engine", "failed"]
    assert lines[2].split() == ["gnn", "not", "reached"]
    assert "error in engine, bfs, kron20, twc: differs" in lines
    assert "engine: 2 G edges/s, bfs, kron20" in lines


def test_what_was_done_over_counts_as_it_was_last(checking: Any) -> None:
    end = {"step": "smoke", "kind": "end", "seconds": 1.0, "rows": 1}
    rows = [
        {"step": "smoke", "error": "no hypothesis"},
        {**end, "status": "failed", "errors": 1},
        {"step": "smoke", "case": "versions"},
        {**end, "status": "done", "errors": 0},
    ]
    lines = checking("summary").summary(rows, ["smoke"])
    assert [line for line in lines if "error in" in line] == []


def test_the_steps_fit_into_nine_minutes(checking: Any) -> None:
    assert sum(step.seconds for step in checking("steps").STEPS) <= 540 - 20


def test_a_cut_line_is_left_out(tmp_path: Path, checking: Any) -> None:
    out = tmp_path / "f.jsonl"
    out.write_text('{"step": "smoke", "kind": "end", "status": "done"}\n{"step": "eng')
    assert checking("__main__").finished(out) == {"smoke"}


def test_a_result_and_a_page_are_made_of_what_a_card_told(
    tmp_path: Path, checking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = checking("record")
    assert "not yet run" in (ROOT / "scripts/bench/GPU.md").read_text() or list(
        record.BENCH.glob("results/gpu_check_*.json")
    )
    assert (ROOT / "scripts/bench/GPU.md").read_text() == record.page()
    monkeypatch.setattr(record, "BENCH", tmp_path)
    monkeypatch.setattr(record, "PAGE", tmp_path / "GPU.md")
    (tmp_path / "results").mkdir()
    told = [
        {
            "step": "",
            "kind": "begin",
            "command": "scripts/gpu_check",
            "commit": "abc",
            "date": "2026-11-26",
            "load_average": 0.5,
        },
        {"step": "smoke", "case": "versions", "device": "NVIDIA H100 80GB HBM3, 580"},
        {
            "step": "engine",
            "case": "bfs, kron20",
            "device": "cuda",
            "strategy": "twc",
            "seconds": 0.01234567,
        },
        {"step": "gnn", "program": "sum", "error": "it differs | by much"},
    ]
    path = record.keep(told)
    assert path.name.startswith("gpu_check_h100_")
    text = (tmp_path / "GPU.md").read_text()
    assert "| bfs, kron20, cuda, twc | 0.01235 |" in text
    assert "error: it differs" in text
    planned = [it for step in checking("steps").STEPS for it in step.planned()]
    assert text.count("| not yet run |") == len(planned) - 2  # versions, and one of engine


def test_registers_are_told_with_the_blocks_that_a_card_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    registers = importlib.import_module("bench.registers")
    row = registers.with_occupancy({"registers": 64, "shared_bytes": 0}, 256)
    # 65,536 registers over 64 of 256 threads each
    assert (row["ctas_per_sm"], row["occupancy_limit"]) == (4, "registers")


def test_graphs_are_made_of_the_bits_that_splitmix64_publishes(checking: Any) -> None:
    # of seed 0, as java.util.SplittableRandom and others print them
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [int(it) for it in checking("references")._bits(3)] == published
    pytest.importorskip("torch")
    golden = 0x9E3779B97F4A7C15
    made = checking("graphs").mixed(1000, 0, "cpu").numpy().view(np.uint64)
    state = np.arange(1000, dtype=np.uint64) * np.uint64(golden)
    assert made.tolist() == [finalized(int(it)) for it in state]
    share = checking("graphs").uniform(100_000, 3, "cpu").numpy()
    assert 0 <= share.min() < 0.001 < 0.999 < share.max() < 1
    assert abs(share.mean() - 0.5) < 0.005


def finalized(word: int) -> int:
    """Return splitmix64's finalizer of a word, in integers without end."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        word = (word ^ (word >> shift)) * factor % 2**64
    return word


def test_checksums_tell_other_values_and_other_places(checking: Any) -> None:
    references = checking("references")

    def differs(one: list[Any], other: list[Any]) -> bool:
        sums = [references.checksums(pa.table({"v": it})) for it in (one, other)]
        return bool(references.differences(*sums))

    assert not differs([1, 2, None], [1, 2, None])
    assert differs([1, 2], [2, 1])
    assert differs([1, 2], [1, 3])
    assert differs([1, None, 2], [1, 2, None])
    assert not differs([0.1, 0.2], [0.1, 0.2 + 1e-9])
    assert differs([0.1, 0.2], [0.2, 0.1])
    assert differs([0.1, 0.2], [0.1, 0.2001])
    assert differs([], [0])
