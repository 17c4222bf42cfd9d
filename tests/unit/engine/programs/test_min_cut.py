"""Smallest cuts against NetworkX's maximum flow."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError, InvalidGraphError, UnknownNameError
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, run


def capacities(graph: SmallGraph) -> Any:
    """Return the same graph with repeated edges added up."""
    net = nx.DiGraph() if graph.is_directed else nx.Graph()
    net.add_nodes_from(graph.ids)
    for a, b, weight in graph.edges:
        before = net[a][b]["capacity"] if net.has_edge(a, b) else 0
        net.add_edge(a, b, capacity=before + weight)
    return net


def check(graph: SmallGraph, source: Any, target: Any, sides: dict[Any, bool]) -> float:
    """Check that the sides are a cut of the right capacity; return that."""
    net = capacities(graph)
    expected = float(nx.maximum_flow_value(net, source, target))
    assert sides[source]
    assert not sides[target]
    ours = {node for node, is_ours in sides.items() if is_ours}
    across = nx.edge_boundary(net, ours, set(net) - ours, data="capacity")
    assert sum(capacity for *_, capacity in across) == pytest.approx(expected)
    return expected


@settings(max_examples=40)
@given(graph=small_graphs(), order=st.integers(0, 2), data=st.data())
def test_cuts_are_as_small_as_flows_are_large(
    graph: SmallGraph, order: int, data: st.DataObject
) -> None:
    if len(graph.ids) < 2:
        return
    pair = st.lists(st.sampled_from(graph.ids), min_size=2, max_size=2, unique=True)
    source, target = data.draw(pair)
    result = run(
        "min_cut", graph.topology(order), source=source, target=target, num_threads=1
    )
    assert result.converged
    expected = check(graph, source, target, values(result))
    assert result.result == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    graph = stored.graph
    for source, target in [(graph.ids[0], graph.ids[5]), (graph.ids[9], graph.ids[3])]:
        runs = stored.runs("min_cut", source=source, target=target)
        for result in runs:
            expected = check(graph, source, target, values(result))
            assert result.result == pytest.approx(expected, rel=1e-9)
            assert values(result) == values(runs[0])


@pytest.mark.parametrize("is_directed", [True, False])
def test_a_grid_with_random_capacities(is_directed: bool) -> None:
    side = 14
    net = nx.grid_2d_graph(side, side)
    if is_directed:
        net = net.to_directed()
    rng = np.random.default_rng(3)
    name = {node: node[0] * side + node[1] for node in net}
    edges = [(name[a], name[b], float(rng.random() ** 4)) for a, b in net.edges]
    graph = SmallGraph(sorted(name.values()), edges, is_directed)
    source, target = 0, side * side - 1
    result = run("min_cut", graph, source=source, target=target)
    expected = check(graph, source, target, values(result))
    assert result.result == pytest.approx(expected, rel=1e-9)


def test_capacities_of_very_different_size() -> None:
    edges = [("s", "a", 1e7), ("a", "t", 1e-3), ("s", "b", 1e-3), ("b", "t", 1e7)]
    result = run(
        "min_cut", SmallGraph(["s", "a", "b", "t"], edges, True), source="s", target="t"
    )
    assert result.result == pytest.approx(2e-3)
    assert values(result) == {"s": True, "a": True, "b": False, "t": False}


def test_bad_input_is_refused() -> None:
    graph = SmallGraph([1, 2], [(1, 2, 1.0)], True)
    with pytest.raises(ConfigError, match="source and target of a cut are both 1"):
        run("min_cut", graph, source=1, target=1)
    with pytest.raises(ConfigError, match="needs the parameter 'target'"):
        run("min_cut", graph, source=1)
    with pytest.raises(UnknownNameError, match="3"):
        run("min_cut", graph, source=1, target=3)
    for wrong in (-1.0, float("nan"), float("inf")):
        bad = SmallGraph([1, 2], [(1, 2, wrong)], True)
        with pytest.raises(InvalidGraphError, match="min_cut needs"):
            run("min_cut", bad, source=1, target=2)
    huge = SmallGraph([1, 2], [(1, 2, 1e308), (1, 2, 1e308)], True)
    with pytest.raises(InvalidGraphError, match="than float64 holds; scale the weights"):
        run("min_cut", huge, source=1, target=2)
