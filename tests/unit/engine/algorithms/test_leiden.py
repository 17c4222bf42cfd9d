from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError
from graphsys.engine.algorithms.leiden import leiden
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


def communities(result: Result) -> list[set[Any]]:
    found: dict[Any, set[Any]] = {}
    for node, label in values(result).items():
        found.setdefault(label, set()).add(node)
    return list(found.values())


@settings(max_examples=60)
@given(
    graph=small_graphs(),
    weighted=st.booleans(),
    resolution=st.sampled_from([0.3, 1.0, 2.5]),
)
def test_labels_and_modularity_are_right(
    graph: SmallGraph, weighted: bool, resolution: float
) -> None:
    result = leiden(graph.topology(), resolution=resolution, weighted=weighted)
    undirected = nx.MultiGraph()
    undirected.add_nodes_from(graph.ids)
    undirected.add_weighted_edges_from(graph.edges)
    parts = communities(result)
    labels = values(result)
    assert all(labels[node] == min(part) for part in parts for node in part)
    # Traag et al., guarantee 1: communities are connected
    assert all(nx.is_connected(undirected.subgraph(part)) for part in parts)
    if graph.edges:
        weight = "weight" if weighted else None
        reached = nx.community.modularity(undirected, parts, weight, resolution)
        assert result.result == pytest.approx(reached, abs=1e-12)
        # no node gains by moving into a neighboring community or out of its own
        for node in graph.ids:
            rest = [part - {node} for part in parts]
            for k in range(len(rest)):
                moved = [part | {node} if j == k else part for j, part in enumerate(rest)]
                moved = [part for part in moved if part]
                other = nx.community.modularity(undirected, moved, weight, resolution)
                assert other <= reached + 1e-9
    other_numbers = leiden(
        graph.topology(order=2), resolution=resolution, weighted=weighted
    )
    assert values(other_numbers) == labels


def topology_of(graph: Any) -> Topology:
    edges = np.array(graph.edges).reshape(-1, 2)
    return Topology.from_edges(edges[:, 0], edges[:, 1], len(graph), directed=False)


def test_quality_is_that_of_igraph() -> None:
    igraph = pytest.importorskip("igraph")
    for seed in range(3):
        graph = nx.planted_partition_graph(30, 20, 0.3, 0.012, seed=seed)
        peer = igraph.Graph(n=len(graph), edges=list(graph.edges))
        peer_quality = peer.community_leiden(
            objective_function="modularity", n_iterations=10
        ).modularity
        result = leiden(topology_of(graph), seed=seed).result
        assert result is not None
        assert result >= peer_quality - 0.005


def test_ring_of_cliques_is_cut_between_cliques() -> None:
    graph = nx.ring_of_cliques(12, 6)
    result = leiden(topology_of(graph))
    assert sorted(map(min, communities(result))) == list(range(0, 72, 6))


@pytest.mark.shared
def test_quality_on_a_real_graph(shared_data: Path) -> None:
    path = shared_data / "ca-GrQc" / "ca-GrQc.txt"
    if not path.is_file():
        pytest.skip(f"no {path.name}")
    edges = np.loadtxt(path, dtype=np.int64, skiprows=4)
    graph = nx.convert_node_labels_to_integers(nx.Graph(edges.tolist()))
    louvain = nx.community.louvain_communities(graph, seed=1)
    result = leiden(topology_of(graph), seed=1)
    assert result.result is not None
    assert result.result >= nx.community.modularity(graph, louvain) - 0.002


def test_a_seed_gives_one_result() -> None:
    topology = topology_of(nx.gnm_random_graph(300, 900, seed=1))
    assert leiden(topology, seed=4).table.equals(leiden(topology, seed=4).table)
    assert not leiden(topology, seed=4).table.equals(leiden(topology, seed=5).table)


def test_bad_parameters_are_named() -> None:
    topology = topology_of(nx.path_graph(3))
    with pytest.raises(ConfigError, match="resolution is -1, expected a number >= 0"):
        leiden(topology, resolution=-1)


def test_passes_go_on_until_they_gain_little() -> None:
    graph = nx.planted_partition_graph(60, 25, 0.2, 0.02, seed=5)
    few = leiden(topology_of(graph), max_supersteps=1)
    assert not few.converged
    found = leiden(topology_of(graph))
    assert found.converged
    assert found.supersteps < 100
    whole = leiden(topology_of(graph), tolerance=0.0, max_supersteps=1000)
    assert few.result < found.result <= whole.result < found.result + 1e-3  # type: ignore[operator]
    rough = leiden(topology_of(graph), tolerance=1.0)  # more than any pass gains
    assert (rough.supersteps, rough.converged, rough.result) == (1, True, few.result)
    with pytest.raises(ConfigError, match="tolerance is -1, expected a number >= 0"):
        leiden(topology_of(graph), tolerance=-1)
