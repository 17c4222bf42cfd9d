"""Workers own runs of partitions of about the same work."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphsys as gs
from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.distributed.ownership import Ownership, most_owners, require_partitions
from graphsys.engine.topology import Topology
from graphsys.graph.shares import even_cuts
from graphsys.storage import Graph
from tests.stores import edge_chunk, make_store


@pytest.mark.parametrize(
    ("weights", "num_pieces", "cuts"),
    [
        ([1, 1, 1, 1], 2, (0, 2, 4)),
        ([9, 1, 1, 1], 2, (0, 1, 4)),
        ([1, 1, 1, 9], 2, (0, 3, 4)),
        ([1, 1, 1, 9], 4, (0, 1, 2, 3, 4)),
        ([9, 0, 0, 0], 3, (0, 1, 2, 4)),
        ([5], 3, (0, 0, 0, 1)),
        ([], 2, (0, 0, 0)),
    ],
)
def test_runs_are_of_even_weight_and_none_is_empty(
    weights: list[int], num_pieces: int, cuts: tuple[int, ...]
) -> None:
    assert even_cuts(np.array(weights, dtype=np.int64), num_pieces) == cuts


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 8))
def test_cuts_ascend_and_leave_nobody_without_a_member(
    weights: list[int], num_pieces: int
) -> None:
    cuts = np.array(even_cuts(np.array(weights, dtype=np.int64), num_pieces))
    assert len(cuts) == num_pieces + 1
    assert (cuts[0], cuts[-1]) == (0, len(weights))
    assert (np.diff(cuts) >= (len(weights) >= num_pieces)).all()


def test_a_partition_of_many_edges_is_a_worker_of_its_own(tmp_path: Path) -> None:
    ends = np.triu_indices(16, 1)  # all pairs of the first partition, then a path
    src = np.concatenate([ends[0], np.arange(15, 63)])
    dst = np.concatenate([ends[1], np.arange(16, 64)])
    edges = pa.table({"src": src, "dst": dst})
    graph = gs.ingest(
        edges, tmp_path / "g", partitions=4, partitioner="range", undirected=True
    ).graph
    spans = Ownership.of(Topology.of(graph), 2).spans
    first = graph.offsets(graph.node_types[0])[1]
    assert spans == (((0, first),), ((first, graph.num_nodes),))


@pytest.fixture
def shop(tmp_path: Path) -> Graph:
    """Return a graph of two node types, of three partitions and of two."""
    rng = np.random.default_rng(0)
    pairs = np.stack([rng.integers(0, 30, 90), rng.integers(100, 120, 90)], axis=1)
    chunk = edge_chunk(pairs.tolist(), EdgeType("user", "buys", "item"))
    return make_store(tmp_path / "shop", chunk, partitions={"user": 3, "item": 2}).graph


def test_every_node_of_every_type_has_one_owner(shop: Graph) -> None:
    topology = Topology.of(shop)
    owned = Ownership.of(topology, 2)
    owners = owned.owner_of(np.arange(topology.num_nodes))
    for worker, spans in enumerate(owned.spans):
        inside = np.zeros(topology.num_nodes, bool)
        for low, high in spans:
            assert low < high
            inside[low:high] = True
        assert (inside == (owners == worker)).all()
        assert owned.num_nodes(worker) == inside.sum() > 0
    for kind in shop.node_types:  # a type's partitions are whole, and dealt out in order
        base = topology.numbers.base(kind)
        for low, high in pairwise(shop.offsets(kind)):
            assert len(set(owners[base + low : base + high].tolist())) == 1
        first = owners[base + shop.offsets(kind)[0] : base + shop.offsets(kind)[-1]]
        assert (np.diff(first) >= 0).all()


def test_more_workers_than_partitions_are_refused(shop: Graph) -> None:
    assert most_owners(shop) == 3
    require_partitions(shop, 3)
    with pytest.raises(ConfigError, match="has 3 partitions, too few for 4 workers"):
        Ownership.of(Topology.of(shop), 4)
    with pytest.raises(ConfigError, match="a cluster takes a graph's folder"):
        Ownership.of(Topology.from_edges(np.array([0]), np.array([1]), 2), 1)
