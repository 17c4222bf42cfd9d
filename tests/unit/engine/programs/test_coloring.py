from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings

from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, run


def check_greedy(graph: SmallGraph, colors: Mapping[Any, int]) -> None:
    """Neighbors differ, and every smaller color than a node's is one of a neighbor's."""
    simple = graph.simple()
    assert set(colors) == set(graph.ids)
    for node in simple:
        around = {colors[other] for other in simple[node]}
        assert colors[node] not in around
        assert set(range(colors[node])) <= around


@settings(max_examples=50)
@given(small_graphs())
def test_colors_are_proper_and_none_could_be_smaller(graph: SmallGraph) -> None:
    result = run("coloring", graph)
    colors = values(result)
    check_greedy(graph, colors)
    assert result.result == len(set(colors.values()))


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    check_greedy(stored.graph, stored.same("coloring"))


def test_more_colors_than_bits_in_a_word() -> None:
    ids = list(range(150))
    clique = SmallGraph(ids, [(a, b, 1.0) for a in ids for b in range(a)], False)
    result = run("coloring", clique)
    assert sorted(values(result).values()) == ids
    assert result.result == 150


def test_the_seed_decides_between_equals() -> None:
    ring = SmallGraph(list(range(9)), [(n, (n + 1) % 9, 1.0) for n in range(9)], False)
    found = {tuple(values(run("coloring", ring, seed=n)).values()) for n in range(5)}
    assert len(found) > 1
    again = values(run("coloring", ring, seed=3))
    assert again == values(run("coloring", ring.topology(order=4), seed=3))
