"""Negatives follow their distribution and are no neighbors; features are the store's."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.threads import ThreadTeam
from graphsys.sampling import (
    BagTable,
    ConditionalNegativeSampler,
    FeatureTable,
    NegativeSampler,
    quantize,
    rows_of,
)
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.sampling.conftest import NUM_NODES, Store, in_matrix


def test_uniform_negatives(store: Store) -> None:
    drawn = NegativeSampler(rows_of(store(1), "edge"), seed=1).draw(np.arange(50), 200)
    assert drawn.shape == (50, 200)
    assert stats.chisquare(np.bincount(drawn.ravel(), minlength=NUM_NODES)).pvalue > 1e-4


def test_negatives_by_degree(store: Store) -> None:
    graph = store(2)
    degrees = rows_of(graph, "edge", "out").degrees()
    sampler = NegativeSampler(rows_of(graph, "edge"), "degree", degrees=degrees)
    drawn = sampler.draw(np.zeros(40, dtype=np.int64), 500)
    counts = np.bincount(drawn.ravel(), minlength=NUM_NODES)
    share = degrees**0.75 / (degrees**0.75).sum()
    assert counts[degrees == 0].sum() == 0
    seen = degrees > 0
    assert stats.chisquare(counts[seen], share[seen] * drawn.size).pvalue > 1e-4


def test_excluding_negatives_are_no_neighbors(store: Store) -> None:
    graph = store(3)
    matrix = in_matrix(graph)
    sampler = NegativeSampler(rows_of(graph, "edge"), is_excluding=True)
    queries = np.arange(1, NUM_NODES)  # node 0 is a neighbor of most
    drawn = sampler.draw(queries, 50)
    hits = matrix[np.repeat(queries, 50), drawn.ravel()]
    assert hits.sum() == 0
    assert (sampler.draw(queries, 50) == drawn).all()
    assert (sampler.draw(queries, 50, batch=1) != drawn).any()


def test_negatives_that_cannot_be(store: Store) -> None:
    rows = rows_of(store(1), "edge")
    with pytest.raises(ConfigError, match="negatives: got 'hub', expected uniform or"):
        NegativeSampler(rows, "hub")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="got none degrees, expected 60"):
        NegativeSampler(rows, "degree")


def test_features_are_gathered_from_all_partitions(store: Store) -> None:
    graph = store(4)
    features = FeatureTable(graph, "node")
    ids = graph.node_ids("node").to_numpy()
    nodes = np.array([59, 0, 31, 31, 7])
    expected = np.concatenate(
        [
            np.arange(NUM_NODES * 3).astype(np.float16).reshape(-1, 3)[ids],
            np.arange(NUM_NODES * 5).reshape(-1, 5)[ids],
        ],
        axis=1,
    )
    assert features.dim == 8
    assert (features.gather(nodes) == expected[nodes]).all()
    many = np.random.default_rng(0).integers(0, NUM_NODES, 5000)
    out = np.empty((6000, 8), dtype=np.float32)
    with ThreadTeam(3) as team:
        found = features.gather(many, out, team)
    assert found.base is out
    assert (found == expected[many]).all()
    only = FeatureTable(graph, "node", ["half"])
    assert (only.gather(nodes) == expected[nodes, :3]).all()


def test_features_that_cannot_be(store: Store, shop: Graph) -> None:
    graph = store(2)
    features = FeatureTable(graph, "node")
    with pytest.raises(UnknownNameError, match="node 60 is not in the graph"):
        features.gather(np.array([1, 60]))
    message = "out is float32 [1, 8], expected contiguous float32 of at least [2, 8]"
    with pytest.raises(ConfigError, match=re.escape(message)):
        features.gather(np.array([1, 2]), np.empty((1, 8), np.float32))
    with pytest.raises(UnknownNameError, match="unknown feature 'y'"):
        FeatureTable(graph, "node", ["y"])
    with pytest.raises(ConfigError, match=r"node type 'user' .* has no dense features"):
        FeatureTable(shop, "user")


def test_int8_rows_are_scaled(tmp_path: Path) -> None:
    spread = np.array([[0.01], [1.0], [50.0], [1.0]])
    x = np.random.default_rng(0).normal(0, 1, (4, 6)) * spread
    x[3] = 0
    features = {**quantize("x", x), "plain": np.full((4, 2), -3, dtype=np.int8)}
    nodes = NodeChunk(ids=np.arange(4), features=features)
    make_store(tmp_path / "g", nodes, edge_chunk([(0, 1)]), partitions=2, order="original")
    graph = Graph(tmp_path / "g")
    rows = FeatureTable(graph, "node")
    assert rows.names == ("plain", "x")
    ids = graph.node_ids("node").to_numpy()
    found = rows.gather(np.array([3, 0, 1, 2]))
    expected = x[ids[[3, 0, 1, 2]]]
    step = np.abs(expected).max(axis=1, keepdims=True) / 127
    assert (np.abs(found[:, 2:] - expected) <= step / 2 * (1 + 1e-4)).all()
    assert (found[:, :2] == -3).all()
    with ThreadTeam(2) as team:
        again = rows.gather(np.array([3, 0, 1, 2]), np.empty((4, 8), np.float32), team)
    assert (again == found).all()
    assert graph.features("node", 0, "x").dtype == np.int8


@pytest.mark.parametrize("partitions", [1, 3])
def test_bags_are_gathered_one_after_the_other(tmp_path: Path, partitions: int) -> None:
    bags = [[k, k + 1][: k % 3] for k in range(20)]
    column = pa.array(bags, pa.large_list(pa.uint32()))
    make_store(
        tmp_path / "g",
        NodeChunk(ids=np.arange(20), features={"words": column}),
        edge_chunk([(k, (k + 1) % 20) for k in range(20)]),
        partitions=partitions,
    )
    graph = Graph(tmp_path / "g")
    rows = BagTable(graph, "node", "words")
    assert rows.size == 1 + max(max(bag, default=0) for bag in bags)
    ids = graph.node_ids("node").to_pylist()
    nodes = np.array([19, 0, 5, 5, 8])
    values, begins = rows.gather(nodes)
    ends = [*begins[1:], len(values)]
    found = [values[a:b].tolist() for a, b in zip(begins, ends, strict=True)]
    assert found == [bags[ids[node]] for node in nodes]
    with pytest.raises(UnknownNameError, match="node 20 is not in the graph"):
        rows.gather(np.array([20]))


def test_conditional_negatives_are_like_the_positive(store: Store) -> None:
    graph = store(2)
    matrix = in_matrix(graph)
    kinds = np.arange(NUM_NODES) % 4
    rows = rows_of(graph, "edge")
    # most nodes of any kind are neighbors of the hub
    queries = np.repeat(np.flatnonzero(rows.degrees() < 30), 3)
    positives = np.random.default_rng(2).integers(0, NUM_NODES, len(queries))
    sampler = ConditionalNegativeSampler(rows, kinds, share=0.75, seed=1)
    drawn = sampler.draw(queries, positives, 8)
    assert drawn.shape == (len(queries), 8)
    assert (kinds[drawn[:, :6]] == kinds[positives][:, None]).all()
    assert (kinds[drawn[:, 6:]] != kinds[positives][:, None]).mean() > 0.6
    assert matrix[np.repeat(queries, 8), drawn.ravel()].sum() == 0
    assert (drawn[:, :6] != positives[:, None]).all()
    assert (sampler.draw(queries, positives, 8) == drawn).all()
    assert (sampler.draw(queries, positives, 8, batch=1) != drawn).any()


def test_conditional_negatives_are_uniform_among_those(store: Store) -> None:
    graph = store(1)
    words = pa.array(["a" if k % 2 else None for k in range(NUM_NODES)])
    sampler = ConditionalNegativeSampler(rows_of(graph, "edge"), words)
    drawn = sampler.draw(np.full(40, 59), np.full(40, 8), 100)  # node 59 has no edges
    counts = np.bincount(drawn.ravel(), minlength=NUM_NODES)
    wanted = [k for k in range(0, NUM_NODES, 2) if k != 8]
    assert counts[wanted].sum() == drawn.size
    assert stats.chisquare(counts[wanted]).pvalue > 1e-4


def test_conditional_negatives_that_cannot_be(store: Store) -> None:
    rows = rows_of(store(1), "edge")
    with pytest.raises(ConfigError, match="values: got 3, expected one for each of the 60"):
        ConditionalNegativeSampler(rows, np.zeros(3))
    with pytest.raises(ConfigError, match="share: got 2, expected a number from 0 to 1"):
        ConditionalNegativeSampler(rows, np.zeros(NUM_NODES), share=2)
    sampler = ConditionalNegativeSampler(rows, np.zeros(NUM_NODES))
    with pytest.raises(UnknownNameError, match="positive 60 is not in the graph"):
        sampler.draw(np.array([1]), np.array([60]), 2)
    with pytest.raises(UnknownNameError, match="query 61 is not in the graph"):
        sampler.draw(np.array([61]), np.array([0]), 2)
    excluding = NegativeSampler(rows, is_excluding=True)
    with pytest.raises(UnknownNameError, match="query -1 is not in the graph"):
        excluding.draw(np.array([0, -1]), 2)
