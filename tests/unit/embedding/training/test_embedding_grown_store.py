"""Training goes on from a run of the same store before it grew, without a second store."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import graphsys as gs
from graphsys.cli.main import main
from graphsys.storage.runs.trained_graph import open_trained_graph
from tests.stores import read_edges

SMALL = ["--set", "epochs=2", "--set", "dim=8", "--json"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 50, (2, 300))
    gs.ingest({"src": ends[0], "dst": ends[1]}, "g", partitions=2).graph.close()
    grow("g", {"src": [50, 51], "dst": [1, 2]})
    assert main(["train", "embedding", "g", "-o", "old", *SMALL]) == 0
    later = {"src": [60, 61, 60], "dst": [61, 3, 50]}
    grow("g", later, {"src": ends[0][:5], "dst": ends[1][:5]})
    return tmp_path


def grow(path: str, come: Any, gone: Any = None) -> None:
    with gs.open(path) as graph:
        graph.append(come, delete=gone).graph.close()


def rows_by_id(run: str) -> dict[int, bytes]:
    assert main(["export", run, "-o", f"{run}.parquet"]) == 0
    table = pq.read_table(f"{run}.parquet")
    ids, rows = table["id"].to_pylist(), table["embedding"].to_numpy()
    return {node: row.tobytes() for node, row in zip(ids, rows, strict=True)}


def test_only_what_is_new_is_trained(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    start = ["--set", "init_from=old", "--set", "train_only=new"]
    assert main(["train", "embedding", "g", "-o", "new", *start, *SMALL]) == 0
    drift = json.loads(capsys.readouterr().out)["metrics"]["drift"]["node"]
    assert (drift["nodes"], drift["new_nodes"], drift["max"]) == (52, 2, 0.0)
    warm = json.loads(Path("new/run.json").read_text())
    assert '"new_edges": 3' in json.dumps(warm)
    old, new = rows_by_id("old"), rows_by_id("new")
    assert new.keys() - old.keys() == {60, 61}
    assert {node: new[node] for node in old} == old


def test_drift_is_told_where_all_is_trained(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    start = ["--set", "init_from=old"]
    assert main(["train", "embedding", "g", "-o", "new", *start, *SMALL]) == 0
    drift = json.loads(capsys.readouterr().out)["metrics"]["drift"]["node"]
    assert drift["max"] > 0


def test_a_run_of_before_shows_the_graph_it_was_trained_on(folder: Path) -> None:
    stated = json.loads(Path("old/run.json").read_text())["graph"]
    with gs.open("g") as now, open_trained_graph(stated, Path("old")) as then:
        assert (then.num_nodes, then.num_edges) == (52, 302)
        assert then.fingerprint == stated["fingerprint"] != now.fingerprint
        assert len(then.node_ids("node")) == 52
        assert now.num_nodes == 54
        edges = read_edges(then, "edge")
    assert len(edges) == 302
