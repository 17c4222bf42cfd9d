import math

import networkx as nx
import pytest
from hypothesis import given, settings

from graphsys.engine.algorithms.degrees import degree_assortativity, degree_statistics
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


@settings(max_examples=50)
@given(graph=small_graphs())
def test_degrees_are_those_of_networkx(graph: SmallGraph) -> None:
    found = degree_statistics(graph.topology())
    expected = graph.networkx()
    if graph.is_directed:
        assert values(found, "out_degree") == dict(expected.out_degree)
        assert values(found, "in_degree") == dict(expected.in_degree)
    else:
        # NetworkX counts a loop twice
        once = {n: d - expected.number_of_edges(n, n) for n, d in expected.degree}
        assert values(found, "out_degree") == values(found, "in_degree") == once
    mean = sum(values(found, "out_degree").values()) / max(len(graph.ids), 1)
    assert found.result == pytest.approx(mean)


@settings(max_examples=50)
@given(graph=small_graphs())
def test_assortativity_is_that_of_networkx(graph: SmallGraph) -> None:
    loopless = SmallGraph(
        graph.ids, [edge for edge in graph.edges if edge[0] != edge[1]], graph.is_directed
    )
    found = degree_assortativity(loopless.topology())
    expected = loopless.networkx()
    pairs = list(nx.node_degree_xy(expected, x="out", y="in"))
    is_defined = pairs and all(len({pair[k] for pair in pairs}) > 1 for k in (0, 1))
    assert len(found) == 0
    if not is_defined:
        assert found.result is not None
        assert math.isnan(found.result)
        return
    assert found.result == pytest.approx(
        nx.degree_pearson_correlation_coefficient(expected), abs=1e-9
    )
