"""Traversal yields everything once, partition by partition."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import ConfigError
from graphsys.sampling import traverse_edges, traverse_nodes
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.sampling.conftest import NUM_NODES, Store, in_matrix


@pytest.mark.parametrize("order", ["shuffled", "stored"])
def test_every_node_once_within_partitions(store: Store, order: Any) -> None:
    graph = store(3)
    batches = list(traverse_nodes(graph, "node", 7, order=order))
    found = np.concatenate(batches)
    assert sorted(found.tolist()) == list(range(NUM_NODES))
    assert (found == np.arange(NUM_NODES)).all() == (order == "stored")
    for batch in batches:
        parts = np.searchsorted(graph.offsets("node"), batch, side="right")
        assert len(batch) <= 7
        assert len(set(parts.tolist())) == 1
    again = np.concatenate(list(traverse_nodes(graph, "node", 7, order=order, epoch=1)))
    assert (again == found).all() == (order == "stored")


def test_nodes_of_a_split(tmp_path: Any) -> None:
    split = pa.array(["train", None, "test", "train"])
    nodes = NodeChunk(ids=np.arange(4), columns={"split": split})
    make_store(tmp_path / "g", nodes, edge_chunk([(0, 1), (2, 3)]), order="original")
    graph = Graph(tmp_path / "g")
    (batch,) = traverse_nodes(graph, "node", 10, split="train")
    assert sorted(batch.tolist()) == [0, 3]


@pytest.mark.parametrize("order", ["shuffled", "stored"])
def test_every_edge_once_within_buckets(store: Store, order: Any) -> None:
    graph = store(3)
    matrix = in_matrix(graph)
    seen = []
    for batch in traverse_edges(graph, "edge", 11, order=order):
        assert 0 < len(batch.src) == len(batch.dst) <= 11
        bucket = graph.bucket("edge", *batch.bucket)
        low = graph.offsets("node")[batch.bucket[0]]
        assert (bucket.src[batch.places] + low == batch.src).all()
        seen += list(zip(batch.dst.tolist(), batch.src.tolist(), strict=True))
    assert len(seen) == len(set(seen)) == matrix.nnz
    assert all(matrix[pair] for pair in seen)
    again = next(traverse_edges(graph, "edge", 11, order=order, epoch=1))
    first = next(traverse_edges(graph, "edge", 11, order=order))
    assert (again.places.tolist() == first.places.tolist()) == (order == "stored")


def test_traversals_that_cannot_be(store: Store) -> None:
    graph = store(1)
    with pytest.raises(ConfigError, match="batch_size: got 0, expected at least 1"):
        next(traverse_nodes(graph, "node", 0))
    with pytest.raises(ConfigError, match="order: got 'random', expected shuffled or"):
        next(traverse_edges(graph, "edge", 5, order="random"))  # type: ignore[arg-type]
