import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.engine.algorithms.distances import closeness, diameter, harmonic
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


@settings(max_examples=50)
@given(graph=small_graphs())
def test_closeness_is_that_of_networkx(graph: SmallGraph) -> None:
    known = graph.networkx()
    found = closeness(graph.topology(), num_threads=2)
    assert values(found) == pytest.approx(nx.closeness_centrality(known), rel=1e-12)
    found = harmonic(graph.topology())
    assert values(found) == pytest.approx(nx.harmonic_centrality(known), rel=1e-12)


@settings(max_examples=50)
@given(graph=small_graphs())
def test_the_bound_holds_for_the_component_of_the_best_connected(
    graph: SmallGraph,
) -> None:
    known = graph.simple()
    result = diameter(graph.topology())
    if not graph.ids:
        assert result.result == len(result) == 0
        return
    most = max(dict(known.degree).values())
    start = min(node for node, degree in known.degree if degree == most)
    component = known.subgraph(nx.node_connected_component(known, start))
    assert result.result is not None
    assert nx.diameter(component) / 2 <= result.result <= nx.diameter(component)
    reached = {node for node, hops in values(result).items() if hops is not None}
    assert reached == set(component)


def test_the_diameter_of_a_tree_is_exact() -> None:
    tree = nx.random_labeled_tree(400, seed=2)
    edges = np.array(tree.edges)
    topology = Topology.from_edges(edges[:, 0], edges[:, 1], 400, directed=False)
    result = diameter(topology, sweeps=2)
    assert result.result == nx.diameter(tree)
    assert str(result.table["value"].type) == "int64"


def test_bad_parameters_are_named() -> None:
    with pytest.raises(ConfigError, match="sweeps is 0, expected a whole number >= 1"):
        diameter(Topology.from_edges(np.array([0]), np.array([1]), 2), sweeps=0)


@settings(max_examples=40)
@given(graph=small_graphs())
def test_lengths_give_the_same_bits_by_any_threads(graph: SmallGraph) -> None:
    for algorithm in (closeness, harmonic):
        one, two = (
            algorithm(graph.topology(), weighted=True, num_threads=threads).table["value"]
            for threads in (1, 2)
        )
        assert one.equals(two)


def test_a_graph_without_weights_counts_hops() -> None:
    graph = Topology.from_edges([0, 1], [1, 2], num_nodes=3)
    for algorithm in (closeness, harmonic):
        assert algorithm(graph, weighted=True).table == algorithm(graph).table


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            [1.0, -2.0],
            "must be 0 or more and finite, but 1 weights are not, the first -2.0",
        ),
        ([1.0, np.inf], "1 weights are not, the first inf"),
        ([1.0, np.nan], "1 weights are not, the first nan"),
        ([1e308, 1e308], "add up to more than float64 holds; scale the weights down"),
    ],
)
def test_lengths_that_give_no_distances_are_refused(
    weight: list[float], message: str
) -> None:
    graph = Topology.from_edges([0, 1], [1, 2], num_nodes=3, weight=weight)
    for algorithm in (closeness, harmonic):
        with pytest.raises(InvalidGraphError, match=message):
            algorithm(graph, weighted=True)
