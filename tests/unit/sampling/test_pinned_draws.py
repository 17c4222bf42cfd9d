"""What samplers draw from a seed stays as it is: resumed runs and told seeds count on it.

A change here is a change of every seeded run: it belongs into the changelog.
"""

import zlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.kernels.cpu.sampling.timed_rows import OUT_OF_RANGE, number_grouped_neighbors
from graphsys.sampling import (
    ConditionalNegativeSampler,
    NegativeSampler,
    NeighborSampler,
    TemporalSampler,
    rows_of,
)
from tests.unit.sampling.conftest import NUM_NODES, Store
from tests.unit.sampling.test_temporal import Edges, times_of

SEEDS = np.arange(0, NUM_NODES, 7)


def drawn(sample: Any) -> list[int]:
    """Return what every row got, in order."""
    block = sample.blocks[0]
    return [int(node) for node in block.src_nodes[block.indices]]


def mark_of(numbers: Any) -> int:
    """Return a mark that changes with every number, and with their order."""
    return zlib.crc32(np.asarray(numbers, dtype=np.int64).tobytes())


NEIGHBORS: dict[str, tuple[list[int], dict[str, Any], int]] = {
    "few of many": ([2], {}, 582321937),
    "by a scan": ([7], {"seed": 3}, 1079158831),
    "with replacement": ([5], {"is_replacing": True}, 1187818034),
    "by weight": ([3], {"is_weighted": True, "seed": 1}, 1005676759),
    "by weight, with replacement": (
        [3],
        {"is_weighted": True, "is_replacing": True},
        3425910107,
    ),
    "two hops": ([3, 4], {"seed": 2}, 3950880267),
    "only new ones": ([3, 4], {"seed": 2, "frontier": "new"}, 361564118),
}


@pytest.mark.parametrize("name", NEIGHBORS)
def test_neighbors(store: Store, edges: Edges, name: str) -> None:
    fanouts, options, mark = NEIGHBORS[name]
    weights = np.linspace(0.1, 4.0, len(edges))
    sampler = NeighborSampler(store(2, weight=weights), fanouts, **options)
    sample = sampler.sample(SEEDS, epoch=1, batch=2)
    assert mark_of(drawn(sample)) == mark


TEMPORAL: dict[str, tuple[list[int], dict[str, Any], int]] = {
    "few of many": ([2], {}, 2633349253),
    "by a scan": ([7], {"seed": 3}, 35258245),
    "by weight": ([3], {"is_weighted": True}, 212656984),
    "latest": ([3], {"choice": "latest"}, 2290238290),
    "disjoint": ([3, 2], {"is_disjoint": True}, 1167447043),
    "two hops": ([3, 2], {"frontier": "new"}, 3500765239),
}


@pytest.mark.parametrize("name", TEMPORAL)
def test_temporal(store: Store, edges: Edges, name: str) -> None:
    fanouts, options, mark = TEMPORAL[name]
    columns = {"time": times_of(edges), "weight": np.linspace(0.1, 4.0, len(edges))}
    sampler = TemporalSampler(store(2, **columns), fanouts, **options)
    times = np.full(len(SEEDS), 80) - np.arange(len(SEEDS)) % 2
    assert mark_of(drawn(sampler.sample(SEEDS, times=times, batch=5))) == mark


@pytest.mark.parametrize(
    ("fanout", "mark"), [(1, 2902987707), (2, 3529106175), (3, 3626077263)]
)
def test_few_of_a_hub_s_old_edges(
    store: Store, edges: Edges, fanout: int, mark: int
) -> None:
    """A row of many edges is not scanned: places are tried until enough are old."""
    sampler = TemporalSampler(store(1, time=times_of(edges)), [fanout])
    found = []
    for batch in range(40):
        sample = sampler.sample(np.array([0]), times=np.array([70]), batch=batch)
        found += drawn(sample)
    assert len(found) == 40 * fanout
    assert mark_of(found) == mark


@pytest.mark.parametrize(
    ("options", "mark"),
    [
        ({}, 2095780357),
        ({"is_excluding": True, "seed": 4}, 4118297619),
        ({"draw": "degree"}, 380347451),
    ],
)
def test_negatives(store: Store, options: dict[str, Any], mark: int) -> None:
    rows = rows_of(store(2), "edge")
    degrees = np.arange(NUM_NODES) if options.get("draw") else None
    sampler = NegativeSampler(rows, degrees=degrees, **options)
    assert mark_of(sampler.draw(SEEDS, 6)) == mark
    assert (sampler.draw(SEEDS, 6) == sampler.draw(SEEDS, 6, epoch=0, batch=0)).all()


@pytest.mark.parametrize(
    ("share", "mark"), [(0.0, 3260862718), (0.5, 1071400815), (1.0, 1750627396)]
)
def test_negatives_like_the_positive(store: Store, share: float, mark: int) -> None:
    sampler = ConditionalNegativeSampler(
        rows_of(store(2), "edge"), np.arange(NUM_NODES) % 4, share=share
    )
    found = sampler.draw(SEEDS, SEEDS + 1, 4)
    assert mark_of(found) == mark
    alike = round(share * 4)
    assert (found[:, :alike] % 4 == ((SEEDS + 1) % 4)[:, None]).all()
    assert (found == sampler.draw(SEEDS, SEEDS + 1, 4, epoch=0, batch=0)).all()


def test_as_many_candidates_as_four_bytes_number() -> None:
    def rows(count: int) -> Any:
        return SimpleNamespace(num_neighbors=count, neighbor_type="node")

    assert NegativeSampler(rows(2**32 - 1)).num_candidates == 2**32 - 1
    assert NegativeSampler(rows(1)).num_candidates == 1
    for count in (0, 2**32):
        with pytest.raises(ConfigError, match=rf"negatives: {count} nodes of type 'node'"):
            NegativeSampler(rows(count))


def test_fanouts_end_where_four_bytes_do(store: Store) -> None:
    graph = store(1)
    assert NeighborSampler(graph, [2**31 - 1]).fanouts["edge"] == (2**31 - 1,)
    with pytest.raises(ConfigError, match=f"got {2**31}, expected an int >= 0, or -1"):
        NeighborSampler(graph, [2**31])
    nothing = NeighborSampler(graph, [0], is_replacing=True).sample(SEEDS)
    assert nothing.blocks[0].num_edges == 0
    with pytest.raises(ConfigError, match=r"got -1, expected an int >= 0 with replace"):
        NeighborSampler(graph, [-1], is_replacing=True)


def test_edges_of_all_partitions_are_told_by_their_place(
    store: Store, edges: Edges
) -> None:
    """The place of an edge counts through all partitions: its column has its time."""
    graph = store(3, time=times_of(edges))
    rows = rows_of(graph, "edge")
    times = {
        tuple(pair): time
        for pair, time in zip(edges.tolist(), times_of(edges), strict=True)
    }
    sample = TemporalSampler([rows], [-1]).sample(SEEDS, times=np.full(len(SEEDS), 1000))
    block = sample.blocks[0]
    assert block.edge is not None
    ends = np.repeat(block.dst_nodes, np.diff(block.indptr)).tolist()
    ids = graph.node_ids("node").to_pylist()
    pairs = zip(drawn(sample), ends, strict=True)
    own = [times[ids[src], ids[dst]] for src, dst in pairs]
    assert len(own) > 20
    assert rows.column("time", block.edge).tolist() == own


def test_the_seed_that_is_not_there_is_named(store: Store, edges: Edges) -> None:
    sampler = TemporalSampler(store(1, time=times_of(edges)), [2])
    with pytest.raises(UnknownNameError, match="seed 77 is not"):
        sampler.sample(np.array([0, 1, 77, 3]), times=np.full(4, 50))


@pytest.mark.parametrize("neighbor", [-1, 10, 2**40])
def test_a_damaged_neighbor_is_out_of_range(neighbor: int) -> None:
    known = number_grouped_neighbors(
        np.array([0, 1]),
        0,
        1,
        np.zeros(1, np.int32),
        np.array([neighbor]),
        10,
        np.full(8, -1, np.int32),
        np.zeros(8, np.int64),
        np.zeros(8, np.int32),
        0,
        np.zeros(1, np.int32),
    )
    assert known == OUT_OF_RANGE


def test_seeds_of_the_same_time_share_a_group_unless_they_are_disjoint(
    store: Store, edges: Edges
) -> None:
    graph = store(1, time=times_of(edges))
    seeds, times = np.array([4, 5, 4]), np.array([60, 60, 60])
    together = TemporalSampler(graph, [1]).sample(seeds, times=times)
    assert together.blocks[0].num_dst == 2
    apart = TemporalSampler(graph, [1], is_disjoint=True).sample(seeds, times=times)
    assert apart.blocks[0].num_dst == 3
