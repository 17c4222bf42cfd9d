"""Small random graphs as stores of one and of several partitions, and as SciPy matrices."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from graphsys.core.types import EdgeType
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store

NUM_NODES = 60
Store = Callable[..., Graph]


@pytest.fixture
def edges() -> npt.NDArray[np.int64]:
    """Return 500 directed edges; node 0 is a hub, node 59 has none."""
    rng = np.random.default_rng(3)
    src = rng.integers(0, NUM_NODES - 1, 500)
    dst = np.where(rng.random(500) < 0.2, 0, rng.integers(0, NUM_NODES - 1, 500))
    return np.unique(np.stack([src, dst], axis=1), axis=0)


@pytest.fixture
def store(tmp_path: Path, edges: npt.NDArray[np.int64]) -> Store:
    """Return a function that makes a store of those edges."""

    def make(partitions: int = 1, **columns: Any) -> Graph:
        path = tmp_path / f"g{partitions}-{len(columns)}"
        nodes = NodeChunk(
            ids=np.arange(NUM_NODES),
            features={
                "x": np.arange(NUM_NODES * 5, dtype=np.float32).reshape(NUM_NODES, 5),
                "half": np.arange(NUM_NODES * 3, dtype=np.float16).reshape(NUM_NODES, 3),
            },
        )
        chunk = edge_chunk(edges.tolist(), **columns)
        make_store(path, nodes, chunk, partitions=partitions, order="original")
        return Graph(path)

    return make


@pytest.fixture
def shop(tmp_path: Path) -> Graph:
    """Return users who like items (undirected) and follow users (directed)."""
    rng = np.random.default_rng(5)
    likes = {(int(u), int(i)) for u, i in rng.integers(0, [12, 20], (80, 2))}
    follows = {(int(a), int(b)) for a, b in rng.integers(0, 12, (30, 2))}
    make_store(
        tmp_path / "shop",
        NodeChunk(ids=np.arange(12), node_type="user"),
        NodeChunk(ids=np.arange(20), node_type="item"),
        edge_chunk(sorted(likes), EdgeType("user", "likes", "item")),
        edge_chunk(sorted(follows), EdgeType("user", "follows", "user")),
        partitions={"user": 1, "item": 2},
    )
    return Graph(tmp_path / "shop")


def in_matrix(graph: Graph, kind: str = "edge") -> Any:
    """Return the matrix whose row v holds the sources of v's in-edges, by number."""
    edge_type = graph.edge_type(kind)
    src_offsets, dst_offsets = graph.offsets(edge_type[0]), graph.offsets(edge_type[2])
    found = []
    for i, j in np.ndindex(len(src_offsets) - 1, len(dst_offsets) - 1):
        bucket = graph.bucket(kind, i, j)
        found.append(np.stack([bucket.dst + dst_offsets[j], bucket.src + src_offsets[i]]))
    rows, columns = np.concatenate(found, axis=1)
    shape = (int(dst_offsets[-1]), int(src_offsets[-1]))
    return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
