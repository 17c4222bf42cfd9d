"""Workers own runs of partitions of about the same work."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphsys as gs
from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.distributed.ownership import (
    LocalBlocks,
    Ownership,
    most_owners,
    require_partitions,
    span_blocks,
)
from graphsys.engine.execute.frontier import Frontier
from graphsys.engine.topology import Topology
from graphsys.facade.graph import Graph
from graphsys.graph.slices import even_cuts
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


def test_a_worker_without_partitions_of_a_type_has_no_span_of_it(shop: Graph) -> None:
    topology = Topology.of(shop)
    spans = Ownership.of(topology, 3).spans
    assert sorted(map(len, spans)) == [1, 2, 2]  # three partitions of users, two of items
    assert all(low < high for own in spans for low, high in own)
    covered = sorted(span for own in spans for span in own)
    assert [low for low, _ in covered] == [0, *(high for _, high in covered)][:-1]
    assert covered[-1][1] == topology.num_nodes


@pytest.mark.parametrize("direction", ["out", "in"])
def test_own_rows_are_those_of_own_nodes_with_all_their_neighbors(
    shop: Graph, direction: Any
) -> None:
    topology = Topology.of(shop)
    owned = Ownership.of(topology, 2)
    csr = topology.csr(direction)
    found: dict[int, list[int]] = {node: [] for node in range(topology.num_nodes)}
    for worker in range(2):
        rows = LocalBlocks(topology, owned.spans[worker], {})
        for block in rows.blocks(direction):
            for row in range(block.num_rows):
                node = block.row_base + row
                assert owned.owner_of(np.array([node]))[0] == worker
                entries = block.indices[block.begins[row] : block.ends[row]]
                found[node] += (entries + block.column_base).tolist()
        rows.close()
    for node, neighbors in found.items():
        assert neighbors == csr.indices[csr.indptr[node] : csr.indptr[node + 1]].tolist()


def test_rows_are_whole_where_the_own_nodes_have_them_once(tmp_path: Path) -> None:
    pairs = np.random.default_rng(1).integers(0, 40, (120, 2))
    graph = make_store(tmp_path / "g", edge_chunk(pairs.tolist()), partitions=4).graph
    topology = Topology.of(graph)
    bounds = graph.offsets("node").tolist()
    own = LocalBlocks(topology, [(bounds[0], bounds[2])], {})
    assert own.are_whole("out")
    assert own.are_whole("in")
    assert [part.rows.row_base for part in own.parts("out")] == bounds[:2]
    own.close()
    cut = LocalBlocks(topology, [(bounds[0], bounds[2] + 1)], {})
    assert not cut.are_whole("out")
    cut.close()


def test_rows_of_two_edge_types_are_not_whole(tmp_path: Path) -> None:
    kinds = [EdgeType("user", name, "user") for name in ("knows", "likes")]
    chunks = [edge_chunk([(0, 1), (1, 2)], kind) for kind in kinds]
    topology = Topology.of(make_store(tmp_path / "g", *chunks).graph)
    rows = LocalBlocks(topology, [(0, 3)], {})
    assert not rows.are_whole("out")
    rows.close()


def test_a_partition_without_nodes_leaves_rows_whole(tmp_path: Path) -> None:
    chunk = edge_chunk([(0, 1), (1, 2)])
    graph = make_store(tmp_path / "g", chunk, partitions=6).graph
    assert 0 in np.diff(graph.offsets("node"))
    for end in (1, 3):  # behind the first node are partitions without any
        rows = LocalBlocks(Topology.of(graph), [(0, end)], {})
        assert rows.are_whole("out")
        rows.close()


def test_a_lone_piece_is_given_even_if_nobody_in_it_sends(tmp_path: Path) -> None:
    rings = [(a + k, a + (k + 1) % 128) for a in (0, 128) for k in range(128)]
    how: dict[str, Any] = {"partitions": 2, "partitioner": "range", "order": "original"}
    graph = make_store(tmp_path / "g", edge_chunk(rings), **how).graph
    topology = Topology.of(graph)
    senders = Frontier.from_list(256, np.array([200]), 1)
    lone = LocalBlocks(topology, [(0, 128)], {})
    assert [block.row_base for block in lone.blocks("in", senders)] == [0]
    both = LocalBlocks(topology, [(0, 128), (128, 256)], {})
    assert [block.row_base for block in both.blocks("in", senders)] == [128]
    assert [block.row_base for block in both.blocks("in")] == [0, 128]
    for rows in (lone, both):
        rows.close()


@pytest.mark.parametrize("spans", [[(0, 700)], [(0, 100), (100, 101), (101, 700)], []])
def test_chunks_of_spans_share_no_word_and_cover_them(
    spans: list[tuple[int, int]],
) -> None:
    topology = Topology.from_edges(np.array([0]), np.array([699]), 700)
    blocks = span_blocks(topology, spans)
    assert len({block.key for block in blocks}) == len(spans)
    for block, (low, high) in zip(blocks, spans, strict=True):
        bounds = block.bounds.tolist()
        assert (bounds[0], bounds[-1]) == (low, high)
        assert bounds == sorted(set(bounds))
        assert all(bound % 64 == 0 for bound in bounds[1:-1])
        assert len(bounds) - 2 == len(range(low // 64 * 64 + 64, high, 64))
        assert (block.row_base, block.num_rows) == (0, 700)
