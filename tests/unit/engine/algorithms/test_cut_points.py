"""Articulation points, bridges and blocks, against NetworkX."""

import tracemalloc

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsys as gs
from graphsys.engine.algorithms import ALGORITHMS
from graphsys.engine.memory_plan import Facts
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


@settings(max_examples=120)
@given(graph=small_graphs(), order=st.integers(0, 2))
def test_what_is_found_is_what_networkx_finds(graph: SmallGraph, order: int) -> None:
    topology, simple = graph.topology(order), graph.simple()
    cuts = gs.algorithms.articulation_points(topology)
    expected = set(nx.articulation_points(simple))
    assert {node for node, is_cut in values(cuts).items() if is_cut} == expected
    assert cuts.result == len(expected)
    blocks = gs.algorithms.biconnected_components(topology)
    rows = [(row["id"], row["value"]) for row in blocks.table.to_pylist()]
    parts = sorted(map(sorted, nx.biconnected_components(simple)))
    assert rows == [(node, k) for k, part in enumerate(parts) for node in part]
    assert blocks.result == len(parts)
    repeated = nx.MultiGraph()
    repeated.add_nodes_from(graph.ids)
    repeated.add_edges_from((a, b) for a, b, _ in graph.edges if a != b)
    edges = gs.algorithms.bridges(topology)
    pairs = [(row["id"], row["other"]) for row in edges.table.to_pylist()]
    assert pairs == sorted(tuple(sorted(edge[:2])) for edge in nx.bridges(repeated))
    assert edges.result == len(pairs)


@pytest.mark.parametrize("is_directed", [True, False])
def test_a_large_graph_has_the_blocks_of_networkx(
    is_directed: bool, rng: np.random.Generator
) -> None:
    src, dst = rng.integers(0, 5000, (2, 5200))
    topology = Topology.from_edges(src, dst, 5000, directed=is_directed)
    graph = nx.Graph(zip(src.tolist(), dst.tolist(), strict=True))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    expected = sorted(map(sorted, nx.biconnected_components(graph)))
    found = gs.algorithms.biconnected_components(topology)
    assert found.result == len(expected)
    assert found.table["id"].to_pylist() == [node for part in expected for node in part]


def test_edges_in_opposite_directions_are_no_bridge() -> None:
    topology = Topology.from_edges([0, 1, 1], [1, 0, 2], 3)
    found = gs.algorithms.bridges(topology).table.to_pylist()
    assert found == [{"id": 1, "other": 2}]


def test_a_path_is_cut_at_every_node_without_recursion() -> None:
    num = 300_000
    path = Topology.from_edges(np.arange(num - 1), np.arange(1, num), num)
    assert gs.algorithms.articulation_points(path).result == num - 2
    assert gs.algorithms.bridges(path).result == num - 1


@pytest.mark.parametrize("is_stated", [True, False])
@pytest.mark.parametrize("shape", ["chain", "tree", "ring"])
@pytest.mark.parametrize("name", ["bridges", "biconnected_components"])
def test_what_blocks_take_is_charged(name: str, shape: str, is_stated: bool) -> None:
    num = 50_000
    dst = np.arange(1, num)
    src = dst - 1 if shape != "tree" else dst // 2
    ring = ([num - 1], [0]) if shape == "ring" else ([], [])
    ends = np.append(src, ring[0]).astype(int), np.append(dst, ring[1]).astype(int)
    graph = Topology.from_edges(*ends, num, directed=False)
    listed = ALGORITHMS[name]
    assert listed.needs is not None
    facts = Facts(topology=graph, options={}, threads=1, is_stated=is_stated)
    charged = listed.needs(facts).bytes
    tracemalloc.start()
    try:
        assert listed.native_function()(graph).table is not None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    untouched = 13 * num  # of arrays that have room for as many blocks as nodes
    assert 0.4 * charged < peak < 1.1 * charged + untouched
