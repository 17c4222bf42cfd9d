import networkx as nx
from hypothesis import given, settings

from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, native, run


@settings(max_examples=50)
@given(small_graphs())
def test_core_numbers_are_those_of_networkx(graph: SmallGraph) -> None:
    result = run("k_core", graph)
    expected = nx.core_number(graph.simple())
    assert values(result) == expected
    assert result.result == max(expected.values(), default=0)
    same = native("k_core", graph)
    assert (result.table, result.result) == (same.table, same.result)


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    assert stored.same("k_core") == nx.core_number(stored.graph.simple())
