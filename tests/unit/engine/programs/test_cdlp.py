from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, run


def labels_after(graph: SmallGraph, iterations: int) -> dict[Any, Any]:
    """The definition, node by node."""
    around: dict[Any, list[Any]] = {node: [] for node in graph.ids}
    for a, b, _ in graph.edges:
        around[b].append(a)
        if graph.is_directed or a != b:  # an undirected loop is one neighbor
            around[a].append(b)
    labels = {node: node for node in graph.ids}
    for _ in range(iterations):
        tallies = {node: Counter(labels[n] for n in around[node]) for node in graph.ids}
        labels = {
            node: min(
                (label for label, n in tally.items() if n == max(tally.values())),
                default=labels[node],
            )
            for node, tally in tallies.items()
        }
    return labels


@settings(max_examples=50)
@given(graph=small_graphs(), iterations=st.integers(1, 6))
def test_labels_follow_the_definition(graph: SmallGraph, iterations: int) -> None:
    result = run("cdlp", graph, iterations=iterations)
    assert values(result) == labels_after(graph, iterations)
    assert result.supersteps == iterations


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    assert stored.same("cdlp") == labels_after(stored.graph, 10)


def test_a_node_of_many_neighbors_takes_the_smallest_of_equals() -> None:
    star = SmallGraph(list(range(400)), [(n, 0, 1.0) for n in range(1, 400)], False)
    assert values(run("cdlp", star, iterations=1))[0] == 1


def test_no_iterations_are_refused() -> None:
    with pytest.raises(ConfigError, match="iterations is 0"):
        run("cdlp", SmallGraph([1], [], True), iterations=0)
