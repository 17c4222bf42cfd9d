"""Rabbit order finds communities that NetworkX's modularity calls good."""

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphsys.kernels.cpu.algorithms import rabbit
from graphsys.partitioners.rows import whole_rows
from graphsys.partitioners.testing import EdgeStream, clustered_graph, small_graphs
from graphsys.storage.ingest.orders import mean_gap_bits, rabbit_ranks


def merge(stream: EdgeStream, size: int | None = None) -> list[np.ndarray[Any, Any]]:
    """Return first children, next children and parents; ``size`` is the pool's."""
    indptr, indices = whole_rows(stream)
    size = len(indices) if size is None else size
    pool, weights = np.empty(size, np.int32), np.empty(size, np.float32)
    order = np.argsort(stream.degrees, kind="stable").astype(np.int32)
    found = [np.empty(stream.num_nodes, np.int32) for _ in range(3)]
    if not rabbit.merge_communities(indptr, indices, order, pool, weights, *found):
        return []
    return found


def root_of(parents: np.ndarray[Any, Any], node: int) -> int:
    while parents[node] != node:
        node = int(parents[node])
    return node


def graph_of(stream: EdgeStream) -> Any:
    indptr, indices = whole_rows(stream)
    graph = nx.MultiGraph()
    graph.add_nodes_from(range(stream.num_nodes))
    for u in range(stream.num_nodes):
        near = indices[indptr[u] : indptr[u + 1]].tolist()
        graph.add_edges_from((u, v) for v in near if u <= v)
    return graph


def test_communities_are_about_as_good_as_louvains() -> None:
    stream = clustered_graph()
    parents = merge(stream)[2]
    groups: dict[int, set[int]] = {}
    for node in range(stream.num_nodes):
        groups.setdefault(root_of(parents, node), set()).add(node)
    graph = graph_of(stream)
    found = nx.community.modularity(graph, groups.values())
    best = nx.community.modularity(graph, nx.community.louvain_communities(graph, seed=0))
    # one greedy pass without Louvain's moves: the paper's own trade
    assert found > 0.6 * best > 0.3


def test_space_that_is_reused_changes_nothing() -> None:
    stream = clustered_graph()
    wide = merge(stream)
    least = next(size for size in range(1000, 10**6, 1000) if merge(stream, size))
    assert least < stream.degrees.sum() / 2  # and one list less would not have fit
    for one, other in zip(wide, merge(stream, least), strict=True):
        assert (one == other).all()
    assert merge(stream, 10) == []


def test_too_little_space_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, sizes = clustered_graph(), []
    expected = rabbit_ranks(stream)
    real = rabbit.merge_communities

    def fails_first(*arguments: Any) -> bool:
        sizes.append(len(arguments[3]))
        return len(sizes) > 1 and real(*arguments)

    monkeypatch.setattr(rabbit, "merge_communities", fails_first)
    assert (rabbit_ranks(stream) == expected).all()
    assert sizes[1] > stream.degrees.sum() > sizes[0]


@pytest.mark.parametrize(("label", "stream"), list(small_graphs()))
def test_every_node_gets_a_place_of_its_own(label: str, stream: EdgeStream) -> None:
    assert sorted(rabbit_ranks(stream).tolist()) == list(range(stream.num_nodes))


def test_a_community_is_numbered_together() -> None:
    stream = clustered_graph()
    parents = merge(stream)[2]
    roots = [root_of(parents, node) for node in np.argsort(rabbit_ranks(stream)).tolist()]
    changes = sum(a != b for a, b in pairwise(roots))
    assert changes == len(set(roots)) - 1


def test_gaps_are_those_counted_by_hand() -> None:
    stream = EdgeStream(3, [(0, 1), (1, 2)])
    # distances 2 and 1: log2(3) and log2(2), either end
    places = np.array([0, 2, 1], dtype=np.uint64)
    assert mean_gap_bits(stream, places) == pytest.approx((np.log2(3) + 1) / 2)
    mixed = clustered_graph()
    plain = np.arange(mixed.num_nodes, dtype=np.uint64)
    assert mean_gap_bits(mixed, rabbit_ranks(mixed)) < mean_gap_bits(mixed, plain) - 1.5
