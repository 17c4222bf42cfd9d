"""Runs of every version still open, are evaluated, and go on to the same end.

``runs/v1`` was made by commit 80a8b72: a training of each kind, ended after two epochs of
four. The figures below are those of the same trainings run through on that commit.
"""

import json
import shutil
from pathlib import Path

import pytest

from graphsys import embedding, gnn
from graphsys.storage import Graph
from graphsys.storage.verify.run import verify_run
from graphsys.storage.verify.verify import verify

V1 = Path(__file__).parent / "runs" / "v1"
EMBEDDING_LOSSES = [12.319749, 12.276982, 12.077735, 11.787610]
GNN_LOSSES = [1.276582, 1.188388, 1.113572, 1.051938]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a copy of the graph and its runs, which say where the copy is."""
    shutil.copytree(V1, tmp_path / "v1")
    for kind in ("embedding", "gnn"):
        file = tmp_path / "v1" / kind / "run.json"
        content = json.loads(file.read_text())
        content["graph"]["path"] = str(tmp_path / "v1" / "graph")
        file.write_text(json.dumps(content))
    return tmp_path / "v1"


def test_the_graph_and_the_runs_verify(old: Path) -> None:
    assert verify(old / "graph").problems == []
    for kind in ("embedding", "gnn"):
        assert verify_run(old / kind).problems == []


def test_an_embedding_opens_is_evaluated_and_resumed(old: Path) -> None:
    run = old / "embedding"
    assert embedding.evaluate(run)["metrics"]["mrr"] == pytest.approx(0.182703, rel=1e-4)
    with Graph(old / "graph") as graph:
        report = embedding.train(graph, None, run, resume=True)
    assert report.epochs == 4
    content = json.loads((run / "run.json").read_text())
    assert content["losses"] == pytest.approx(EMBEDDING_LOSSES, rel=1e-4)
    assert content["format_version"] == 2
    assert embedding.evaluate(run)["metrics"]["mrr"] == pytest.approx(0.154020, rel=1e-3)
    assert verify_run(run).problems == []


def test_a_network_opens_with_a_note_is_evaluated_and_resumed(old: Path) -> None:
    run = old / "gnn"
    with pytest.warns(UserWarning, match="from before files had checksums"):
        assert gnn.evaluate(run)["metrics"]["accuracy"] == 0.5
    with Graph(old / "graph") as graph:
        with pytest.warns(UserWarning, match="from before files had checksums"):
            gnn.train(graph, None, run, resume=True)
        content = json.loads((run / "run.json").read_text())
        assert content["losses"] == pytest.approx(GNN_LOSSES, rel=1e-4)
        assert content["format_version"] == 2
        assert gnn.evaluate(run)["metrics"]["num_nodes"] == 6
    assert verify_run(run).problems == []
