"""OGB's raw folders, written here in their documented layout."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import InputError
from graphsys.datasets import ingest, open_source
from graphsys.storage.source import EdgeChunk, NodeChunk


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


BINARY: dict[str, Any] = {
    "edge_index": np.array([[0, 1, 3], [1, 2, 0]]),
    "node_feat": np.array([[0.5, 1], [1, 2], [-1, 0.25], [0, 0]], np.float16),
    "node_year": np.array([[2013], [2014], [2015], [2016]]),
    "num_nodes_list": np.array([4]),
    "num_edges_list": np.array([3]),
}


def write_binary(root: Path, how: str, **changes: Any) -> Path:
    (root / "raw").mkdir(parents=True)
    arrays = {name: it for name, it in (BINARY | changes).items() if it is not None}
    if how == "npy":
        for name, values in arrays.items():
            np.save(root / f"raw/{name}.npy", values)
    else:
        save = np.savez if how == "npz" else np.savez_compressed
        save(root / "raw/data.npz", **arrays)
    labels = np.array([[1.0], [np.nan], [0], [2]], np.float32)
    np.savez(root / "raw/node-label.npz", node_label=labels)
    for name in ("train", "valid", "test"):
        path = root / f"split/time/{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(PLAIN[f"split/time/{name}"].encode()))
    return root


@pytest.mark.parametrize("how", ["npz", "compressed npz", "npy"])
def test_binary_folders_are_read_as_the_others(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphsys.datasets.folders.ogb_binary.CHUNK_ROWS", 2)
    plain = ingest(write(tmp_path / "o", PLAIN), tmp_path / "g").graph
    graph = ingest(write_binary(tmp_path / "b", how), tmp_path / "h").graph
    assert graph.nodes("node", 0).equals(
        plain.nodes("node", 0).select(graph.nodes("node", 0).column_names)
    )
    assert set(graph.nodes("node", 0).column_names) == {"id", "label", "time", "split"}
    assert graph.features("node", 0, "x")[2].tolist() == [-1, 0.25]
    found, expected = (it.bucket(it.edge_types[0], 0, 0) for it in (graph, plain))
    assert (found.src.tolist(), found.dst.tolist()) == (
        expected.src.tolist(),
        expected.dst.tolist(),
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_index": np.array([[0], [4]])}, "unknown node 4, expected 0 to 3"),
        ({"edge_index": np.array([0, 1])}, r"no edge_index of shape \[2, edges\]"),
        ({"edge_index": None}, "no edge_index"),
        ({"num_nodes_list": np.array([4, 2])}, "no num_nodes_list of one graph"),
        ({"num_nodes_list": np.array([-4])}, "-4 nodes, expected at most"),
        ({"node_year": np.array([[1]])}, r"node_year: shape \[1, 1\], expected 4 rows"),
        ({"node_feat": np.array([["a"]] * 4)}, "expected numbers, row by row"),
    ],
)
def test_wrong_binary_folders_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        list(open_source(write_binary(tmp_path / "b", "npz", **changes)).chunks())


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/data.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"data\.npz.*cannot be read"):
        open_source(tmp_path)


WIKIKG: dict[str, dict[str, Any]] = {
    "train": {"head": [0, 1], "relation": [3, 0], "tail": [1, 2]},
    "valid": {"head": [3], "relation": [3], "tail": [0], "head_neg": [[1, 2]]},
    "test": {"head": [2], "relation": [0], "tail": [2]},
}


@pytest.mark.parametrize("as_numpy", [True, False])
def test_edges_that_torch_saved_by_split(tmp_path: Path, as_numpy: bool) -> None:
    import torch

    write(tmp_path / "o", {"raw/num-node-list": "5\n"})
    (tmp_path / "o/split/time").mkdir(parents=True)
    for name, content in WIKIKG.items():
        arrays = {key: np.array(it) for key, it in content.items()}
        kept = arrays if as_numpy else {k: torch.tensor(it) for k, it in arrays.items()}
        torch.save(kept, tmp_path / f"o/split/time/{name}.pt")
    chunks = list(open_source(tmp_path / "o").chunks())
    assert sum(len(it.ids) for it in chunks if isinstance(it, NodeChunk)) == 5
    edges = {it.split: it for it in chunks if isinstance(it, EdgeChunk)}
    assert list(edges) == ["train", "valid", "test"]
    assert edges["train"].columns["relation"].to_pylist() == ["3", "0"]
    assert (edges["valid"].src.tolist(), edges["valid"].dst.tolist()) == ([3], [0])
    assert ingest(tmp_path / "o", tmp_path / "g").graph.num_nodes == 5


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("run",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"head": Evil()}, r"train\.pt: not read by torch\.load with weights_only"),
        ({"head": np.array([0]), "tail": np.array([9])}, "unknown node 9, expected 0 to 4"),
        ({"x": np.array([0])}, "holds x, expected head and tail"),
        ({"edge": np.array([[0, 1]]), "weight": np.array([1.0, 2])}, "weight has 2 rows"),
        ([1, 2], "holds list, expected arrays by name"),
    ],
)
def test_wrong_files_of_torch_are_refused(
    tmp_path: Path, content: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    write(tmp_path / "o", {"raw/num-node-list": "5\n"})
    (tmp_path / "o/split/time").mkdir(parents=True)
    torch.save(content, tmp_path / "o/split/time/train.pt")
    with pytest.raises(InputError, match=message):
        list(open_source(tmp_path / "o").chunks())
    assert capsys.readouterr().out == ""
