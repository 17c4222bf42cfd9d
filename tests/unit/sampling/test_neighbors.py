"""Neighbor sampling against SciPy's rows and the distributions it promises."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.sampling import Block, NeighborSampler, Sample, message_rows, rows_of
from graphsys.storage import Graph
from tests.unit.sampling.conftest import NUM_NODES, Store, in_matrix

SEEDS = np.array([5, 0, 17, 59, 0])
LEAST_P = 1e-4


def rows_as_sets(block: Block) -> dict[int, list[int]]:
    """Return the neighbors that a block has for each destination."""
    return {
        int(node): block.src_nodes[block.indices[begin:end]].tolist()
        for node, begin, end in zip(
            block.dst_nodes, block.indptr[:-1], block.indptr[1:], strict=True
        )
    }


def as_lists(sample: Sample) -> Any:
    return [
        {
            name: [b.indptr.tolist(), b.indices.tolist(), b.src_nodes.tolist()]
            for name, b in layer.items()
        }
        for layer in sample.layers
    ]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("frontier", ["all", "new"])
def test_all_neighbors_are_scipy_s_rows(
    store: Store, partitions: int, frontier: Any
) -> None:
    graph = store(partitions)
    matrix = in_matrix(graph)
    sample = NeighborSampler(graph, [-1, -1], frontier=frontier).sample(SEEDS)
    reached = set(SEEDS.tolist())
    for block in reversed(sample.blocks):
        assert set(block.dst_nodes.tolist()) == reached
        for node, found in rows_as_sets(block).items():
            assert sorted(found) == sorted(matrix[node].indices.tolist())
            reached |= set(found)
        assert set(block.src_nodes.tolist()) == reached
    assert sample.blocks[1].dst_nodes.tolist() == [5, 0, 17, 59]
    assert sample.seed_places["node"].tolist() == [0, 1, 2, 3, 1]


@pytest.mark.parametrize("fanout", [1, 4, 26])
@pytest.mark.parametrize("is_replacing", [False, True])
def test_rows_hold_some_of_the_neighbors(
    store: Store, fanout: int, is_replacing: bool
) -> None:
    graph = store(2)
    matrix = in_matrix(graph)
    sampler = NeighborSampler(graph, [fanout], is_replacing=is_replacing)
    block = sampler.sample(np.arange(NUM_NODES)).blocks[0]
    for node, found in rows_as_sets(block).items():
        known = matrix[node].indices.tolist()
        assert set(found) <= set(known)
        if is_replacing:
            assert len(found) == (fanout if known else 0)
        else:
            assert len(found) == len(set(found)) == min(fanout, len(known))


def test_edges_are_the_entries_of_the_index(store: Store) -> None:
    graph = store(3, weight=np.arange(len(in_matrix(store(1)).indices), dtype=np.float32))
    rows = rows_of(graph, "edge")
    block = NeighborSampler([rows], [3]).sample(np.arange(NUM_NODES)).blocks[0]
    assert block.edge is not None
    indexes = [graph.in_index("edge", part) for part in range(3)]
    neighbors = np.concatenate([index.indices for index in indexes])
    assert (block.src_nodes[block.indices] == neighbors[block.edge]).all()
    weights = np.concatenate([np.asarray(index.weight) for index in indexes])
    assert (rows.column("weight", block.edge) == weights[block.edge]).all()
    with pytest.raises(UnknownNameError, match="unknown column of edges 'edge' 'time'"):
        rows.column("time", block.edge)


def counts_of(
    sampler: NeighborSampler, node: int, num_draws: int
) -> npt.NDArray[np.float64]:
    counts = np.zeros(NUM_NODES)
    for batch in range(num_draws):
        with sampler.sample(np.array([node]), batch=batch) as sample:
            found = sample.blocks[0].src_nodes[sample.blocks[0].indices]
            np.add.at(counts, found, 1)
    return counts


@pytest.mark.parametrize(("fanout", "is_replacing"), [(3, False), (26, False), (3, True)])
def test_neighbors_are_drawn_uniformly(
    store: Store, fanout: int, is_replacing: bool
) -> None:
    graph = store(1)
    known = in_matrix(graph)[0].indices
    assert len(known) > 26  # else all would be taken
    sampler = NeighborSampler(graph, [fanout], is_replacing=is_replacing, seed=2)
    counts = counts_of(sampler, 0, 1500)[known]
    assert counts.sum() == 1500 * fanout
    # without replacement counts vary less than chi-square's: the test is one-sided
    assert stats.chisquare(counts).pvalue > LEAST_P


@pytest.mark.parametrize("is_replacing", [False, True])
def test_neighbors_are_drawn_by_weight(store: Store, is_replacing: bool) -> None:
    num_edges = len(in_matrix(store(1)).indices)
    weights = np.random.default_rng(1).integers(0, 4, num_edges).astype(np.float32)
    graph = store(1, weight=weights)
    index = graph.in_index("edge", 0)
    begin, end = index.indptr[7:9]
    known, weight = index.indices[begin:end], np.asarray(index.weight)[begin:end]
    assert (weight == 0).any()
    sampler = NeighborSampler(
        graph, [1], is_weighted=True, is_replacing=is_replacing, seed=3
    )
    counts = counts_of(sampler, 7, 2000)
    assert counts[known[weight == 0]].sum() == 0
    chosen = weight > 0
    expected = weight[chosen] / weight[chosen].sum() * 2000
    assert stats.chisquare(counts[known[chosen]], expected).pvalue > LEAST_P


def test_two_by_weight_are_drawn_one_after_the_other(store: Store) -> None:
    num_edges = len(in_matrix(store(1)).indices)
    weights = np.random.default_rng(1).integers(1, 9, num_edges).astype(np.float32)
    graph = store(1, weight=weights)
    index = graph.in_index("edge", 0)
    begin, end = index.indptr[7:9]
    share = np.asarray(index.weight)[begin:end].astype(float)
    share /= share.sum()
    # P(i) + sum over j of P(j) P(i | j gone)
    inclusion = share + np.array(
        [
            sum(share[j] * share[i] / (1 - share[j]) for j in range(len(share)) if j != i)
            for i in range(len(share))
        ]
    )
    sampler = NeighborSampler(graph, [2], is_weighted=True)
    counts = counts_of(sampler, 7, 2000)[index.indices[begin:end]]
    assert counts.sum() == 4000
    assert stats.chisquare(counts, inclusion * 2000).pvalue > LEAST_P


def test_new_frontier_keeps_the_neighbors_of_a_node(store: Store) -> None:
    sample = NeighborSampler(store(1), [2, 2, 2], frontier="new").sample(SEEDS)
    deepest, middle, last = (rows_as_sets(block) for block in sample.blocks)
    assert len(last) < len(middle) < len(deepest)
    assert all(middle[node] == last[node] for node in last)
    assert all(deepest[node] == middle[node] for node in middle)


def test_all_frontier_draws_anew_each_hop(store: Store) -> None:
    sample = NeighborSampler(store(1), [2, 2]).sample(np.arange(30))
    deepest, last = (rows_as_sets(block) for block in sample.blocks)
    assert any(deepest[node] != last[node] for node in last)


def test_first_fanout_is_the_seeds(store: Store) -> None:
    sample = NeighborSampler(store(1), [1, 7]).sample(np.array([0]))
    assert [block.num_edges for block in sample.blocks][1] == 1
    assert sample.hop_nodes["node"][:2] == [1, 2]


@pytest.mark.parametrize("frontier", ["all", "new"])
def test_blocks_are_the_same_for_any_number_of_threads(store: Store, frontier: Any) -> None:
    sampler = NeighborSampler(store(2), [3, 2], frontier=frontier, seed=9)
    batches = [np.arange(k, NUM_NODES, 7) for k in range(7)] * 4

    def draw(k: int) -> Any:
        with sampler.sample(batches[k], batch=k) as sample:
            return as_lists(sample)

    alone = [draw(k) for k in range(len(batches))]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, range(len(batches)))) == alone
    assert alone[0] != alone[7]  # another batch, other draws


def test_relations_have_fanouts_of_their_own(shop: Graph) -> None:
    rows = message_rows(shop)
    names = ["likes", "likes:reversed"]
    assert sorted(r.name for r in rows)[-2:] == names
    fanouts = {r.name: [2, 1] for r in rows} | {names[1]: [-1, 0]}
    sampler = NeighborSampler(rows, fanouts)
    sample = sampler.sample({"user": np.array([3, 4]), "item": np.array([1])})
    likes = in_matrix(shop, names[0])
    last = sample.layers[-1]
    assert last[names[0]].dst_nodes.tolist() == [1]
    for node, found in rows_as_sets(last[names[1]]).items():
        assert sorted(found) == sorted(likes[:, node].nonzero()[0].tolist())
    assert sample.layers[0][names[1]].num_edges == 0
    for layer in sample.layers:
        for block in layer.values():
            assert len(set(block.src_nodes.tolist())) == block.num_src
            assert block.num_edges == 0 or block.indices.max() < block.num_src


def test_released_buffers_are_used_again(store: Store) -> None:
    sampler = NeighborSampler(store(1), [3, 3])
    with sampler.sample(SEEDS) as first:
        kept = as_lists(first)
        where = first.blocks[0].indices.ctypes.data
    second = sampler.sample(SEEDS)
    assert as_lists(second) == kept
    assert second.blocks[0].indices.ctypes.data == where


@pytest.mark.parametrize(
    ("fanouts", "message"),
    [
        ([2, -2], "fanouts of relation 'edge': got -2, expected an int >= 0, or -1"),
        ([], "hops: got 0, expected at least 1"),
        ({"other": [1]}, "fanouts: no relation 'other'; known: edge"),
        ([1.5], "fanouts of relation 'edge': got 1.5, expected an int"),
    ],
)
def test_fanouts_that_cannot_be(store: Store, fanouts: Any, message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=re.escape(message)):
        NeighborSampler(store(1), fanouts)


def test_seed_outside_the_graph(store: Store) -> None:
    sampler = NeighborSampler(store(1), [2])
    message = "seed 60 is not in the graph, which has 60 nodes of type 'node' (0 to 59)"
    with pytest.raises(UnknownNameError, match=re.escape(message)):
        sampler.sample(np.array([3, 3, 60]))
    with pytest.raises(UnknownNameError, match="seed -1 is not"):
        sampler.sample(np.array([-1]))
    # what was numbered before the error is forgotten
    assert sampler.sample(np.array([7, 3])).seed_places["node"].tolist() == [0, 1]


def test_weights_that_are_not_there(store: Store) -> None:
    with pytest.raises(ConfigError, match="edges 'edge' have no weights"):
        NeighborSampler(store(1), [2], is_weighted=True)


def test_several_relations_need_a_choice(shop: Graph) -> None:
    with pytest.raises(ConfigError, match=r"choose with graphsys.sampling.message_rows"):
        NeighborSampler(shop, [2])
    with pytest.raises(ConfigError, match=r"node types .*; give seeds by type"):
        NeighborSampler(message_rows(shop), [2]).sample(np.array([0]))
