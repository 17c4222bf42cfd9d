from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.engine.algorithms.triangles import lcc, triangle_count
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms import ldbc
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


@settings(max_examples=80)
@given(graph=small_graphs(max_nodes=9), order=st.integers(0, 3), threads=st.integers(1, 2))
def test_triangles_are_those_of_networkx(
    graph: SmallGraph, order: int, threads: int
) -> None:
    result = triangle_count(graph.topology(order), num_threads=threads)
    expected = nx.triangles(graph.simple())
    assert values(result) == expected
    assert result.result == sum(expected.values()) // 3


def clustering(graph: SmallGraph) -> dict[Any, float]:
    """LDBC's definition, word for word."""
    arcs = {(a, b) for a, b, _ in graph.edges if a != b}
    if not graph.is_directed:
        arcs |= {(b, a) for a, b in arcs}
    found = {}
    for node in graph.ids:
        near = {b for a, b in arcs if a == node} | {a for a, b in arcs if b == node}
        links = sum((a, b) in arcs for a in near for b in near)
        pairs = len(near) * (len(near) - 1)
        found[node] = links / pairs if pairs else 0.0
    return found


@settings(max_examples=80)
@given(graph=small_graphs(max_nodes=9), order=st.integers(0, 3), threads=st.integers(1, 2))
def test_clustering_is_ldbc_s(graph: SmallGraph, order: int, threads: int) -> None:
    result = lcc(graph.topology(order), num_threads=threads)
    assert values(result) == pytest.approx(clustering(graph), rel=1e-12)
    if not graph.is_directed:
        assert values(result) == pytest.approx(nx.clustering(graph.simple()), rel=1e-12)


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_threads_do_not_change_counts(num_threads: int) -> None:
    graph = nx.barabasi_albert_graph(3000, 12, seed=4)
    edges = np.array(graph.edges)
    topology = Topology.from_edges(edges[:, 0], edges[:, 1], len(graph), directed=False)
    result = triangle_count(topology, num_threads=num_threads)
    assert values(result) == nx.triangles(graph)
    found = lcc(topology, num_threads=num_threads)
    assert values(found) == pytest.approx(nx.clustering(graph), rel=1e-12)


def test_empty_graph_has_no_triangles() -> None:
    none = np.empty(0, dtype=np.int64)
    topology = Topology.from_edges(none, none, 0)
    assert (len(triangle_count(topology)), triangle_count(topology).result) == (0, 0)
    assert len(lcc(topology)) == 0


@pytest.mark.parametrize("side", ["dir", "undir"])
def test_ldbc_validation(shared_data: Path, side: str) -> None:
    folder = shared_data / ldbc.VALIDATION / "lcc"
    topology = ldbc.adjacency(folder / f"{side}-input", side == "dir")
    expected = ldbc.expected(folder / f"{side}-output", float)
    assert values(lcc(topology)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("side", ["directed", "undirected"])
def test_ldbc_example(shared_data: Path, side: str) -> None:
    base = shared_data / ldbc.VALIDATION / "example" / f"example-{side}"
    topology = ldbc.tables(
        Path(f"{base}.v"), Path(f"{base}.e"), directed=side == "directed"
    )
    expected = ldbc.expected(Path(f"{base}-LCC"), float)
    assert values(lcc(topology)) == pytest.approx(expected, rel=1e-9)


def test_ldbc_p2p_31(shared_data: Path) -> None:
    base = shared_data / ldbc.P2P
    topology = ldbc.tables(Path(f"{base}.v"), Path(f"{base}.e"), directed=False)
    expected = ldbc.expected(Path(f"{base}-LCC"), float)
    assert values(lcc(topology)) == pytest.approx(expected, rel=1e-9)
    assert triangle_count(topology).result == 2024  # SNAP's page on p2p-Gnutella31
