"""Temporal sampling against a brute force over the edges, and the draws it promises."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.types import EdgeType
from graphsys.sampling import (
    NeighborSampler,
    Sample,
    TemporalSampler,
    message_rows,
    rows_of,
)
from graphsys.storage import Graph, NodeChunk, open_graph
from tests.stores import edge_chunk, make_store
from tests.unit.sampling.conftest import NUM_NODES, Store

LEAST_P = 1e-4
Edges = npt.NDArray[np.int64]


def times_of(edges: Edges) -> npt.NDArray[np.int64]:
    """Return a time from 0 to 99 for every edge; many have the same."""
    return np.random.default_rng(8).integers(0, 100, len(edges))


def older(graph: Graph, node: int, time: int) -> list[tuple[int, int]]:
    """Return (time, neighbor) of a node's in-edges before a time."""
    found = []
    for part, low in enumerate(graph.offsets("node")[:-1]):
        index = graph.in_index("edge", part)
        if low <= node < graph.offsets("node")[part + 1]:
            span = slice(*index.indptr[node - low : node - low + 2])
            pairs = zip(np.asarray(index.time)[span], index.indices[span], strict=True)
            found = [(int(t), int(n)) for t, n in pairs if t < time]
    return found


def rows_of_block(sample: Sample, k: int) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Return (group, node, [(group, neighbor)]) of every row of a block."""
    assert sample.groups is not None
    block, groups = sample.blocks[k], sample.groups["node"]
    rows = []
    for j, node in enumerate(block.dst_nodes):
        entries = block.indices[block.indptr[j] : block.indptr[j + 1]]
        pairs = [(int(groups[e]), int(block.src_nodes[e])) for e in entries]
        rows.append((int(groups[j]), int(node), pairs))
    return rows


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("frontier", ["all", "new"])
@pytest.mark.parametrize("is_disjoint", [False, True])
def test_all_older_edges_of_every_hop(
    store: Store, edges: Edges, partitions: int, frontier: Any, is_disjoint: bool
) -> None:
    graph = store(partitions, time=times_of(edges))
    sampler = TemporalSampler(graph, [-1, -1], frontier=frontier, is_disjoint=is_disjoint)
    seeds, times = np.array([5, 0, 17, 0, 5]), np.array([50, 20, 50, 90, 50])
    sample = sampler.sample(seeds, times=times)
    at = times if is_disjoint else np.array([20, 50, 90])
    known = {
        (int(np.flatnonzero(at == t)[0]), int(s)) for s, t in zip(seeds, times, strict=True)
    }
    if is_disjoint:
        known = set(enumerate(seeds.tolist()))
    for k in (1, 0):
        rows = rows_of_block(sample, k)
        assert {(group, node) for group, node, _ in rows} == known
        for group, node, entries in rows:
            wanted = [neighbor for _, neighbor in older(graph, node, int(at[group]))]
            assert entries == [(group, neighbor) for neighbor in wanted]
            known |= set(entries)
        assert sample.blocks[k].num_src == len(known)
    places = sample.seed_places["node"]
    assert (places[0] == places[4]) == (not is_disjoint)
    assert sample.input_nodes[places].tolist() == seeds.tolist()


@pytest.mark.parametrize("fanout", [2, 30])
def test_rows_hold_some_older_edges(store: Store, edges: Edges, fanout: int) -> None:
    graph = store(2, time=times_of(edges))
    rows = rows_of(graph, "edge")
    sampler = TemporalSampler([rows], [fanout], seed=4)
    seeds, times = np.arange(NUM_NODES), np.arange(NUM_NODES) * 2
    sample = sampler.sample(seeds, times=times)
    for group, node, entries in rows_of_block(sample, 0):
        wanted = [n for _, n in older(graph, node, int(times[group]))]
        found = [n for _, n in entries]
        assert len(found) == len(set(found)) == min(fanout, len(wanted))
        assert set(found) <= set(wanted)
    block = sample.blocks[0]
    assert block.edge is not None
    before = np.repeat(times, np.diff(block.indptr))
    assert (rows.column("time", block.edge) < before).all()


def test_latest_edges(store: Store, edges: Edges) -> None:
    graph = store(1, time=times_of(edges))
    sampler = TemporalSampler(graph, [3], choice="latest")
    seeds = np.arange(NUM_NODES)
    sample = sampler.sample(seeds, times=np.full(NUM_NODES, 60))
    for _, node, entries in rows_of_block(sample, 0):
        wanted = sorted(older(graph, node, 60), key=lambda pair: (-pair[0], pair[1]))[:3]
        assert [neighbor for _, neighbor in entries] == [n for _, n in wanted]


@pytest.mark.parametrize("fanout", [2, 6])  # by random places; by a scan of the row
def test_older_edges_are_drawn_uniformly(store: Store, edges: Edges, fanout: int) -> None:
    graph = store(1, time=times_of(edges))
    wanted = [n for _, n in older(graph, 0, 70)]
    sampler = TemporalSampler(graph, [fanout], seed=2)
    counts = np.zeros(NUM_NODES)
    for batch in range(1500):
        with sampler.sample(np.array([0]), batch=batch, times=np.array([70])) as sample:
            np.add.at(counts, sample.blocks[0].src_nodes[sample.blocks[0].indices], 1)
    assert len(wanted) > fanout
    assert counts.sum() == counts[wanted].sum() == 1500 * fanout
    # without replacement counts vary less than chi-square's: the test is one-sided
    assert stats.chisquare(counts[wanted]).pvalue > LEAST_P


def test_older_edges_are_drawn_by_weight(store: Store, edges: Edges) -> None:
    weights = np.random.default_rng(1).integers(0, 4, len(edges)).astype(np.float32)
    graph = store(1, time=times_of(edges), weight=weights)
    index = graph.in_index("edge", 0)
    span = slice(*index.indptr[:2])
    is_old = np.asarray(index.time)[span] < 70
    share = np.where(is_old, np.asarray(index.weight)[span], 0)
    sampler = TemporalSampler(graph, [1], is_weighted=True)
    counts = np.zeros(NUM_NODES)
    for batch in range(2000):
        with sampler.sample(np.array([0]), batch=batch, times=np.array([70])) as sample:
            np.add.at(counts, sample.blocks[0].src_nodes[sample.blocks[0].indices], 1)
    counts = counts[index.indices[span]]
    assert counts[share == 0].sum() == 0
    expected = 2000 * share[share > 0] / share.sum()
    assert stats.chisquare(counts[share > 0], expected).pvalue > LEAST_P
    everything = TemporalSampler(graph, [-1], is_weighted=True).sample(
        np.array([0]), times=np.array([70])
    )
    assert everything.num_edges == (share > 0).sum()


def test_samples_are_the_same_for_any_number_of_threads(store: Store, edges: Edges) -> None:
    sampler = TemporalSampler(store(2, time=times_of(edges)), [3, 2], seed=9)

    def draw(k: int) -> Any:
        seeds = np.arange(k % 7, NUM_NODES, 7)
        with sampler.sample(seeds, batch=k, times=seeds * 2) as sample:
            return [
                [b.indptr.tolist(), b.indices.tolist(), b.src_nodes.tolist()]
                for b in sample.blocks
            ]

    alone = [draw(k) for k in range(28)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, range(28))) == alone
    assert alone[0] != alone[7]


def test_temporal_samples_that_cannot_be(store: Store, edges: Edges) -> None:
    with pytest.raises(ConfigError, match="edges 'edge' have no times, by which they were"):
        TemporalSampler(store(1), [2])
    graph = store(1, time=times_of(edges))
    with pytest.raises(
        ConfigError, match="choice: got 'first', expected uniform or latest"
    ):
        TemporalSampler(graph, [2], choice="first")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="times: got none, expected the time of every"):
        TemporalSampler(graph, [2]).sample(np.array([1]))
    with pytest.raises(ConfigError, match="times: got 1 for 2 seeds of type 'node'"):
        TemporalSampler(graph, [2]).sample(np.array([1, 2]), times=np.array([4]))
    with pytest.raises(ConfigError, match="NeighborSampler samples without regard to time"):
        NeighborSampler(graph, [2]).sample(np.array([1]), times=np.array([4]))
    message = "seed 60 is not in the graph, which has 60 nodes of type 'node' (0 to 59)"
    with pytest.raises(UnknownNameError, match=re.escape(message)):
        TemporalSampler(graph, [2]).sample(np.array([3, 60]), times=np.array([4, 4]))


@pytest.mark.parametrize("later", [1, 4, 255])
def test_latest_edges_are_told_apart_by_single_ticks(tmp_path: Path, later: int) -> None:
    # nanoseconds since 1970, and 2**60: float64 holds multiples of 256 there
    pairs = [(1, 0), (2, 0), (3, 0), (4, 0)]
    time = 2**60 + np.array([5, 5 + later, 0, 5 - 1], dtype=np.int64)
    ids = NodeChunk(ids=np.arange(5))
    make_store(
        tmp_path / "g", ids, edge_chunk(pairs, time=time), partitions=1, order="original"
    )
    for count in (1, 2, 3):
        sampler = TemporalSampler(open_graph(tmp_path / "g"), [count], choice="latest")
        sample = sampler.sample(np.array([0]), times=np.array([2**60 + 1000]))
        ((_, _, entries),) = rows_of_block(sample, 0)
        latest = np.argsort(-time, kind="stable")[:count]
        assert [number for _, number in entries] == [pairs[k][0] for k in latest]


def test_latest_edges_have_no_weights(store: Store, edges: Edges) -> None:
    graph = store(1, time=times_of(edges), weight=np.ones(len(edges), np.float32))
    with pytest.raises(ConfigError, match="choice: got latest with is_weighted"):
        TemporalSampler(graph, [2], choice="latest", is_weighted=True)


def test_seeds_of_two_types_have_their_own_times(tmp_path: Path) -> None:
    likes = EdgeType("user", "likes", "item")
    pairs = [(user, item) for user in range(3) for item in range(4)]
    times = np.arange(len(pairs))
    make_store(
        tmp_path / "shop",
        NodeChunk(ids=np.arange(3), node_type="user"),
        NodeChunk(ids=np.arange(4), node_type="item"),
        edge_chunk(pairs, likes, time=times),
    ).graph.close()
    graph = Graph(tmp_path / "shop")
    sampler = TemporalSampler(message_rows(graph), [-1])
    seeds = {"user": np.array([2, 0]), "item": np.array([1, 3, 1])}
    at = {"user": np.array([11, 3]), "item": np.array([3, 11, 3])}
    sample = sampler.sample(seeds, times=at)
    assert sample.groups is not None
    known = np.array([3, 11])  # a group a time, of whatever type the seed is
    for name, numbers in seeds.items():
        places = sample.seed_places[name]
        assert sample.nodes[name][places].tolist() == numbers.tolist()
        assert known[sample.groups[name][places]].tolist() == at[name].tolist()
    nobody = sampler.sample(
        {"user": np.empty(0, np.int64)}, times={"user": np.empty(0, np.int64)}
    )
    assert all(len(nodes) == 0 for nodes in nobody.nodes.values())
