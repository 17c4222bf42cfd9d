"""Weights of edges, from the store to what is learnt."""

import dataclasses
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.embedding import EmbeddingConfig, Embeddings, train
from graphsys.facade.graph import Graph
from tests.stores import edge_chunk, make_store

NUM_NODES = 24


@pytest.fixture
def config(ring_config: EmbeddingConfig) -> EmbeddingConfig:
    return dataclasses.replace(
        ring_config, epochs=2, operator="identity", reciprocal=False, regularizer=0.0
    )


def graph_of(path: Path, weights: npt.NDArray[np.float64]) -> Graph:
    """Make a graph of 72 edges; only their weights differ."""
    nodes = np.arange(72) % NUM_NODES
    pairs = list(zip(nodes.tolist(), ((nodes * 5 + 7) % NUM_NODES).tolist(), strict=True))
    return make_store(path, edge_chunk(pairs, weight=weights), partitions=2).graph


def learnt(graph: Graph, config: EmbeddingConfig, out: Path) -> npt.NDArray[np.float32]:
    train(graph, config, out)
    run = Embeddings(out)
    return np.concatenate([run.rows("node", part) for part in range(2)])


def test_edges_of_weight_0_teach_nothing(config: EmbeddingConfig, tmp_path: Path) -> None:
    graph = graph_of(tmp_path / "g", np.zeros(72))
    longer = dataclasses.replace(config, epochs=5)
    first = learnt(graph, config, tmp_path / "two epochs")
    assert (learnt(graph, longer, tmp_path / "five epochs") == first).all()
    blind = dataclasses.replace(config, edge_weights=False)
    assert not (learnt(graph, blind, tmp_path / "blind") == first).any()


def test_weights_count_unless_that_is_turned_off(
    config: EmbeddingConfig, tmp_path: Path
) -> None:
    weights = np.where(np.arange(72) % 3 == 0, 4.0, 0.25)
    weighted, plain = (
        graph_of(tmp_path / name, values)
        for name, values in (("weighted", weights), ("plain", np.ones(72)))
    )
    ones = learnt(plain, config, tmp_path / "ones")
    assert not (learnt(weighted, config, tmp_path / "own") == ones).all()
    blind = dataclasses.replace(config, edge_weights=False)
    assert (learnt(weighted, blind, tmp_path / "blind") == ones).all()
