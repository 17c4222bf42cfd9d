"""The case ``billion`` at a small scale: its steps run, keep their budget, and go on."""

import importlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT

BUDGET = "300MB"
STEPS = "build,verify,pagerank,bfs,sage,embedding,nearest"


@pytest.fixture
def billion(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The case, with a look at the disk and at limits that costs nothing."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "scripts"))
    case = importlib.import_module("bench.cases.billion")
    limits = importlib.import_module("bench.limits")
    gemm = "x".join(map(str, case.GEMM))
    found = limits.Limits(
        copy_bandwidth=1e10,
        gather_rate_small=4e8,
        gather_rate_large=1e8,
        gemm_rate={gemm: 1e10},
        disk_write_bandwidth=1e9,
        disk_read_bandwidth=1e9,
        cached_read_bandwidth=4e9,
    )
    monkeypatch.setattr(case, "measure_limits", lambda *_, **__: found)
    monkeypatch.setattr(case, "_require_room", lambda *_: None)
    return case


def test_all_steps_keep_the_budget_and_go_on(
    billion: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--scale", "12", "--memory", BUDGET, "--folder", str(tmp_path / "run")]
    assert billion.main([*words, "--steps", STEPS]) == 0
    rows = json.loads((tmp_path / "run" / "rows.json").read_text())["rows"]
    assert [row["step"] for row in rows] == STEPS.split(",")
    for row in rows:
        assert row["verdict"] == "kept"
        assert 20e6 < row["peak_bytes"] < 632e6
        assert row["seconds"] > 0
        assert row["fraction_of_bound"] >= 0
        assert str(tmp_path) not in json.dumps(row)
    assert not (tmp_path / "run" / "bfs.parquet").exists()
    capsys.readouterr()
    assert next(r for r in rows if r["step"] == "sage")["edges_per_s"] > 0
    assert billion.main([*words, "--steps", "build,bfs,nearest"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.rsplit("  ", 1)[-1] for line in said] == ["known"] * 3
    capsys.readouterr()
    roomy = ["--scale", "12", "--memory", "600MB", "--folder", str(tmp_path / "run")]
    assert billion.main([*roomy, "--steps", "gnn,predict"]) == 0
    # an output that is gone is made again
    (tmp_path / "run" / "pagerank.parquet").unlink()
    assert billion.main([*words, "--steps", "pagerank"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("kept")


def test_a_peer_answers_the_same_questions(
    billion: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb")
    words = ["--scale", "10", "--memory", BUDGET, "--folder", str(tmp_path), "--peers"]
    ours, theirs = "build,wcc,degree_statistics", "edges_duckdb,degrees_duckdb,wcc_duckdb"
    assert billion.main([*words, "--steps", f"{ours},{theirs}"]) == 0
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row.get("system") for row in rows] == [None] * 3 + ["DuckDB"] * 3
    assert all(row["own_seconds"] > 0 for row in rows[3:])
    assert not (tmp_path / "edges.duckdb").exists()
    # an answer that is not the peer's ends the run
    peers = importlib.import_module("bench.billion_peers")
    peers.edges(tmp_path / "graph", tmp_path)
    table = pq.read_table(tmp_path / "wcc.parquet")
    alone = table.set_column(table.column_names.index("value"), "value", table["id"])
    pq.write_table(alone, tmp_path / "wcc.parquet")
    with pytest.raises(SystemExit, match=r"error: wcc: DuckDB finds .* graphsys"):
        peers.wcc(tmp_path, "")


def test_a_budget_that_is_broken_is_told(
    billion: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--scale", "10", "--memory", BUDGET, "--folder", str(tmp_path)]
    monkeypatch.setattr(billion, "tree_bytes", lambda _: 333 * 10**6)
    assert billion.main([*words, "--steps", "build"]) == 1


def test_steps_need_those_before(billion: Any, tmp_path: Path) -> None:
    words = ["--scale", "10", "--folder", str(tmp_path), "--steps"]
    with pytest.raises(SystemExit, match="error: step nearest needs pagerank, embedding"):
        billion.main([*words, "nearest"])
    with pytest.raises(SystemExit, match="error: --steps: got fly; the case has build"):
        billion.main([*words, "fly"])
    # a budget that no build can meet ends the run with what the command says
    with pytest.raises(SystemExit, match=r"error: step build failed: .*--memory"):
        billion.main([*words, "build", "--memory", "9MB"])


def test_a_disk_that_is_too_small_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    case = importlib.import_module("bench.cases.billion")
    usage = type("Usage", (), {"free": 10**9})
    monkeypatch.setattr(case.shutil, "disk_usage", lambda _: usage)
    setting = case.Setting(folder=tmp_path, scale=26, memory="8GB")
    with pytest.raises(
        SystemExit,
        match=r"error: scale 26 takes .* GiB in the folder, and .* --scale 20 fits",
    ):
        case._require_room(setting, ["build", "embedding"])
    case._require_room(case.Setting(folder=tmp_path, scale=19, memory="8GB"), ["bfs"])
