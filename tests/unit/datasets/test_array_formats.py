"""NumPy archives and MATLAB files: small ones, and every refusal."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import graphsys as gs
from graphsys.core.errors import InputError
from graphsys.datasets import open_source
from graphsys.storage.source import EdgeChunk, NodeChunk


def edges(path: Path, **options: Any) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for chunk in open_source(path, **options).chunks():
        if isinstance(chunk, EdgeChunk):
            columns = [chunk.src, chunk.dst, *chunk.columns.values()]
            rows += zip(*(column.tolist() for column in columns), strict=True)
    return rows


def nodes(path: Path) -> NodeChunk:
    chunk = next(iter(open_source(path).chunks()))
    assert isinstance(chunk, NodeChunk)
    return chunk


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_sparse_matrices(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.npz"
    dense = np.array([[0, 2.5, 0], [1, 0, 0], [0, 0, 0]])
    scipy.sparse.save_npz(path, getattr(scipy.sparse, f"{kind}_array")(dense))
    assert sorted(edges(path)) == [(0, 1, 2.5), (1, 0, 1.0)]
    assert nodes(path).ids.tolist() == [0, 1, 2]


def test_rectangular_and_boolean_matrices(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    matrix = scipy.sparse.csr_array(np.array([[False, True, True]]))
    scipy.sparse.save_npz(path, matrix)
    source = list(open_source(path).chunks())
    assert [it.node_type for it in source if isinstance(it, NodeChunk)] == ["row", "col"]
    assert edges(path) == [(0, 1), (0, 2)]


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_graphs_of_arrays(tmp_path: Path) -> None:
    masks = np.array([[True, False, False], [False, False, True]])
    path = save(
        tmp_path / "g.npz",
        edges=np.array([[0, 1], [1, 2], [2, 2]]),
        node_features=np.eye(3),
        node_labels=np.array([1, 0, 1]),
        train_masks=masks,
        val_masks=masks[:, [1, 0, 2]],
        test_masks=masks[:, [2, 1, 0]],
    )
    assert edges(path) == [(0, 1), (1, 2), (2, 2)]
    found = nodes(path)
    assert found.features["x"].dtype == np.float32
    columns = {name: it.tolist() for name, it in found.columns.items()}
    assert columns == {
        "label": [1, 0, 1],
        "split": ["train", "valid", "test"],
        "split_0": ["train", "valid", "test"],
        "split_1": ["test", None, "valid"],
    }
    assert not open_source(path).is_directed
    assert open_source(path.rename(tmp_path / "g_directed.npz")).is_directed
    typed = open_source(tmp_path / "g_directed.npz", edge_type=("page", "links", "page"))
    assert {getattr(it, "node_type", "page") for it in typed.chunks()} == {"page"}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"x": np.zeros(2)},
            "holds x, expected a sparse matrix of SciPy or an array edges",
        ),
        ({"edges": np.zeros((3, 3), int)}, r"edges have shape \(3, 3\), expected"),
        ({"edges": np.zeros((3, 2))}, "edges are float64, expected integers"),
        ({"edges": np.array([[0, -1]])}, "row 0: found -1 as an id"),
        (
            {"edges": np.array([[0, 3]]), "node_labels": np.zeros(3, int)},
            "edges reach node 3, expected 0 to 2",
        ),
        (
            {
                "edges": np.array([[0, 1]]),
                "node_labels": np.zeros(3, int),
                "node_features": np.zeros((2, 2)),
            },
            "2 node_features, 3 node_labels, expected one number of nodes",
        ),
        (
            {"edges": np.array([[0, 1]]), "node_features": np.array([[1.0], [np.nan]])},
            "features of row 1 are not finite",
        ),
        ({"edges": np.array([[0, 1]], dtype=object)}, "holds pickled objects"),
        ({"format": "csr", "shape": [2, 2]}, "a csr matrix without indptr, indices, data"),
        ({"format": "dia", "shape": [2, 2]}, "of format 'dia', expected coo, csr or csc"),
        (
            {"format": "coo", "shape": [2, 2], "row": [0], "col": [5], "data": [1.0]},
            "a column outside 0 to 1",
        ),
        (
            {
                "format": "csr",
                "shape": [1, 1],
                "indptr": [0, 2],
                "indices": [0],
                "data": [1],
            },
            "indptr does not fit 1 indices",
        ),
        (
            {"format": "csr", "shape": [9, 1], "indptr": [0], "indices": [], "data": []},
            r"indptr of shape \[1\], expected \[10\]",
        ),
        (
            {"format": "coo", "shape": [2, 2**50], "row": [], "col": [], "data": []},
            "expected two dimensions of 0 to",
        ),
        (
            {"format": "coo", "shape": [2, 2], "row": [0], "col": [1], "data": [np.nan]},
            "found NaN, expected a number",
        ),
        (
            {"format": "coo", "shape": [2, 2], "row": [0], "col": [1], "data": [1j]},
            "values are complex128, expected real",
        ),
    ],
)
def test_archives_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = save(tmp_path / "g.npz", **arrays)
    with pytest.raises(InputError, match=message):
        edges(path)


def test_an_edge_index_stands_for_edges(tmp_path: Path) -> None:
    path = save(tmp_path / "g.npz", edge_index=np.array([[0, 1, 2], [1, 2, 0]]))
    assert edges(path) == [(0, 1), (1, 2), (2, 0)]
    save(path, edge_index=np.array([[0], [1]]), node_labels=[4, 5], y=[1])
    with pytest.warns(UserWarning, match="the arrays y are not read; save features as"):
        assert edges(path) == [(0, 1)]
    save(path, edge_index=np.zeros((3, 2), dtype=int))
    with pytest.raises(InputError, match=r"shape \[3, 2\], expected \[2, edges\]"):
        edges(path)


@pytest.mark.parametrize("content", [b"PK\x03\x04 and so on", b"\x93NUMPY\x01", b"text"])
def test_damaged_archives_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "g.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"g\.npz: (cannot be read|holds pickled objects)"):
        edges(path)


def test_matlab_networks_and_groups(tmp_path: Path) -> None:
    path = tmp_path / "g.mat"
    network = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    group = np.array([[1, 1], [0, 0], [0, 1]])
    content = {
        "network": scipy.sparse.csc_matrix(network.astype(float)),
        "group": scipy.sparse.csc_matrix(group.astype(float)),
    }
    scipy.io.savemat(path, content)
    assert edges(path) == [(2, 1), (3, 2)]
    assert not open_source(path).is_directed
    found = nodes(path)
    assert found.ids.tolist() == [1, 2, 3]
    assert found.columns["labels"].to_pylist() == [[0, 1], [], [1]]


def test_matlab_matrices_with_weights_are_directed(tmp_path: Path) -> None:
    path = tmp_path / "g.mat"
    scipy.io.savemat(path, {"S": np.array([[0, 2.5], [0, 0]])})
    assert edges(path) == [(1, 2, 2.5)]
    assert open_source(path).is_directed


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"x": np.zeros((2, 3))}, "holds x, expected one square matrix of numbers"),
        ({"a": np.eye(2), "b": np.eye(2)}, "holds a, b, expected one square matrix"),
        (
            {"network": np.eye(2), "group": np.ones((3, 1))},
            "group has 3 rows, expected 2 as the network",
        ),
        ({"network": np.array([[0, np.nan], [0, 0]])}, "network, row 0: found NaN"),
    ],
)
def test_matlab_files_are_refused(
    tmp_path: Path, variables: dict[str, Any], message: str
) -> None:
    scipy.io.savemat(tmp_path / "g.mat", variables)
    with pytest.raises(InputError, match=message):
        edges(tmp_path / "g.mat")


def test_damaged_matlab_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "g.mat").write_bytes(b"MATLAB 5.0 " + bytes(range(256)) * 2)
    with pytest.raises(InputError, match=r"g\.mat: cannot be read as a MATLAB file"):
        edges(tmp_path / "g.mat")


def test_further_variables_of_mat_files_are_kept_or_named(tmp_path: Path) -> None:
    path = tmp_path / "g.mat"
    network = scipy.sparse.csc_array(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]) * 1.0)
    x = np.arange(6.0).reshape(3, 2)
    content = {
        "network": network,
        "age": [[4, 5, 6]],
        "x": x,
        "note": "hello",
        "y": [[1, 2]],
    }
    scipy.io.savemat(path, content)
    with pytest.warns(
        UserWarning,
        match=r"g\.mat: left out note \(1\), y \(1x2\): neither the network nor",
    ):
        report = gs.ingest(path, tmp_path / "g", order="original")
    nodes = report.graph.nodes("node", 0)
    assert dict(zip(nodes["id"].to_pylist(), nodes["age"].to_pylist(), strict=True)) == {
        1: 4,
        2: 5,
        3: 6,
    }
    places = np.argsort(nodes["id"].to_numpy())
    features = report.graph.features("node", 0, "x")
    assert isinstance(features, np.ndarray)
    np.testing.assert_array_equal(features[places], x)
