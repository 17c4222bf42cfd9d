"""Adjacency lists: a node and its neighbors on a line."""

import json
import re
import subprocess
from pathlib import Path

import networkx as nx
import pytest

import graphsys as gs
from graphsys.cli.main import main
from graphsys.core.errors import ConfigError, InputError

LISTS = "# users and items\n0 5 6\n1 5\n2\n 3\t0 1 2\r\n"
EDGES = {(0, 5), (0, 6), (1, 5), (3, 0), (3, 1), (3, 2)}


def edges_of(graph: gs.Graph, split: str | None = None) -> set[tuple[int, int]]:
    (kind,) = graph.edge_types
    bucket = graph.bucket(kind, 0, 0, split)
    src = graph.node_ids(kind.src_type).to_numpy()[bucket.src]
    dst = graph.node_ids(kind.dst_type).to_numpy()[bucket.dst]
    return set(zip(src.tolist(), dst.tolist(), strict=True))


def test_lists_of_neighbors(tmp_path: Path) -> None:
    path = tmp_path / "lists.txt"
    path.write_text(LISTS)
    assert edges_of(gs.ingest(path, tmp_path / "g", format="adjacency").graph) == EDGES
    wide = tmp_path / "wide.txt"
    wide.write_text("0 1 2 3\n4 5\n")
    with pytest.raises(InputError, match=r"pass --format adjacency if these are lists of"):
        gs.ingest(wide, tmp_path / "w")


def test_what_networkx_writes(tmp_path: Path) -> None:
    graph = nx.gnm_random_graph(20, 60, seed=1, directed=True)
    path = tmp_path / "g.adjlist"
    nx.write_adjlist(graph, path)
    assert edges_of(gs.ingest(path, tmp_path / "g").graph) == set(graph.edges)


def test_users_and_items_with_splits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("train", "0 0 1\n1 0\n"), ("test", "0 2\n1 1\n")):
        (tmp_path / f"{name}.txt").write_text(text)
    command = ["ingest", "--format", "adjacency", "-o", str(tmp_path / "g"), "--json"]
    for name in ("test", "train"):
        command += ["--edges", f"user,likes,item={tmp_path / name}.txt"]
    assert main(command) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["node_types"] == {"user": 2, "item": 3}
    assert facts["num_edges_by_split"] == {"train": 3, "test": 2}
    graph = gs.open(tmp_path / "g")
    assert edges_of(graph, "test") == {(0, 2), (1, 1)}


def test_what_is_no_list_is_refused(tmp_path: Path) -> None:
    path, out = tmp_path / "g.adjlist", tmp_path / "g"
    path.write_text("# a\n0 1\n2 x 3\n")
    with pytest.raises(InputError, match=r"g\.adjlist:3: found 'x', expected integer ids"):
        gs.ingest(path, out)
    with pytest.raises(
        ConfigError, match="adjacency lists are ids between blanks and have"
    ):
        gs.ingest(path, out, columns="src,dst")
    with pytest.raises(
        ConfigError, match="got 'mtx' for tables by type, expected adjacency"
    ):
        gs.ingest(out=out, edges={"a,r,b": path}, format="mtx")
    with pytest.raises(ConfigError, match="adjacency lists are files, got a table in mem"):
        gs.ingest(out=out, edges={"a,r,b": {"src": [1]}}, format="adjacency")
    path.write_text("0\n1\n")
    with pytest.raises(InputError, match="no edge in the file, expected at least one"):
        gs.ingest(path, out)


def test_a_line_of_one_id_is_a_node(tmp_path: Path) -> None:
    path = tmp_path / "g.adjlist"
    path.write_text("1 2 3\n2 3\n\n4\n4\n2\n")
    graph = gs.ingest(path, tmp_path / "g").graph
    assert sorted(graph.node_ids("node").to_pylist()) == [1, 2, 3, 4]
    assert edges_of(graph) == {(1, 2), (1, 3), (2, 3)}


def test_names_in_lists_are_what_networkx_reads(tmp_path: Path) -> None:
    expected = nx.DiGraph([("a", "b"), ("a", "c"), ("b", "c"), ("01", "1")])
    expected.add_node("lone")
    path = tmp_path / "g.adjlist"
    nx.write_adjlist(expected, path)
    found = gs.ingest(path, tmp_path / "g").graph.to_networkx()
    assert set(found.nodes) == set(expected.nodes)
    assert set(found.edges()) == set(expected.edges)
    path.write_text("1 2\n01 3\n")
    with pytest.warns(UserWarning, match="zeros in front"):
        assert gs.ingest(path, tmp_path / "z").graph.manifest.node_types[
            "node"
        ].id_type == ("large_string")


@pytest.mark.parametrize("text", ["1: 2 3\n2: 3\n", "1,2,3\n2,3\n", "a: b c\nb: c\n"])
def test_marks_behind_ids_of_lists_are_refused_with_what_removes_them(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "g.adjlist"
    path.write_text(text)
    with pytest.raises(InputError, match="stands behind ids") as refused:
        gs.ingest(path, tmp_path / "g")
    (command,) = re.findall(r"tr .*", str(refused.value))
    new = tmp_path / "new.adjlist"
    command = command.replace("FILE", str(path)).replace("NEW", str(new))
    subprocess.run(["bash", "-c", command], check=True)
    graph = gs.ingest(new, tmp_path / "g").graph
    assert graph.manifest.node_types["node"].offsets[-1] == 3
