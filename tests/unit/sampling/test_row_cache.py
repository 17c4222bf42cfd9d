"""Caches of rows against models of their policies in plain Python; scores against NumPy."""

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.sampling import (
    CachedFeatures,
    FeatureTable,
    degree_scores,
    importance_scores,
    message_rows,
)
from graphsys.storage import Graph
from tests.unit.sampling.conftest import NUM_NODES, Store, in_matrix

CAPACITY = 9
MEMORY = 4 * NUM_NODES + CAPACITY * (4 * 8 + 17)


class PlainLru:
    """Hits of an LRU cache."""

    def __init__(self) -> None:
        self.kept: OrderedDict[int, None] = OrderedDict()

    def ask(self, nodes: list[int]) -> int:
        found = [node for node in nodes if node in self.kept]
        for node in found:
            self.kept.move_to_end(node)
        for node in nodes:
            if node not in self.kept:
                if len(self.kept) == CAPACITY:
                    self.kept.popitem(last=False)
                self.kept[node] = None
        return len(found)


class PlainSieve:
    """Hits of a SIEVE cache; the newest is last."""

    def __init__(self) -> None:
        self.kept: list[int] = []
        self.marked: set[int] = set()
        self.hand: int | None = None

    def ask(self, nodes: list[int]) -> int:
        found = [node for node in nodes if node in self.kept]
        self.marked |= set(found)
        for node in nodes:
            if node not in self.kept:
                if len(self.kept) == CAPACITY:
                    self.evict()
                self.kept.append(node)
        return len(found)

    def evict(self) -> None:
        place = 0 if self.hand is None else self.kept.index(self.hand)
        while self.kept[place] in self.marked:
            self.marked.remove(self.kept[place])
            place = (place + 1) % CAPACITY
        self.hand = self.kept[place + 1] if place + 1 < CAPACITY else None
        del self.kept[place]


@pytest.mark.parametrize(("policy", "model"), [("lru", PlainLru), ("sieve", PlainSieve)])
def test_policies_keep_what_their_models_keep(
    store: Store, policy: Any, model: Any
) -> None:
    rows = FeatureTable(store(2), "node")
    cached, plain = CachedFeatures(rows, policy, MEMORY), model()
    assert cached.capacity == CAPACITY
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, NUM_NODES + 1)
    hits = asked = 0
    for _ in range(300):
        nodes = rng.choice(NUM_NODES, 5, replace=False, p=chance / chance.sum())
        found = cached.gather(nodes, np.empty((6, 8), np.float32))
        np.testing.assert_array_equal(found, rows.gather(nodes))
        hits += plain.ask(nodes.tolist())
        asked += 5
        assert (cached.num_found, cached.num_asked) == (hits, asked)
    assert 0.2 < cached.hit_rate < 0.9


def test_chosen_rows_stay(store: Store) -> None:
    graph = store(3)
    rows = FeatureTable(graph, "node")
    scores = (np.arange(NUM_NODES) % 7).astype(np.float64)
    cached = CachedFeatures(rows, "degree", MEMORY, scores)
    kept = np.argsort(-scores, kind="stable")[:CAPACITY]
    for _ in range(2):
        cached.gather(np.arange(NUM_NODES))
    assert cached.hit_rate == CAPACITY / NUM_NODES
    before = cached.num_found
    np.testing.assert_array_equal(cached.gather(kept), rows.gather(kept))
    assert cached.num_found == before + CAPACITY
    again = np.array([3, 3, 59, 3])  # repeated nodes
    sieve = CachedFeatures(rows, "sieve", MEMORY)
    np.testing.assert_array_equal(sieve.gather(again), rows.gather(again))
    whole = CachedFeatures(rows, "lru", 1 << 20)
    assert whole.capacity == NUM_NODES


def test_threads_share_a_cache(store: Store) -> None:
    rows = FeatureTable(store(2), "node")
    for policy in ("lru", "sieve"):
        cached = CachedFeatures(rows, policy, MEMORY)

        def ask(k: int, cached: CachedFeatures = cached) -> bool:
            nodes = np.random.default_rng(k).permutation(NUM_NODES)[:20]
            return bool((cached.gather(nodes) == rows.gather(nodes)).all())

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(ask, range(200)))
        assert cached.num_asked == 4000


def test_scores_count_walks(store: Store, shop: Graph) -> None:
    graph = store(2)
    matrix = in_matrix(graph)
    rows = message_rows(graph, reverse=False)
    ones = np.ones(NUM_NODES)
    np.testing.assert_array_equal(degree_scores(rows, "node"), matrix.T @ ones)
    for hops, power in ((1, matrix), (2, matrix @ matrix)):
        expected = (power.T @ ones) / np.maximum(power @ ones, 1)
        np.testing.assert_allclose(importance_scores(rows, "node", hops), expected)
    several = message_rows(shop, reverse=False)
    asked = sum(
        np.bincount(index.indices, minlength=12)
        for each in several
        if each.neighbor_type == "user"
        for index in each.indexes
    )
    np.testing.assert_array_equal(degree_scores(several, "user"), asked)


def test_caches_that_cannot_be(store: Store) -> None:
    rows = FeatureTable(store(1), "node")
    with pytest.raises(ConfigError, match="cache: got 'fifo', expected one of degree, imp"):
        CachedFeatures(rows, "fifo", MEMORY)  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match="cache_memory: got 240 B for rows of type 'node'"
    ):
        CachedFeatures(rows, "lru", 4 * NUM_NODES)
    with pytest.raises(ConfigError, match="scores: got none, expected 60"):
        CachedFeatures(rows, "degree", MEMORY)
    with pytest.raises(UnknownNameError, match="node 60 is not in the graph"):
        CachedFeatures(rows, "lru", MEMORY).gather(np.array([60]))


def test_names_of_before_are_those_of_today() -> None:
    from graphsys import sampling, storage
    from graphsys.graph.csr import Csr

    assert sampling.NeighborRows is sampling.PartitionedCsr
    assert sampling.FeatureRows is sampling.FeatureTable
    assert (sampling.BagRows, sampling.CachedRows) == (
        sampling.BagTable,
        sampling.CachedFeatures,
    )
    assert storage.Index is Csr
