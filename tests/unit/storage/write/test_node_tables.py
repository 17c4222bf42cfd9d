"""Node columns and features: placed by number, and refused where they do not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import InputError
from graphsys.storage import NodeChunk
from tests.stores import edge_chunk, make_store

X = np.ones((2, 3), dtype=np.float32)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_features_follow_their_nodes(dtype: str, tmp_path: Path) -> None:
    ids = np.array([30, 10, 20])
    chunk = NodeChunk(ids=ids, features={"x": np.array([[3, -3], [1, -1], [2, -2]], dtype)})
    with make_store(tmp_path / "g", chunk, partitions=2).graph as graph:
        assert graph.feature_names("node") == ["x"]
        for part in range(2):
            found = graph.features("node", part, "x")
            assert found.dtype == np.dtype(dtype)
            ids_here = graph.nodes("node", part)["id"].to_pylist()
            assert found.tolist() == [[key / 10, -key / 10] for key in ids_here]


def test_bags_follow_their_nodes(tmp_path: Path) -> None:
    bags = pa.array([[3, 1], [], [7]], pa.large_list(pa.uint32()))
    chunk = NodeChunk(ids=np.array([30, 10, 20]), features={"words": bags})
    with make_store(tmp_path / "g", chunk).graph as graph:
        found: Any = graph.features("node", 0, "words")
        assert found.type == pa.large_list(pa.uint32())
        assert found.to_pylist() == [[], [7], [3, 1]]


def test_nodes_without_a_row_have_nulls(tmp_path: Path) -> None:
    table = NodeChunk(ids=np.array([2]), columns={"label": np.array([5])})
    with make_store(tmp_path / "g", edge_chunk([(1, 2)]), table).graph as graph:
        assert graph.nodes("node", 0).to_pylist() == [
            {"id": 1, "label": None},
            {"id": 2, "label": 5},
        ]


def test_splits_of_nodes_are_counted(tmp_path: Path) -> None:
    split = pa.array(["train", None, "test", "train"])
    table = NodeChunk(ids=np.arange(4), columns={"split": split})
    with make_store(tmp_path / "g", table, partitions=2).graph as graph:
        assert graph.manifest.node_types["node"].splits == {"train": 2, "test": 1}


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        (
            [NodeChunk(ids=np.array([1, 1]))],
            "lists 1 nodes more than once: 1; keep one row",
        ),
        (
            [NodeChunk(ids=pa.array(["\x1b[2J", "\x1b[2J"]))],
            r"more than once: '\\x1b\[2J'; keep one row",
        ),
        (
            [NodeChunk(ids=pa.array(["a", "b"])), NodeChunk(ids=pa.array(["b", "a"]))],
            "lists 2 nodes more than once",
        ),
        (
            [NodeChunk(ids=np.array([1, 2]), features={"x": X}), edge_chunk([(2, 3)])],
            "has features for 2 of 3 nodes; missing for 3",
        ),
        (
            [NodeChunk(ids=np.array([1, 2]), columns={"label": np.array([1])})],
            "'label' of node type 'node' has 1 rows for 2 nodes",
        ),
        (
            [NodeChunk(ids=np.array([1]), features={"x": X})],
            "'x' of node type 'node' has 2 rows for 1 nodes",
        ),
        (
            [
                NodeChunk(ids=np.array([1]), columns={"label": np.array([1])}),
                NodeChunk(ids=np.array([2])),
            ],
            "'label' of node type 'node' is given for some",
        ),
        (
            [
                NodeChunk(ids=np.array([1, 2]), features={"x": X}),
                NodeChunk(ids=np.array([3, 4]), features={"x": X[:, :2]}),
            ],
            "has rows of 2 float32, before of 3 float32",
        ),
        (
            [NodeChunk(ids=np.array([1, 2]), features={"x": X.astype(np.float64)})],
            "is float64 .2, 3., expected float32, float16, int8",
        ),
        (
            [NodeChunk(ids=np.array([1, 2]), features={"x": X[:, :0]})],
            "expected float32, float16, int8",
        ),
        (
            [NodeChunk(ids=np.array([1]), columns={"id": np.array([1])})],
            "a column cannot be called 'id'",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    chunks: list[Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        make_store(tmp_path / "g", *chunks)
    assert list(tmp_path.iterdir()) == []
