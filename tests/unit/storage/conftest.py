"""A small store with everything in it, made once and copied by tests that alter it."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.types import EdgeType
from graphsys.storage import NodeChunk
from tests.stores import edge_chunk, make_store

LIKES = EdgeType("user", "likes", "item/x")


@pytest.fixture(scope="session")
def sound_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of two node types, two edge types, columns, features and splits."""
    out = tmp_path_factory.mktemp("storage") / "sound"
    users = [f"u{n}" for n in range(6)]
    likes = [(users[n % 6], n % 4) for n in range(15)]
    make_store(
        out,
        NodeChunk(
            ids=pa.array(users),
            node_type="user",
            columns={"label": np.arange(6), "split": pa.array(["train", "test"] * 3)},
            features={"x": np.arange(12, dtype=np.float32).reshape(6, 2)},
        ),
        NodeChunk(
            ids=np.arange(4),
            node_type="item/x",
            features={
                "words": pa.array([[1, 2], [], [3], [4]], pa.large_list(pa.uint32())),
            },
        ),
        edge_chunk(
            likes,
            LIKES,
            weight=np.arange(15) / 2,
            time=np.arange(15),
            relation=pa.array(["a", "b", "c"] * 5),
            note=pa.array([f"n{n}" for n in range(15)]),
        ),
        edge_chunk(
            [(users[1], 3)],
            LIKES,
            "test",
            weight=np.ones(1),
            time=np.ones(1, int),
            relation=pa.array(["a"]),
            note=pa.array([None], pa.string()),
        ),
        edge_chunk(
            [(a, b) for a in users for b in users if a < b],
            EdgeType("user", "knows", "user"),
        ),
        partitions={"user": 3, "item/x": 2},
    ).graph.close()
    return out


@pytest.fixture
def store(sound_store: Path, tmp_path: Path) -> Path:
    """Return a copy of the store that the test may spoil."""
    out = tmp_path / "store"
    shutil.copytree(sound_store, out)
    return out
