import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsys as gs
from graphsys.gnn.data import positive_pairs
from graphsys.gnn.data.positive_pairs import EdgePairs, read_pairs
from graphsys.gnn.data.shuffled_edges import ShuffledEdges, SplitEdges, permuted

KEYS = np.arange(1, 7, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@settings(max_examples=60, deadline=None)
@given(length=st.integers(1, 5000), key=st.integers(0, 2**64 - 1))
def test_an_order_has_every_number_once(length: int, key: int) -> None:
    places = np.arange(length)
    found = permuted(places, length, KEYS ^ np.uint64(key))
    assert np.array_equal(np.sort(found), places)
    some = places[:: max(1, length // 7)]  # whoever asks for a part gets that part
    assert np.array_equal(permuted(some, length, KEYS ^ np.uint64(key)), found[some])


def test_orders_are_as_even_as_random_ones() -> None:
    """Where a number comes, and which follows it, over many keys: chi-squared."""
    rng = np.random.default_rng(0)
    length, trials = 20, 20_000
    first, step = np.zeros(length), np.zeros(length)
    for _ in range(trials):
        keys = rng.integers(0, 2**64, 6, dtype=np.uint64)
        found = permuted(np.array([0, 1]), length, keys)
        first[found[0]] += 1
        step[(found[1] - found[0]) % length] += 1
    assert step[0] == 0
    for seen in (first, step[1:]):
        expected = trials / len(seen)
        chi = ((seen - expected) ** 2 / expected).sum()
        assert chi < len(seen) + 5 * np.sqrt(2 * len(seen))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> gs.Graph:
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 900, 40_000), rng.integers(0, 900, 40_000)
    folder = tmp_path_factory.mktemp("edges") / "g"
    gs.ingest(edges, folder, partitions=3)
    return gs.open(folder)


def test_slices_are_the_edges_of_the_store(graph: gs.Graph) -> None:
    (name,) = [graph.edge_type_name(kind) for kind in graph.edge_types]
    every, edges = read_pairs(graph, name), SplitEdges(graph, name)
    assert np.array_equal(edges.pairs(np.arange(len(edges))), every)
    shuffled = ShuffledEdges(edges, 0, "pairs", 0)
    found = np.concatenate([shuffled[k : k + 777] for k in range(0, len(edges), 777)])
    assert not np.array_equal(found, every)
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, every.tolist()))
    other = ShuffledEdges(edges, 0, "pairs", 1)
    assert not np.array_equal(other[:500], shuffled[:500])


def test_many_edges_stay_in_their_files(
    graph: gs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = [graph.edge_type_name(kind) for kind in graph.edge_types]
    monkeypatch.setattr(positive_pairs, "MOST_IN_MEMORY", 1000)
    edges = SplitEdges(graph, name)
    pairs = EdgePairs(name, "node", "node", 0, edges)
    tracemalloc.start()
    for begin in range(0, len(edges), 1000):
        assert len(pairs.epoch(3)[begin : begin + 1000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(edges) * 4  # all of them would take 16 bytes each, twice


def test_a_part_of_the_edges_is_trained_on(
    graph: gs.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positive_pairs, "MOST_IN_MEMORY", 1000)
    config = gs.gnn.GnnConfig(
        task="link_prediction",
        model="sage",
        dim=8,
        fanouts=(3, 3),
        epochs=2,
        batch_size=100,
        num_negatives=20,
        epoch_batches=5,
        eval_every=0,
        deterministic=True,
    )
    found = [gs.gnn.train(graph, config, tmp_path / name) for name in "ab"]
    assert found[0].epochs == 2
    assert found[0].metrics["batches"] == 10
    assert [f.metrics.get("loss") for f in found] == [found[0].metrics.get("loss")] * 2
    planned = gs.gnn.train(graph, config, tmp_path / "c", dry_run=True)
    assert planned.metrics["planned_batches"] == 5
