from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from graphsys.engine.algorithms.k_core import k_core
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


@settings(max_examples=60)
@given(graph=small_graphs())
def test_core_numbers_are_those_of_networkx(graph: SmallGraph) -> None:
    result = k_core(graph.topology())
    expected = nx.core_number(graph.simple())
    assert values(result) == expected
    assert result.result == max(expected.values(), default=0)


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_threads_do_not_change_core_numbers(num_threads: int) -> None:
    graph = nx.barabasi_albert_graph(20_000, 7, seed=3)
    edges = np.array(graph.edges)
    topology = Topology.from_edges(edges[:, 0], edges[:, 1], len(graph), directed=False)
    assert values(k_core(topology, num_threads=num_threads)) == nx.core_number(graph)


@pytest.mark.shared
def test_core_numbers_of_a_real_graph(shared_data: Path) -> None:
    path = shared_data / "ca-GrQc" / "ca-GrQc.txt"
    if not path.is_file():
        pytest.skip(f"no {path.name}")
    edges = np.loadtxt(path, dtype=np.int64, skiprows=4)
    ids, numbers = np.unique(edges, return_inverse=True)
    src, dst = numbers.reshape(-1, 2).T
    graph = nx.Graph(edges.tolist())
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    topology = Topology.from_edges(src, dst, len(ids), ids=ids)
    assert values(k_core(topology)) == nx.core_number(graph)
