"""Strongly connected components against NetworkX and SciPy."""

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, run


def expected_labels(graph: SmallGraph) -> dict[object, object]:
    net = graph.networkx()
    parts = (
        nx.strongly_connected_components(net)
        if graph.is_directed
        else nx.connected_components(net)
    )
    return {node: min(part) for part in parts for node in part}


@settings(max_examples=40)
@given(graph=small_graphs(), order=st.integers(0, 2))
def test_components_are_those_of_networkx(graph: SmallGraph, order: int) -> None:
    result = run("scc", graph.topology(order), num_threads=1)
    expected = expected_labels(graph)
    assert values(result) == expected
    assert result.result == len(set(expected.values()))
    assert result.converged


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    assert stored.same("scc") == expected_labels(stored.graph)


def test_many_components_of_all_sizes() -> None:
    rng = np.random.default_rng(0)
    num = 3000
    src = rng.integers(0, num, 2 * num)
    # mostly along the order, so that there are many small components
    dst = np.clip(src + rng.integers(-4, 40, 2 * num), 0, num - 1)
    result = run("scc", Topology.from_edges(src, dst, num))
    matrix = coo_array((np.ones(2 * num), (src, dst)), shape=(num, num)).tocsr()
    count, labels = connected_components(matrix, connection="strong")
    assert result.result == count
    smallest = np.full(count, num)
    np.minimum.at(smallest, labels, np.arange(num))
    np.testing.assert_array_equal(result.to_numpy()["value"], smallest[labels])


def test_a_long_path_is_trimmed_from_both_ends() -> None:
    num = 400
    path = Topology.from_edges(np.arange(num - 1), np.arange(1, num), num)
    result = run("scc", path)
    assert result.result == num
    assert result.supersteps < num  # not one round per node


def test_a_loop_does_not_keep_a_node_from_being_trimmed() -> None:
    graph = SmallGraph([1, 2, 3], [(1, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)], True)
    result = run("scc", graph)
    assert values(result) == {1: 1, 2: 2, 3: 3}
    assert result.supersteps <= 12
