"""A small knowledge graph whose held-out edges follow from the others."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.types import EdgeType
from graphsys.embedding import EmbeddingConfig
from graphsys.storage import Graph
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, Source

NUM_ENTITIES = 40
TRIPLE = EdgeType("entity", "triple", "entity")


class Ring(Source):
    """Entities on a ring: next, before (its inverse), opposite (symmetric)."""

    name = "ring"

    def chunks(self) -> Iterator[EdgeChunk]:
        here = np.arange(NUM_ENTITIES)
        src = np.concatenate([here, here, here])
        dst = np.concatenate([here + 1, here - 1, here + NUM_ENTITIES // 2]) % NUM_ENTITIES
        relation = np.repeat(["next", "before", "opposite"], NUM_ENTITIES)
        split = np.where(np.arange(len(src)) % 15 == 7, "test", "train")
        split[np.arange(len(src)) % 15 == 11] = "valid"
        for name in ("train", "valid", "test"):
            chosen = split == name
            yield EdgeChunk(
                src=pa.array([f"e{k:02d}" for k in src[chosen]]),
                dst=pa.array([f"e{k:02d}" for k in dst[chosen]]),
                edge_type=TRIPLE,
                split=name,
                columns={"relation": pa.array(relation[chosen].tolist())},
            )


class Shop(Source):
    """Users like items (weighted), items are of categories: three types, integer ids."""

    name = "shop"

    def chunks(self) -> Iterator[EdgeChunk]:
        rng = np.random.default_rng(0)
        user, item = np.arange(600) % 30, rng.integers(0, 20, 600)
        for split, chosen in (("train", slice(0, 500)), ("test", slice(500, 600))):
            yield EdgeChunk(
                src=user[chosen],
                dst=item[chosen],
                edge_type=EdgeType("user", "likes", "item"),
                split=split,
                columns={"weight": rng.random(600)[chosen].astype(np.float32)},
            )
        yield EdgeChunk(
            src=np.arange(20),
            dst=np.arange(20) % 4,
            edge_type=EdgeType("item", "of", "category"),
        )


@pytest.fixture(scope="session")
def make_ring(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Graph]:
    """Return a function that gives the ring in any number of partitions."""
    made = {}

    def make(partitions: int) -> Graph:
        if partitions not in made:
            made[partitions] = tmp_path_factory.mktemp("ring") / "graph"
            ingest(Ring(), made[partitions], partitions=partitions)
        return Graph(made[partitions])

    return make


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Return a graph with three node types, one of them with one partition."""
    path = tmp_path_factory.mktemp("shop") / "graph"
    ingest(Shop(), path, partitions={"user": 3, "item": 2, "category": 1})
    return Graph(path)


@pytest.fixture
def ring_config() -> EmbeddingConfig:
    """Return settings that learn the ring in a second."""
    return EmbeddingConfig(
        dim=32,
        epochs=120,
        threads=1,
        deterministic=True,
        operator="complex_diagonal",
        reciprocal=True,
        batch_size=16,
        num_batch_negatives=0,
        num_uniform_negatives=32,
        importance_weights=True,
        init_scale=0.1,
        regularizer=0.01,
        checkpoint_seconds=60.0,
    )
