"""OGB's raw folders, written here in their documented layout."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import InputError
from graphsys.datasets import ingest, open_source
from graphsys.storage.source import NodeChunk


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    return root


PLAIN = {
    "raw/edge": "0,1\n1,2\n3,0\n",
    "raw/num-node-list": "4\n",
    "raw/num-edge-list": "3\n",
    "raw/node-feat": "0.5,1\n1,2\n-1,3e-1\n0,0\n",
    "raw/node-label": "1\nnan\n0\n2\n",
    "raw/node_year": "2013\n2014\n2015\n2016\n",
    "split/time/train": "0\n2\n",
    "split/time/valid": "1\n",
    "split/time/test": "3\n",
}
TYPED = {
    "raw/triplet-type-list": "author,writes,paper\npaper,cites,paper\n",
    "raw/num-node-dict": "author,paper\n2,3\n",
    "raw/relations/author___writes___paper/edge": "0,2\n1,0\n",
    "raw/relations/paper___cites___paper/edge": "0,1\n",
    "raw/node-feat/paper/node-feat": "1,2\n3,4\n5,6\n",
    "raw/node-feat/paper/node_year": "1\n2\n3\n",
    "raw/node-label/paper/node-label": "7\n8\n9\n",
    "split/time/paper/train": "0\n1\n",
    "split/time/paper/test": "2\n",
}


def test_one_kind_of_nodes(tmp_path: Path) -> None:
    graph = ingest(write(tmp_path / "o", PLAIN), tmp_path / "g").graph
    assert (graph.num_nodes, graph.num_edges, graph.is_directed) == (4, 3, True)
    table = graph.nodes("node", 0)
    assert table["label"].to_pylist() == [1, None, 0, 2]
    assert table["time"].to_pylist() == [2013, 2014, 2015, 2016]
    assert table["split"].to_pylist() == ["train", "valid", "train", "test"]
    assert graph.features("node", 0, "x")[2].tolist() == pytest.approx([-1, 0.3])


def test_several_kinds_of_nodes(tmp_path: Path) -> None:
    graph = ingest(write(tmp_path / "o", TYPED), tmp_path / "g").graph
    assert {it.relation for it in graph.edge_types} == {"writes", "cites"}
    assert graph.nodes("author", 0).column_names == ["id"]
    paper = graph.nodes("paper", 0)
    assert paper["label"].to_pylist() == [7, 8, 9]
    assert paper["split"].to_pylist() == ["train", "train", "test"]
    assert graph.features("paper", 0, "x").tolist() == [[1, 2], [3, 4], [5, 6]]


def test_several_labels(tmp_path: Path) -> None:
    files = PLAIN | {"raw/node-label": "1,0\n0,nan\n1,1\n0,0\n"}
    chunk: Any = next(iter(open_source(write(tmp_path, files)).chunks()))
    assert isinstance(chunk, NodeChunk)
    labels: Any = chunk.columns["label"]
    assert labels.to_pylist() == [[1, 0], [0, None], [1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"raw/num-node-list": "4\n5\n"}, "2 lines, expected the numbers of nodes of one"),
        (
            {"raw/node-feat": "1,2\n1\n1,2\n1,2\n"},
            r"node-feat\.csv\.gz:2: found 1 column, expected 2",
        ),
        ({"raw/node-feat": "1,2\n"}, r"node-feat\.csv\.gz: 1 rows, expected 4, one for"),
        ({"raw/node-label": "1\nx\n1\n1\n"}, r"node-label\.csv\.gz:2: found 'x'"),
        (
            {"split/time/train": "9\n"},
            r"train\.csv\.gz \(splits\.split\.train\): row 9, expected 0 to 3",
        ),
        ({"split/other/train": "0\n"}, "holds 2 splits, expected one"),
        ({"raw/edge": "0,1\n1\n"}, r"edge\.csv\.gz:2: found 1 column, expected 2"),
    ],
)
def test_wrong_folders_are_refused(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        list(open_source(write(tmp_path, PLAIN | files)).chunks())


def test_the_binary_layout_is_refused(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/data.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"binary layout \(raw/data\.npz\), which is not"):
        open_source(tmp_path)
