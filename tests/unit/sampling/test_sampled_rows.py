"""Sampled rows against plain Python that is given the same draws."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from graphsys.core.errors import CorruptStoreError, UnknownNameError
from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.rows.row_table import below, fraction
from graphsys.kernels.cpu.sampling.sampled_rows import (
    OUT_OF_RANGE,
    count_sampled,
    forget_positions,
    number_neighbors,
    number_seeds,
    pick_entries,
)
from graphsys.sampling import NeighborSampler, TemporalSampler, message_rows, rows_of
from graphsys.storage import Graph
from tests.unit.sampling.conftest import NUM_NODES, Store
from tests.unit.sampling.test_temporal import Edges, times_of

KEY = np.uint64(0x1234567890ABCDEF)
DEGREES = [0, 1, 3, 70, 24, 25, 26, 5, 0, 40, 2, 31, 9, 100]
NODES = np.array([3, 13, 0, 1, 9, 5, 6, 4, 2, 12, 7, 11, 10, 3, 8])


class Table(NamedTuple):
    """Rows of two partitions, the first wide, and what kernels find them by."""

    offsets: Any
    table: Any
    wide: Any
    first_entry: Any
    rows: list[list[int]]
    weights: list[list[float]]
    kept: list[Any]


@pytest.fixture(params=[0, 6])
def rows(request: pytest.FixtureRequest) -> Table:
    """Return rows, whose partitions are cut at a node."""
    rng, cut = np.random.default_rng(9), request.param or 8
    every = [rng.integers(0, len(DEGREES), size).tolist() for size in DEGREES]
    weights = [rng.choice([0.0, -1.0, 0.5, 2.0, 8.0], size).tolist() for size in DEGREES]
    weights[4] = [0.0] * 24
    kept, table = [], np.zeros((2, 4), np.uint64)
    wide = np.array([[1, 1, 1, 0], [0, 0, 0, 0]], np.uint8)
    for part, (low, high) in enumerate(((0, cut), (cut, len(DEGREES)))):
        indptr = np.cumsum([0, *DEGREES[low:high]])
        flat = [x for row in every[low:high] for x in row]
        own = [x for row in weights[low:high] for x in row]
        kinds = ("i8", "i8", "f8") if wide[part, 0] else ("u4", "u4", "f4")
        for column, values in enumerate((indptr, flat, own)):
            kept.append(np.array(values, kinds[column]))
            table[part, column] = kept[-1].ctypes.data
    first = np.array([0, sum(DEGREES[:cut])])
    offsets = np.array([0, cut, len(DEGREES)])
    return Table(offsets, table, wide, first, every, weights, kept)


def drawn(row: Any, node: int, fanout: int, *, replaces: bool, weighs: bool) -> list[int]:
    """Return the places in a row that are drawn, one by one, by definition."""
    weights, degree = row, len(row)
    own = np.uint64(mix64(KEY ^ np.uint64(node)))
    if fanout < 0 or not degree or not (replaces or weighs or degree > fanout):
        return list(range(degree))
    if replaces and not weighs:
        return [int(below(own, q, degree)) for q in range(fanout)]
    positive = [p for p in range(degree) if weights[p] > 0]
    if replaces:
        if not positive:
            return []
        sums = np.cumsum([max(weight, 0) for weight in weights])
        marks = sorted(float(fraction(own, q)) * sums[-1] for q in range(fanout))
        return [int(np.searchsorted(sums, mark, side="right")) for mark in marks]
    if weighs:
        ranks = {p: -np.log(fraction(own, p)) / weights[p] for p in positive}
        return sorted(positive, key=ranks.__getitem__)[:fanout]
    places: list[int] = []
    for q in range(fanout):
        top = degree - fanout + q
        place = int(below(own, q, top + 1))
        places.append(top if place in places else place)
    return places


@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize(
    ("fanout", "replaces"),
    [(-1, False), *((n, way) for n in (0, 1, 4, 24, 25, 33, 64) for way in (False, True))],
)
@pytest.mark.parametrize("low", [0, 4])
def test_the_entries_of_rows_are_those_drawn(
    rows: Table, fanout: int, replaces: bool, weighs: bool, low: int
) -> None:
    high, row, base = len(NODES) - (low > 0), 2, 7
    wanted = [
        drawn(
            rows.weights[node] if weighs else rows.rows[node],
            node,
            fanout,
            replaces=replaces,
            weighs=weighs,
        )
        for node in NODES[low:high].tolist()
    ]
    indptr = np.full(row + high - low + 1, -5)
    indptr[row] = base
    parts = rows.offsets, rows.table, rows.wide
    end = count_sampled(*parts, NODES, low, high, fanout, replaces, indptr, row)
    sizes = [len(rows.rows[node]) for node in NODES[low:high]]
    if fanout >= 0:
        sizes = [fanout if replaces and n else min(fanout, n) for n in sizes]
    assert indptr.tolist() == [-5, -5, *np.cumsum([base, *sizes]).tolist()]
    assert end == indptr[-1]
    room = max(fanout, 1)
    slots = np.full(4 * room, -1)
    entries, neighbors = np.full(end, -3), np.full(end, -3)
    found = pick_entries(
        *parts,
        rows.first_entry,
        NODES,
        low,
        high,
        KEY,
        fanout,
        replaces,
        weighs,
        np.empty(room, np.int64),
        np.empty(room),
        slots,
        indptr,
        row,
        entries,
        neighbors,
    )
    assert indptr[:row].tolist() == [-5, -5]
    assert np.diff(indptr[row:]).tolist() == [len(places) for places in wanted]
    assert found == indptr[-1]
    assert (slots == -1).all()
    begins = np.cumsum([0, *DEGREES])
    own = [
        (int(begins[node]) + place, rows.rows[node][place])
        for node, places in zip(NODES[low:high], wanted, strict=True)
        for place in places
    ]
    got = zip(entries[base:found].tolist(), neighbors[base:found].tolist(), strict=True)
    assert list(got) == own
    assert entries[:base].tolist() == neighbors[:base].tolist() == [-3] * base


@pytest.mark.parametrize("node", [-1, 14, 2**40])
def test_a_row_that_there_is_not_is_out_of_range(rows: Table, node: int) -> None:
    nodes, indptr = np.array([1, 13, node]), np.zeros(4, np.int64)
    parts = rows.offsets, rows.table, rows.wide
    assert count_sampled(*parts, nodes, 0, 2, -1, False, indptr, 0) == 101
    assert count_sampled(*parts, nodes, 0, 3, -1, False, indptr, 0) == OUT_OF_RANGE


def test_nodes_are_numbered_as_they_come() -> None:
    positions, nodes = np.zeros(20, np.int32), np.full(12, -9)
    seeds, places = np.array([7, 0, 19, 7, 0]), np.full(5, -9)
    assert number_seeds(seeds, positions, nodes, 0, places) == 3
    assert places.tolist() == [0, 1, 2, 0, 1]
    assert nodes.tolist() == [7, 0, 19] + [-9] * 9
    neighbors = np.array([5, 5, 19, 3, 0, 11, 3, 5, 18, 1, 1, 2, 99])
    indices = np.full(13, -9, np.int32)
    assert number_neighbors(neighbors, 1, 12, positions, nodes, 3, indices) == 9
    assert indices.tolist()[0] == indices.tolist()[12] == -9
    assert nodes[indices[1:12]].tolist() == neighbors[1:12].tolist()
    known = nodes[:9].tolist()
    assert known == [7, 0, 19, 5, 3, 11, 18, 1, 2]
    assert [int(positions[node]) for node in known] == list(range(1, 10))
    forget_positions(positions, nodes, 8)
    assert np.flatnonzero(positions).tolist() == [2]


@pytest.mark.parametrize("node", [-1, 20, 2**40])
def test_numbers_outside_the_graph_are_told(node: int) -> None:
    positions, nodes = np.zeros(20, np.int32), np.zeros(9, np.int64)
    places = np.zeros(4, np.int64)
    for place in range(4):
        seeds = np.array([0, 19, 0, 1])
        seeds[place] = node
        positions[:] = 0
        assert number_seeds(seeds, positions, nodes, 0, places) == -2 - place
        indices = np.zeros(4, np.int32)
        found = number_neighbors(seeds, 0, 4, positions, nodes, 0, indices)
        assert found == OUT_OF_RANGE


def lists(sample: Any) -> Any:
    return [
        (name, block.indptr.tolist(), block.src_nodes[block.indices].tolist())
        for layer in sample.layers
        for name, block in layer.items()
    ]


@pytest.mark.parametrize("is_temporal", [False, True])
def test_a_sample_that_failed_leaves_nothing_behind(
    store: Store, edges: Edges, is_temporal: bool
) -> None:
    graph = store(1, time=times_of(edges))
    seeds = np.array([4, 4, 9, 2, 1])
    options: dict[str, Any] = {"times": np.full(5, 90)} if is_temporal else {}

    def fresh() -> Any:
        return (TemporalSampler if is_temporal else NeighborSampler)(graph, [3, 3])

    wanted, sampler = lists(fresh().sample(seeds, **options)), fresh()
    for wrong in (0, 2, 4):
        some = seeds.copy()
        some[wrong] = NUM_NODES
        with pytest.raises(UnknownNameError, match="seed 60 is not in the graph"):
            sampler.sample(some, **options)
        with sampler.sample(seeds, **options) as sample:
            assert lists(sample) == wanted
            assert sample.num_seeds == {"node": 4}


def test_nodes_of_a_type_are_counted_hop_by_hop(shop: Graph) -> None:
    sample = NeighborSampler(message_rows(shop), [2, 2]).sample({"user": np.array([3, 5])})
    users, items = sample.hop_nodes["user"], sample.hop_nodes["item"]
    assert (users[0], items[0]) == (2, 0)
    assert users == sorted(users)
    assert 0 < items[1] <= items[2] <= 20
    assert (users[-1], items[-1]) == (len(sample.nodes["user"]), len(sample.nodes["item"]))
    assert sample.num_seeds == {"user": 2}


@pytest.mark.parametrize("is_temporal", [False, True])
def test_an_index_that_names_nodes_outside_is_damage(
    store: Store, edges: Edges, is_temporal: bool
) -> None:
    rows = rows_of(store(1, time=times_of(edges)), "edge")
    options: dict[str, Any] = {"times": np.full(3, 1000)} if is_temporal else {}
    sampler = (TemporalSampler if is_temporal else NeighborSampler)([rows], [-1])
    sampler.sizes["node"] = 30
    with pytest.raises(CorruptStoreError, match="edges 'edge' names nodes outside the gr"):
        sampler.sample(np.array([0, 1, 2]), **options)
    sampler.sizes["node"] = NUM_NODES
    with sampler.sample(np.array([0, 1, 2]), **options) as sample:
        assert sample.blocks[0].num_edges > 30


def test_a_node_is_another_one_in_every_group_of_seeds(store: Store, edges: Edges) -> None:
    """Many groups and hops: the table of numbers grows, and forgets between samples."""
    graph = store(2, time=times_of(edges))
    sampler = TemporalSampler(graph, [-1, -1], is_disjoint=True)
    alone = TemporalSampler(graph, [-1, -1])
    seeds, times = np.array([0, 7, 0, 12, 33]), np.array([70, 80, 90, 80, 60])
    for _ in range(2):
        with sampler.sample(seeds, times=times) as sample:
            assert sample.groups is not None
            groups, nodes = sample.groups["node"], sample.nodes["node"]
            assert (
                len(groups)
                == len(nodes)
                == sum(
                    len(
                        alone.sample(seeds[k : k + 1], times=times[k : k + 1]).nodes["node"]
                    )
                    for k in range(5)
                )
            )
            assert len(set(zip(groups.tolist(), nodes.tolist(), strict=True))) == len(nodes)
            for k in range(5):
                own = alone.sample(seeds[k : k + 1], times=times[k : k + 1])
                assert nodes[groups == k].tolist() == own.nodes["node"].tolist()
            for block in sample.blocks:
                ends = np.repeat(np.arange(block.num_dst), np.diff(block.indptr))
                assert (groups[block.indices] == groups[ends]).all()
