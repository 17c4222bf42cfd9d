from typing import Any

import networkx as nx
from hypothesis import given, settings

from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, native, run


def smallest(graph: SmallGraph) -> dict[Any, Any]:
    found = nx.connected_components(graph.simple())
    return {node: min(component) for component in found for node in component}


@settings(max_examples=50)
@given(small_graphs())
def test_components_are_those_of_networkx(graph: SmallGraph) -> None:
    result = run("wcc", graph)
    assert values(result) == smallest(graph)
    assert result.result == nx.number_connected_components(graph.simple())
    same = native("wcc", graph)
    assert (result.table, result.result) == (same.table, same.result)


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    assert stored.same("wcc") == smallest(stored.graph)
