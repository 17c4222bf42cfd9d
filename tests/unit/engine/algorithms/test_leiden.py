import sys
import tracemalloc
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsys as gs
from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.core.progress import collected_figures
from graphsys.core.threads import ThreadTeam
from graphsys.engine import algorithms
from graphsys.engine.algorithms.leiden import leiden
from graphsys.engine.memory_plan import Facts
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import (
    SmallGraph,
    communities,
    small_graphs,
    values,
)


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
    qualities = []
    for seed in range(4):
        graph = nx.planted_partition_graph(30, 20, 0.3, 0.012, seed=seed)
        peer = igraph.Graph(n=len(graph), edges=list(graph.edges))
        peer_quality = peer.community_leiden(
            objective_function="modularity", n_iterations=10
        ).modularity
        result = leiden(topology_of(graph), seed=seed).result
        assert result is not None
        qualities.append((result, peer_quality))
    ours, theirs = np.mean(qualities, axis=0)
    assert ours >= theirs - 0.001


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
    assert few.result < found.result <= whole.result < found.result + 5e-3  # type: ignore[operator]
    rough = leiden(topology_of(graph), tolerance=1.0)  # more than any pass gains
    assert (rough.supersteps, rough.converged, rough.result) == (1, True, few.result)
    with pytest.raises(ConfigError, match="tolerance is -1, expected a number >= 0"):
        leiden(topology_of(graph), tolerance=-1)


NODES = 6000
"""Enough for nodes to move together."""


@pytest.fixture
def threads_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have threads work together on small levels too."""
    monkeypatch.setattr(sys.modules[leiden.native.__module__], "_FEW_ENTRIES", 0)


@pytest.fixture(scope="module")
def edges() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges, half of them within groups of 60; some repeat, some are loops."""
    rng = np.random.default_rng(2)
    src = rng.integers(0, NODES, 30_000)
    inner = np.minimum(src // 60 * 60 + rng.integers(0, 60, len(src)), NODES - 1)
    dst = np.where(rng.random(len(src)) < 0.5, inner, rng.integers(0, NODES, len(src)))
    return src, dst, np.round(rng.random(len(src)) * 5, 3)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_neither_threads_nor_partitions_change_a_bit(
    edges: tuple[np.ndarray, ...], weighted: bool, undirected: bool, tmp_path: Path
) -> None:
    results = []
    for partitions in (1, 4):
        folder = tmp_path / str(partitions)
        gs.ingest(edges, folder, partitions=partitions, undirected=undirected)
        for num_threads in (1, 2, 4):
            found = leiden(folder, weighted=weighted, seed=3, num_threads=num_threads)
            table = found.table.sort_by("id")
            results.append((found.result, found.supersteps, table["value"].to_pylist()))
    assert all(result == results[0] for result in results)


@pytest.mark.usefixtures("threads_always")
def test_many_nodes_end_in_connected_communities(edges: tuple[np.ndarray, ...]) -> None:
    src, dst, weight = edges
    topology = Topology.from_edges(src, dst, NODES, weight=weight)
    ways: list[dict[str, Any]] = [{}, {"weighted": True}, {"resolution": 4.0}]
    for options in [*ways, {"max_supersteps": 1}]:
        found = leiden(topology, seed=1, num_threads=2, **options)
        label = found.table["value"].to_numpy()
        inside = label[src] == label[dst]
        ends = src[inside], dst[inside]
        joined = sp.coo_matrix((np.ones(len(ends[0])), ends), (NODES, NODES))
        num_parts, part = sp.csgraph.connected_components(joined, directed=False)
        assert num_parts == len(np.unique(label))
        # the label is the smallest id of the component, so the two partitions are one
        first = np.full(num_parts, NODES)
        np.minimum.at(first, part, np.arange(NODES))
        assert np.array_equal(first[part], label)


def test_modularity_of_many_nodes_is_that_of_networkx(
    edges: tuple[np.ndarray, ...],
) -> None:
    src, dst, weight = edges
    found = leiden(Topology.from_edges(src, dst, NODES, weight=weight), weighted=True)
    graph = nx.MultiGraph()
    graph.add_nodes_from(range(NODES))
    graph.add_weighted_edges_from(zip(src.tolist(), dst.tolist(), weight, strict=True))
    expected = nx.community.modularity(graph, communities(found))
    assert found.result == pytest.approx(expected, abs=1e-10)


def test_no_node_gains_by_leaving_where_many_moved(edges: tuple[np.ndarray, ...]) -> None:
    src, dst, _ = edges
    kept = src != dst
    src, dst = src[kept], dst[kept]
    topology = Topology.from_edges(src, dst, NODES, directed=False)
    resolution = 2.0
    found = leiden(topology, resolution=resolution, tolerance=0.0, max_supersteps=400)
    assert found.converged
    label = found.table["value"].to_numpy()
    both = np.concatenate([src, dst]), np.concatenate([dst, src])
    links = sp.csr_matrix((np.ones(len(both[0])), (both[0], label[both[1]])))
    degree = np.bincount(both[0], minlength=NODES)
    total = np.bincount(label, degree, minlength=NODES)
    at = np.arange(NODES)
    pull = resolution * degree / len(both[0])
    own = np.asarray(links[at, label]).ravel() - pull * (total[label] - degree)
    gain = links.tocoo()
    others = gain.col != label[gain.row]
    best = gain.data - pull[gain.row] * total[gain.col]
    assert np.all(best[others] <= own[gain.row[others]] + 1e-6)
    assert np.all(own >= -1e-6)


@pytest.mark.usefixtures("threads_always")
def test_quality_is_that_of_the_best_of_many_starts() -> None:
    """Planted groups that stand out are found, by any seed."""
    rng = np.random.default_rng(8)
    src = rng.integers(0, NODES, 60_000)
    inner = src // 100 * 100 + rng.integers(0, 100, len(src))
    dst = np.where(rng.random(len(src)) < 0.8, inner, rng.integers(0, NODES, len(src)))
    topology = Topology.from_edges(src, dst, NODES, directed=False)
    for seed in range(3):
        label = leiden(topology, seed=seed, num_threads=2).table["value"].to_numpy()
        assert np.array_equal(label, np.arange(NODES) // 100 * 100)


def test_weights_of_all_sizes_are_taken(edges: tuple[np.ndarray, ...]) -> None:
    src, dst, weight = edges
    for scale in (1e-300, 1e-20, 1e20, 1e290):
        topology = Topology.from_edges(src, dst, NODES, weight=weight * scale)
        reached = leiden(topology, weighted=True, resolution=0.5).result
        assert reached is not None
        assert 0.3 < reached < 1
    none = Topology.from_edges(src, dst, NODES, weight=weight * 0)
    found = leiden(none, weighted=True)
    assert (found.result, found.converged) == (0.0, True)
    weight = weight.copy()
    weight[7] = -1.5
    with pytest.raises(InvalidGraphError, match=rf"node number {src[7]} weighs -1\.5"):
        leiden(Topology.from_edges(src, dst, NODES, weight=weight), weighted=True)


def test_it_says_how_far_it_is(edges: tuple[np.ndarray, ...]) -> None:
    topology = Topology.from_edges(edges[0], edges[1], NODES)
    with collected_figures() as figures:
        found = leiden.native(topology)
    assert figures["superstep"] == found.supersteps
    assert figures["level"] >= 2
    assert 0 < figures["nodes"] < NODES
    assert figures["modularity"] == pytest.approx(found.result, abs=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_entry_takes_sixteen_bytes_at_most(weighted: bool, tmp_path: Path) -> None:
    """Beside what a node takes; and never more than was told."""
    rng = np.random.default_rng(0)
    num_nodes, num_edges = 3000, 300_000
    ends = rng.integers(0, num_nodes, (2, num_edges))
    gs.ingest((*ends, rng.random(num_edges)), tmp_path / "g", undirected=True)
    options: dict[str, Any] = {"weighted": weighted, "max_supersteps": 2}
    options["num_threads"] = 1
    listed = algorithms.get("leiden")
    listed(tmp_path / "g", **options)  # compiled
    with gs.open(tmp_path / "g") as graph:
        work = listed.prepare(graph, **options)
        tracemalloc.start()
        work.run()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        entries = Topology.of(graph).num_edges
    assert peak <= 16 * entries + 130 * num_nodes + (1 << 20)
    need = listed.needs(  # type: ignore[misc]
        Facts(topology=Topology.of(graph), options=options, threads=1, is_stated=True)
    )
    assert peak <= need.bytes + need.entries


def test_what_is_not_connected_is_split() -> None:
    module: Any = sys.modules[leiden.native.__module__]
    topology = topology_of(nx.path_graph(5))
    with ThreadTeam(1) as team:
        level = module._whole_graph(topology, False, team)
        passes = module._Passes(team=team, level=level, resolution=1.0, allocate=np.empty)
        given = np.array([4, 4, 2, 4, 4], dtype=level.rows[0].indices.dtype)
        assert passes.connected(given).tolist() == [0, 0, 2, 3, 3]
