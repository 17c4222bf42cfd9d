"""What a last result may be of, and what is refused; the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphsys as gs
from graphsys.cli.main import main
from graphsys.core.errors import ConfigError

EDGES = {"src": [1, 2, 4, 7], "dst": [2, 3, 5, 8], "time": [1, 2, 3, 4]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    gs.ingest(EDGES, "g").graph.close()
    assert main(["run", "wcc", "g", "-o", "last.parquet"]) == 0
    (tmp_path / "new.csv").write_text("src,dst,time\n3,4,5\n9,7,6\n")
    (tmp_path / "gone.csv").write_text("src,dst\n1,2\n")
    assert main(["append", "g", "new.csv", "--delete", "gone.csv"]) == 0
    return tmp_path


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_command_goes_on_from_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    assert main(["run", "wcc", "g", "-o", f"a.{suffix}", "--from", "last.parquet"]) == 0
    capsys.readouterr()
    again = ["run", "wcc", "g", "-o", "b.parquet", "--from", f"a.{suffix}", "--json"]
    assert main(again) == 0
    assert json.loads(capsys.readouterr().out)["result"] == 3
    table = pq.read_table("b.parquet")
    labels = dict(zip(*table.to_pydict().values(), strict=True))
    assert labels == {1: 1, 2: 2, 3: 2, 4: 2, 5: 2, 7: 7, 8: 7, 9: 7}


def test_explaining_tells_what_came_and_went(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "wcc", "g", "--explain", "--from", "last.parquet"]) == 0
    assert "3 edges came or went since" in capsys.readouterr().out


def test_a_file_whose_rows_were_sorted_otherwise_is_taken(folder: Path) -> None:
    table = pq.read_table("last.parquet")
    turned = table.take(pa.array(range(table.num_rows - 1, -1, -1)))
    with gs.open("g") as graph:
        assert gs.algorithms.wcc(graph, last=turned).table.equals(
            gs.algorithms.wcc(graph).table
        )


REFUSED: list[tuple[list[str], str]] = [
    (["wcc", "g", "--from", "none.parquet"], "none.parquet cannot be .* there is none"),
    (["wcc", "g", "--from", "new.csv"], "new.csv cannot be read .* .parquet or .arrow"),
    (["wcc", "g", "--from", "bad.parquet"], "bad.parquet cannot be read as a last result"),
    (["wcc", "g", "--from", "plain.parquet"], "plain.parquet does not say what it is of"),
    (["wcc", "g", "--from", "odd.parquet"], "odd.parquet does not say what it is of"),
    (["wcc", "g", "--from", "few.parquet"], "few.parquet has not the nodes that the graph"),
    (["wcc", "g", "--from", "named.parquet"], "named.parquet has other columns or rows"),
    (["k_core", "g", "--from", "last.parquet"], "is of wcc, expected one of k_core"),
    (["scc", "g", "--from", "last.parquet"], "scc does not go on from a last result"),
    (["wcc", "other", "--from", "last.parquet"], "is of another graph than other"),
    (["wcc", "g", "--from", "later.parquet"], "is of another graph than g"),
    (["wcc", "types", "--from", "last.parquet"], "got 2 and 1; run it again"),
    (["wcc", "g", "--from", "last.parquet", "--implementation", "program"], "natively"),
    (["wcc", "g", "--from", "last.parquet", "--device", "cuda"], "device does not go with"),
    (
        ["wcc", "g", "--from", "last.parquet", "--cluster", "local:1"],
        "from does not go with --cluster",
    ),
    (["mine.py:Mine", "g", "--from", "last.parquet"], "--from goes with listed algorithms"),
    (
        ["bfs", "g", "--from", "hops.parquet", "--param", "source=2"],
        "has source=1, expected 2; give the same source",
    ),
    (
        [
            "bfs",
            "g",
            "--from",
            "tree.parquet",
            "--param",
            "source=1",
            "--param",
            "parents=true",
        ],
        "parents are not followed",
    ),
    (
        ["pagerank", "g", "--from", "ranks.parquet", "--param", "iterations=3"],
        "iterations count from even scores",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    import re

    last = pq.read_table("last.parquet")
    Path("bad.parquet").write_bytes(b"PAR1 nothing PAR1")
    pq.write_table(last.replace_schema_metadata(None), "plain.parquet")
    pq.write_table(last.replace_schema_metadata({"graphsys": "[1]"}), "odd.parquet")
    few = last.set_column(0, "id", pa.array([*range(100, 107)]))
    pq.write_table(few.replace_schema_metadata(last.schema.metadata), "few.parquet")
    named = last.rename_columns(["id", "label"])
    pq.write_table(named.replace_schema_metadata(last.schema.metadata), "named.parquet")
    Path("mine.py").write_text(
        "import graphsys as gs\nclass Mine(gs.VertexProgram):\n    a = gs.state('int64')\n"
    )
    gs.ingest({"src": [1], "dst": [2]}, "other").graph.close()
    kinds = {("user", "likes", "item"): pa.table({"src": [1], "dst": [2]})}
    gs.ingest(out="types", edges=kinds).graph.close()
    more = {"bfs": ["--param", "source=1"], "pagerank": ["--param", "iterations=3"]}
    outs = {"bfs": "hops.parquet", "pagerank": "ranks.parquet"}
    for name in outs.keys() & {arguments[0]}:
        assert main(["run", name, "g", "-o", outs[name], *more[name]]) == 0
    tree = ["run", "bfs", "g", "-o", "tree.parquet", "--param", "source=1"]
    assert main([*tree, "--param", "parents=true"]) == 0
    assert main(["run", "wcc", "g", "-o", "later.parquet"]) == 0
    if "later.parquet" in arguments:  # a store that never had that delta
        table = pq.read_table("later.parquet")
        known = json.loads(table.schema.metadata[b"graphsys"])
        known["deltas"] += 1
        text = json.dumps(known)
        pq.write_table(table.replace_schema_metadata({"graphsys": text}), "later.parquet")
    capsys.readouterr()
    assert main(["run", *arguments, "-o", "out.parquet"]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert re.search(message, printed), printed
    assert not Path("out.parquet").exists()


def test_views_and_edges_in_memory_are_refused(folder: Path) -> None:
    wrong: Any = 3
    last: Any = pq.read_table("last.parquet")
    memory = gs.Topology.from_edges(np.zeros(1, int), np.ones(1, int), num_nodes=2)
    with gs.open("g") as graph:
        for kind in (graph.at(3), memory):
            with pytest.raises(ConfigError, match="needs a stored graph"):
                gs.algorithms.wcc(kind, last=last)
        assert b"graphsys" not in gs.algorithms.wcc(graph.at(3)).table.schema.metadata
        with pytest.raises(ConfigError, match="last is int, expected a result"):
            gs.algorithms.wcc(graph, last=wrong)


def test_a_compacted_graph_refuses_results_of_before(folder: Path) -> None:
    assert main(["compact", "g"]) == 0
    with gs.open("g") as graph, pytest.raises(ConfigError, match="it was compacted"):
        gs.algorithms.wcc(graph, last="last.parquet")
