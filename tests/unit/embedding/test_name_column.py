"""Nodes that go by a column of theirs: names asked for, and answered."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import graphsys as gs
from graphsys.cli import main as cli
from graphsys.core.errors import ConfigError, UnknownNameError
from tests.conftest import Call

CITIES = [f"city {k}" for k in range(12)]
FEW = ("--set", "dim=4", "--set", "epochs=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an OpenKE data set as a graph, and runs of both trainers."""
    root = tmp_path_factory.mktemp("openke")
    kge = root / "kge"
    kge.mkdir()
    rng = np.random.default_rng(3)
    pairs = sorted({(int(a), int(b)) for a, b in rng.integers(0, 12, (40, 2)) if a != b})
    lines = [f"{a} {b} {(a + b) % 2}" for a, b in pairs]
    (kge / "train2id.txt").write_text("\n".join([str(len(lines)), *lines]) + "\n")
    names = [f"{name}\t{k}" for k, name in enumerate(CITIES)]
    (kge / "entity2id.txt").write_text("\n".join(["12", *names]) + "\n")
    (kge / "relation2id.txt").write_text("2\nroad to\t0\nrail to\t1\n")
    gs.ingest(kge, root / "g", partitions=2)
    network = {"task": "link_prediction", "batch_size": 8, "num_negatives": 2}
    for kind, settings in (("embedding", {}), ("gnn", network)):
        more = [it for k, v in settings.items() for it in ("--set", f"{k}={v}")]
        words = ("train", kind, root / "g", "-o", root / kind, *FEW, *more)
        assert cli.main([str(word) for word in words]) == 0
    (root / "users.csv").write_text(
        "id,nick,age,size\n1,ann,30,1.5\n2,bob,40,2.5\n3,ann,50,3\n"
    )
    (root / "likes.csv").write_text("src,dst\n1,2\n2,3\n3,1\n")
    _ingest(root, root / "people")
    return root


def _ingest(folder: Path, out: Path) -> None:
    """Make a graph of ``users.csv`` and ``likes.csv``, whose numbers no model reads."""
    edges = {("user", "likes", "user"): folder / "likes.csv"}
    with pytest.warns(UserWarning, match="no model reads the column"):
        gs.ingest(out=out, nodes={"user": folder / "users.csv"}, edges=edges)


def cells(path: Path, column: str) -> list[str]:
    with path.open() as file:
        return [row[column] for row in csv.DictReader(file)]


@pytest.mark.parametrize("kind", ["embedding", "gnn"])
def test_neighbors_go_by_name(folder: Path, call: Call, kind: str) -> None:
    code, said, why = call("nearest", folder / kind, 7, "-k", 3, "--json")
    assert code == 0, why
    by_id = [it["id"] for it in json.loads(said)["neighbors"]]
    words = ("nearest", folder / kind, "city 7", "-k", 3, "--json", "--name-column", "name")
    code, said, why = call(*words)
    assert code == 0, why
    assert [it["id"] for it in json.loads(said)["neighbors"]] == [CITIES[k] for k in by_id]


@pytest.mark.parametrize("kind", ["embedding", "gnn"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_exported_rows_go_by_name(
    folder: Path, tmp_path: Path, call: Call, kind: str, suffix: str
) -> None:
    one, two = tmp_path / f"ids.{suffix}", tmp_path / f"names.{suffix}"
    assert call("export", folder / kind, "-o", one)[0] == 0
    assert call("export", folder / kind, "-o", two, "--name-column", "name")[0] == 0
    if suffix == "csv":
        ids, names = cells(one, "id"), cells(two, "id")
    else:
        read = pyarrow.parquet.read_table
        ids, names = (read(it).column("id").to_pylist() for it in (one, two))
    assert names == [CITIES[int(k)] for k in ids]


def test_missing_edges_are_predicted_by_the_names_of_an_openke_folder(
    folder: Path, tmp_path: Path, call: Call
) -> None:
    (tmp_path / "asked.csv").write_text(
        "head,relation,tail\ncity 3,rail to,\n,road to,city 4\n"
    )
    out = tmp_path / "answers.csv"
    words = ("predict", folder / "embedding", "--nodes", tmp_path / "asked.csv", "-o", out)
    code, _, why = call(*words, "--name-column", "name", "-k", 2)
    assert code == 0, why
    assert cells(out, "relation") == ["rail to"] * 2 + ["road to"] * 2
    assert cells(out, "head")[:2] == ["city 3"] * 2
    assert cells(out, "tail")[2:] == ["city 4"] * 2
    assert {*cells(out, "tail"), *cells(out, "head")} <= {*CITIES}
    run = gs.embedding.open_run(folder / "embedding")
    expected = run.predict(3, "rail to", None, k=2).column("id").to_pylist()
    assert cells(out, "tail")[:2] == [CITIES[k] for k in expected]


@pytest.mark.parametrize("more", [(), ("--top-k", 2)])
def test_a_network_predicts_by_name(
    folder: Path, tmp_path: Path, call: Call, more: tuple[object, ...]
) -> None:
    (tmp_path / "asked.txt").write_text("city 5\ncity 2\n")
    out = tmp_path / "answers.jsonl"
    words = ("predict", folder / "gnn", "--nodes", tmp_path / "asked.txt", "-o", out)
    code, _, why = call(*words, "--name-column", "name", *more)
    assert code == 0, why
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    key = "head" if more else "id"
    assert list(dict.fromkeys(row[key] for row in rows)) == ["city 5", "city 2"]
    assert not more or {row["tail"] for row in rows} <= {*CITIES}


def test_an_algorithm_takes_and_gives_names(
    folder: Path, tmp_path: Path, call: Call
) -> None:
    one, two = tmp_path / "ids.csv", tmp_path / "names.csv"
    assert call("run", "bfs", folder / "g", "-o", one, "--param", "source=3")[0] == 0
    named = ("--param", "source=city 3", "--name-column", "name")
    code, _, why = call("run", "bfs", folder / "g", "-o", two, *named)
    assert code == 0, why
    assert cells(two, "id") == [CITIES[int(k)] for k in cells(one, "id")]
    assert cells(two, "value") == cells(one, "value")


@pytest.mark.parametrize("algorithm", ["mis", "cdlp", "pagerank"])
def test_names_change_no_result(
    folder: Path, tmp_path: Path, call: Call, algorithm: str
) -> None:
    """Ties are decided by ids, whatever the nodes go by."""
    one, two = tmp_path / "ids.parquet", tmp_path / "names.parquet"
    assert call("run", algorithm, folder / "g", "-o", one)[0] == 0
    assert call("run", algorithm, folder / "g", "-o", two, "--name-column", "name")[0] == 0
    ids, names = (pyarrow.parquet.read_table(it).to_pydict() for it in (one, two))
    assert names.pop("id") == [CITIES[k] for k in ids.pop("id")]
    values = (
        ids if algorithm != "cdlp" else {k: [CITIES[v] for v in c] for k, c in ids.items()}
    )
    assert names == values


def test_a_column_that_there_is_not(folder: Path, call: Call) -> None:
    code, _, said = call("nearest", folder / "embedding", 7, "--name-column", "title")
    assert code == 2
    assert "name_column: got 'title'" in said
    assert "there are, by node type: entity: name" in said
    people = gs.open(folder / "people")
    with pytest.raises(ConfigError, match="column 'size' of node type 'user' is of double"):
        people.named_by("size")


def test_a_name_of_several_is_refused_with_their_ids(folder: Path) -> None:
    people = gs.open(folder / "people").named_by("nick")
    assert people.node_ids("user").to_pylist() == ["ann", "bob", "ann"]
    assert people.lookup("user", ["bob"]).tolist() == [1]
    with pytest.raises(
        ConfigError, match=r"nick 'ann' is that of 2 nodes .*, of ids 1, 3; ask"
    ):
        people.lookup("user", ["bob", "ann"])
    with pytest.raises(UnknownNameError, match=r"node 'cid' is not among .* by nick"):
        people.lookup("user", ["cid"])
    assert people.by_ids().lookup("user", [3]).tolist() == [2]


def test_numbers_may_be_names(folder: Path) -> None:
    people = gs.open(folder / "people").named_by("age")
    assert people.lookup("user", ["40", "50"]).tolist() == [1, 2]
    assert sorted(people.neighbors(40)) == [50]


def test_a_node_without_a_name_has_its_id(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("id,nick,age\n7,ann,1\n8,,2\n9,cid,\n")
    (tmp_path / "likes.csv").write_text("src,dst\n7,8\n8,9\n")
    _ingest(tmp_path, tmp_path / "g")
    graph = gs.open(tmp_path / "g")
    assert graph.named_by("nick").node_ids("user").to_pylist() == ["ann", "8", "cid"]
    nodes = {"user": pa.table({"id": [7, 8, 9], "age": [1, 2, None]})}
    edges = {("user", "likes", "user"): pa.table({"src": [7, 8], "dst": [8, 9]})}
    with pytest.warns(UserWarning, match="no model reads the column"):
        gs.ingest(out=tmp_path / "ages", nodes=nodes, edges=edges)
    with pytest.raises(ConfigError, match=r"'age' .* is empty for 1 nodes, .* of id 9"):
        gs.open(tmp_path / "ages").named_by("age")
