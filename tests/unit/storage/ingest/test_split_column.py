"""Edges whose column says train, valid or test are in that split."""

from pathlib import Path

import pyarrow as pa
import pytest

import graphsys as gs
from graphsys.core.errors import InputError
from graphsys.core.types import EdgeType
from graphsys.storage import Graph

KIND = EdgeType("node", "knows", "node")
SRC, DST = list("abcd"), list("bcda")


def pairs_of(graph: Graph, split: str) -> set[tuple[str, str]]:
    (kind,) = graph.edge_types
    ids = graph.node_ids(kind.src_type).to_pylist()
    bucket = graph.bucket(kind, 0, 0, split=split)
    return {(ids[s], ids[d]) for s, d in zip(bucket.src, bucket.dst, strict=True)}


@pytest.mark.parametrize("valid", ["valid", "val", "dev", "validation"])
def test_a_tables_column_says_the_split(valid: str, tmp_path: Path) -> None:
    split = ["train", valid, "test", "train"]
    table = pa.table({"src": SRC, "dst": DST, "split": split, "weight": [1.0, 2, 3, 4]})
    graph = gs.ingest(edges={KIND: table}, out=tmp_path / "g").graph
    assert sorted(graph.splits(KIND)) == ["test", "train", "valid"]
    assert pairs_of(graph, "train") == {("a", "b"), ("d", "a")}
    assert pairs_of(graph, "valid") == {("b", "c")}
    assert pairs_of(graph, "test") == {("c", "d")}
    weight = graph.bucket(KIND, 0, 0, split="test").weight
    assert weight is not None
    assert weight.tolist() == [3.0]
    assert "split" not in graph.manifest.edge_types["knows"].columns


def test_a_files_column_says_the_split(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text("src,dst,split\n" + "".join(f"{k},{k + 1},train\n" for k in range(50)))
    with file.open("a") as lines:
        lines.write("50,51,test\n51,52,test\n")
    graph = gs.ingest(file, tmp_path / "g").graph
    (kind,) = graph.edge_types
    assert graph.num_edges_of(kind, "train") == 50
    assert graph.num_edges_of(kind, "test") == 2
    again = gs.ingest(graph, tmp_path / "again", partitions=2).graph
    assert again.num_edges_of(kind, "test") == 2


def test_the_file_is_named_whose_words_are_no_splits(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text("src,dst,split\n1,2,train\n2,3,odd\n")
    with pytest.raises(InputError, match=r"edges\.csv: .* split: found 'odd'"):
        gs.ingest(file, tmp_path / "g")


def test_other_words_stay_a_column(tmp_path: Path) -> None:
    table = pa.table({"src": SRC, "dst": DST, "split": ["even", "odd"] * 2})
    graph = gs.ingest(edges={KIND: table}, out=tmp_path / "g").graph
    assert graph.splits(KIND) == ["train"]
    assert "split" in graph.manifest.edge_types["knows"].columns


@pytest.mark.parametrize(
    ("split", "found"),
    [(["train", "x", "test", "y"], "'x', 'y'"), (["train", None] * 2, "nothing")],
)
def test_some_splits_among_other_words_are_refused(
    split: list[str | None], found: str, tmp_path: Path
) -> None:
    table = pa.table({"src": SRC, "dst": DST, "split": split})
    with pytest.raises(InputError, match=f"column split: found {found} beside 'train'"):
        gs.ingest(edges={KIND: table}, out=tmp_path / "g")
    assert not (tmp_path / "g").exists()


def test_pairs_that_are_no_edges_are_a_split_too(tmp_path: Path) -> None:
    split = ["train", "test", "test_negative", "test_negative"]
    table = pa.table({"src": SRC, "dst": DST, "split": split})
    graph = gs.ingest(edges={KIND: table}, out=tmp_path / "g").graph
    assert graph.num_edges_of(KIND, "test_negative") == 2
    assert graph.num_edges_of(KIND, "test") == 1
