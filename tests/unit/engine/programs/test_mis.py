from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings

from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, run


def check_maximal(graph: SmallGraph, is_member: Mapping[Any, bool]) -> None:
    """A node is in the set just if none of its neighbors is."""
    simple = graph.simple()
    assert set(is_member) == set(graph.ids)
    for node in simple:
        assert is_member[node] != any(is_member[other] for other in simple[node])


@settings(max_examples=50)
@given(small_graphs())
def test_the_set_is_independent_and_maximal(graph: SmallGraph) -> None:
    result = run("mis", graph)
    check_maximal(graph, values(result))
    assert result.result == sum(values(result).values())


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    check_maximal(stored.graph, stored.same("mis"))


def test_the_seed_decides() -> None:
    ring = SmallGraph(list(range(12)), [(n, (n + 1) % 12, 1.0) for n in range(12)], True)
    found = {tuple(values(run("mis", ring, seed=n)).values()) for n in range(6)}
    assert len(found) > 1
    again = values(run("mis", ring, seed=3))
    assert again == values(run("mis", ring.topology(order=4), seed=3))
