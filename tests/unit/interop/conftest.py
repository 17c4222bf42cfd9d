"""Small stores with features, labels, splits, weights and further columns of edges."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from graphsys.core.types import EDGE, NODE, EdgeType
from graphsys.storage import EdgeChunk, Graph, NodeChunk
from tests.stores import make_store

NUM_NODES = 40
USER, ITEM = 12, 20
LIKES = EdgeType("user", "likes", "item")
FOLLOWS = EdgeType("user", "follows", "user")
Store = Callable[..., Graph]


def x_of(num_nodes: int) -> npt.NDArray[np.float32]:
    """Return features that tell the node."""
    return np.arange(num_nodes * 3, dtype=np.float32).reshape(num_nodes, 3)


def splits_of(num_nodes: int) -> Any:
    """Return the splits train, valid, test and none in turn."""
    return pa.array((["train", "valid", "test", None] * num_nodes)[:num_nodes])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a function that makes a store of 200 weighted edges between 40 nodes."""
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, NUM_NODES - 1, (200, 2))  # the last node has no edge
    pairs[:60, 1] = 0  # a hub
    counter = itertools.count()

    def make(*, is_directed: bool = True, partitions: int = 1, time: bool = False) -> Graph:
        edges = pairs if is_directed else np.unique(np.sort(pairs, axis=1), axis=0)
        nodes = NodeChunk(
            ids=np.arange(NUM_NODES),
            columns={"label": np.arange(NUM_NODES) % 4, "split": splits_of(NUM_NODES)},
            features={"x": x_of(NUM_NODES)},
        )
        attr = (edges[:, :1] * 100 + edges).astype(np.float32)  # tells the edge
        timed = {"time": edges.sum(axis=1) * 7 % 100} if time else {}
        chunk = EdgeChunk(
            src=edges[:, 0],
            dst=edges[:, 1],
            columns={
                **timed,
                "weight": (edges.sum(axis=1) + 1).astype(np.float32),
                "edge_attr": pa.FixedSizeListArray.from_arrays(attr.reshape(-1), 2),
            },
        )
        path = tmp_path / f"g{next(counter)}"
        make_store(
            path,
            nodes,
            chunk,
            is_directed=is_directed,
            partitions=partitions,
            order="original",
        )
        return Graph(path)

    return make


@pytest.fixture
def shop(tmp_path: Path) -> Graph:
    """Return users who like items (of two partitions) and follow users, all directed."""
    rng = np.random.default_rng(5)
    likes = np.unique(rng.integers(0, [USER, ITEM], (80, 2)), axis=0)
    follows = np.unique(rng.integers(0, USER, (30, 2)), axis=0)
    make_store(
        tmp_path / "shop",
        NodeChunk(
            ids=np.arange(USER),
            node_type="user",
            columns={"label": np.arange(USER) % 2, "split": splits_of(USER)},
            features={"x": x_of(USER)},
        ),
        NodeChunk(ids=np.arange(ITEM), node_type="item", features={"x": x_of(ITEM)}),
        EdgeChunk(
            src=likes[:, 0],
            dst=likes[:, 1],
            edge_type=LIKES,
            columns={"weight": likes.sum(axis=1).astype(np.float32)},
        ),
        EdgeChunk(src=follows[:, 0], dst=follows[:, 1], edge_type=FOLLOWS),
        partitions={"user": 1, "item": 2},
        order="original",
    )
    return Graph(tmp_path / "shop")


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Return 600 nodes in 3 groups, most edges within one, features of little help."""
    rng = np.random.default_rng(0)
    group = np.arange(600) % 3
    src = rng.integers(0, 600, 6000)
    inside = rng.random(6000) < 0.85
    dst = np.where(inside, (rng.integers(0, 200, 6000) * 3 + group[src]), 0)
    dst = np.where(inside, dst, rng.integers(0, 600, 6000))
    x = rng.normal(size=(600, 8)) + 0.7 * np.eye(3, 8)[group]
    path = tmp_path_factory.mktemp("planted") / "g"
    nodes = NodeChunk(
        ids=np.arange(600),
        node_type=NODE,
        columns={
            "label": group,
            "split": pa.array(["train", "test"]).take(pa.array(rng.integers(0, 2, 600))),
        },
        features={"x": x.astype(np.float32)},
    )
    make_store(path, nodes, EdgeChunk(src=src, dst=dst, edge_type=EDGE), order="original")
    return Graph(path)


def entries(graph: Graph, name: str = "edge") -> npt.NDArray[np.int64]:
    """Return (source, destination) of every index entry, by number, ``[E, 2]``."""
    kind = graph.edge_type(name)
    found = []
    for part in range(graph.num_partitions(kind.dst_type)):
        index = graph.in_index(name, part)
        first = graph.offsets(kind.dst_type)[part]
        dst = first + np.repeat(np.arange(len(index.indptr) - 1), np.diff(index.indptr))
        found.append(np.stack([index.indices.astype(np.int64), dst], axis=1))
    return np.concatenate(found)
