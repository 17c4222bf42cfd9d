"""Local numbers of a sample, one hop after another, against a list in plain Python."""

from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import CorruptStoreError
from graphsys.sampling import NeighborSampler, rows_of
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.blocks import Buffers
from graphsys.sampling.sample_builder import GroupedGrowth, Growth
from tests.unit.sampling.conftest import Store

SIZE = 9000
SIZES = {"node": SIZE, "other": 5}


@pytest.fixture
def rows(store: Store) -> PartitionedCsr:
    """Return rows of which the builder reads the name and the types alone."""
    return rows_of(store(1), "edge")


def begin(buffers: Buffers, groups: list[int] | None) -> Growth:
    if groups is None:
        return Growth(buffers, SIZES)
    numbers = np.array(groups, np.int32)
    return GroupedGrowth(buffers, SIZES, seed_groups={"node": numbers})


def number(growth: Growth, rows: PartitionedCsr, hops: list[Any], seed: int) -> list[Any]:
    """Number seeds, then the neighbors of each hop; return the numbers of all."""
    rng, (first, last), end = np.random.default_rng(seed), hops[0], 0
    seeds, places = rng.integers(0, 50, last - first), np.empty(last - first, np.int64)
    growth.begin()
    told = [growth.number_seeds("node", seeds, places), places.tolist()]
    known: list[Any] = []
    own = getattr(growth, "seed_groups", {}).get("node", np.zeros(len(seeds), np.int32))
    wanted = [numbered(known, seeds, own)]
    assert told == [len(known), wanted[0]]
    row = 0
    for _, size in hops[1:]:
        growth.begin()
        high, degrees = len(known), np.zeros(len(known) - row, np.int64)
        np.add.at(degrees, rng.integers(0, len(degrees), size), 1)
        neighbors, begins = rng.integers(0, SIZE, size), np.cumsum([end, *degrees])
        buffers = growth.buffers
        buffers.room(("indptr", "hop"), high + 1, np.int64)[row : high + 1] = begins
        buffers.room(("neighbors", "hop"), end + size, np.int64)[end : end + size] = (
            neighbors
        )
        growth.number(rows, "hop", (row, high), (end, end + size))
        asking = np.repeat(np.arange(row, high), degrees)
        groups = np.array([known[j][1] for j in asking], np.int64)
        indices = buffers.room(("indices", "hop"), 0, np.int32)[end : end + size]
        assert indices.tolist() == numbered(known, neighbors, groups)
        assert growth.counts == {"node": len(known)}
        row, end = high, end + size
    count = len(known)
    assert growth.nodes("node")[:count].tolist() == [node for node, _ in known]
    by_type = growth.groups_by_type()
    assert by_type is None or by_type["node"].tolist() == [group for _, group in known]
    return known


def numbered(known: list[Any], nodes: Any, groups: Any) -> list[int]:
    """Return the places of nodes among those known, to which new ones are added."""
    places = {it: k for k, it in enumerate(known)}
    found = []
    for it in zip(nodes.tolist(), groups.tolist(), strict=True):
        if it not in places:
            places[it] = len(known)
            known.append(it)
        found.append(places[it])
    return found


@pytest.mark.parametrize("groups", [None, [0, 1, 0, 2, 1, 0, 2]])
def test_numbers_are_those_of_a_list_sample_after_sample(
    rows: PartitionedCsr, groups: list[int] | None
) -> None:
    """What one sample leaves in the buffers says nothing to the next."""
    buffers = Buffers()
    hops = [(0, 7), (7, 30), (30, 3000), (0, 500)]
    for seed in (1, 1, 2):
        growth = begin(buffers, groups)
        assert len(number(growth, rows, hops, seed)) > 2000
        growth.forget()


def test_a_hop_without_neighbors_adds_nothing(rows: PartitionedCsr) -> None:
    growth = begin(Buffers(), None)
    assert growth.number_seeds("node", np.array([3, 3, 8]), np.empty(3, np.int64)) == 2
    growth.begin()
    growth.number(rows, "hop", (0, 2), (0, 0))
    assert growth.counts == {"node": 2}
    assert growth.history["node"] == [2]
    assert growth.nodes("node")[:2].tolist() == [3, 8]


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_a_seed_that_is_no_node_leaves_those_before_it_to_be_forgotten(wrong: int) -> None:
    buffers = Buffers()
    growth = begin(buffers, None)
    seeds = np.array([4, 6, 9])
    seeds[wrong] = SIZE
    assert growth.number_seeds("node", seeds, np.empty(3, np.int64)) == -2 - wrong
    assert growth.counts == {"node": wrong}
    growth.forget()
    assert not growth.positions("node").any()


def test_a_neighbor_outside_of_the_graph_is_damage(rows: PartitionedCsr) -> None:
    for groups in (None, [0]):
        growth = begin(Buffers(), groups)
        growth.number_seeds("node", np.array([3]), np.empty(1, np.int64))
        growth.buffers.room(("indptr", "hop"), 2, np.int64)[:2] = [0, 1]
        growth.buffers.room(("neighbors", "hop"), 1, np.int64)[0] = SIZE
        with pytest.raises(CorruptStoreError, match="names nodes outside the graph"):
            growth.number(rows, "hop", (0, 1), (0, 1))


def test_two_samples_with_the_same_first_seed_are_those_of_fresh_samplers(
    store: Store,
) -> None:
    graph = store(3)
    one = NeighborSampler(graph, [-1, -1])
    for seeds in ([5, 9], [5, 2, 9], [5]):
        again, fresh = (
            sampler.sample(np.array(seeds))
            for sampler in (one, NeighborSampler(graph, [-1, -1]))
        )
        for mine, theirs in zip(again.blocks, fresh.blocks, strict=True):
            assert mine.src_nodes.tolist() == theirs.src_nodes.tolist()
            assert mine.indices.tolist() == theirs.indices.tolist()


@pytest.mark.parametrize("groups", [None, []])
def test_neighbors_may_be_the_first_nodes_of_their_type(
    rows: PartitionedCsr, groups: list[int] | None
) -> None:
    growth = begin(Buffers(), groups)
    if isinstance(growth, GroupedGrowth):
        assert not len(growth.times)
        assert (
            growth.number_seeds("node", np.empty(0, np.int64), np.empty(0, np.int64)) == 0
        )
        assert growth.counts.pop("node") == 0
        growth.groups("node", 1)[0] = 0
    growth.buffers.room(("indptr", "hop"), 2, np.int64)[:2] = [0, 0]
    growth.number(rows, "hop", (0, 1), (0, 0))
    assert growth.counts.pop("node") == 0
    growth.buffers.room(("indptr", "hop"), 2, np.int64)[:2] = [0, 3]
    growth.buffers.room(("neighbors", "hop"), 3, np.int64)[:3] = [4, 4, 9]
    growth.number(rows, "hop", (0, 1), (0, 3))
    assert growth.buffers.room(("indices", "hop"), 3, np.int32)[:3].tolist() == [0, 0, 1]
    assert growth.nodes("node")[:2].tolist() == [4, 9]
    assert growth.counts == {"node": 2}
