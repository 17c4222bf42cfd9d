from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import InvalidGraphError
from graphsys.engine import algorithms
from graphsys.engine.programs.sssp import ShortestPaths
from graphsys.engine.run import run as run_program
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, native, run, store


def distances(graph: SmallGraph, source: Any) -> dict[Any, float | None]:
    found = nx.single_source_dijkstra_path_length(graph.networkx(), source)
    return {node: found.get(node) for node in graph.ids}


@settings(max_examples=40)
@given(graph=small_graphs(), data=st.data())
def test_distances_are_those_of_networkx(graph: SmallGraph, data: st.DataObject) -> None:
    if not graph.ids:
        return
    source = data.draw(st.sampled_from(graph.ids))
    result = run("sssp", graph, source=source)
    assert values(result) == distances(graph, source)  # sums of quarters are exact
    assert result.table.equals(native("sssp", graph, source=source).table)


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    source = stored.graph.ids[5]
    assert stored.same("sssp", source=source) == distances(stored.graph, source)


@settings(max_examples=30)
@given(
    edges=st.lists(
        st.tuples(
            st.integers(0, 7), st.integers(0, 7), st.sampled_from([-1.0, -0.5, 1.0, 2.0])
        ),
        max_size=14,
    )
)
def test_negative_weights_are_those_of_networkx_or_a_cycle_is_refused(edges: Any) -> None:
    graph = SmallGraph(list(range(8)), edges, is_directed=True)
    program = ShortestPaths(source=0, negative_weights=True)
    try:
        found = nx.single_source_bellman_ford_path_length(graph.networkx(), 0)
    except nx.NetworkXUnbounded:
        with pytest.raises(InvalidGraphError, match="a cycle of negative length"):
            run_program(program, graph.topology())
        return
    result = values(run_program(program, graph.topology()))
    assert result == {node: found.get(node) for node in graph.ids}


def test_negative_weights_are_refused_with_their_number_unless_allowed() -> None:
    graph = SmallGraph([1, 2], [(1, 2, -0.5), (2, 1, 1.0), (1, 1, float("nan"))], True)
    with pytest.raises(InvalidGraphError, match="2 weights are negative or NaN"):
        run("sssp", graph, source=1)
    with pytest.raises(InvalidGraphError, match="1 weights are NaN"):
        run("sssp", graph, source=1, negative_weights=True)


HUGE = [("a", "b", 1e308), ("b", "c", 1e308), ("c", "d", 1.0), ("x", "y", 1e308)]


@pytest.mark.parametrize("implementation", ["native", "program"])
def test_a_path_longer_than_float64_holds_is_refused(implementation: str) -> None:
    found = {"native": native, "program": run}[implementation]
    graph = SmallGraph(list("abcdexy"), HUGE, True)
    with pytest.raises(InvalidGraphError, match="add up to more than float64 holds"):
        found("sssp", graph, source="a")
    # the sum of all weights is infinite here too, but no path is
    assert values(found("sssp", graph, source="x")) == distances(graph, "x")
    around = SmallGraph(list("abcdexy"), [*HUGE, ("a", "c", 5.0)], True)
    assert values(found("sssp", around, source="a")) == distances(around, "a")


def test_all_pairs_and_scaled_weights_follow(tmp_path: Path) -> None:
    graph = SmallGraph(list("abcdexy"), HUGE, True)
    with pytest.raises(InvalidGraphError, match="scale the weights down"):
        native("apsp", graph)
    scaled = SmallGraph(graph.ids, [(a, b, w / 4) for a, b, w in HUGE], True)
    assert values(native("sssp", scaled, source="a"))["d"] == 5e307 + 0.25
    for layout in store(tmp_path, graph).stores.values():
        with pytest.raises(InvalidGraphError, match="more than float64 holds"):
            algorithms.get("sssp")(layout, source="a")


def test_negative_weights_whose_sum_float64_does_not_hold_are_refused() -> None:
    graph = SmallGraph(list("abcdexy"), [*HUGE, ("d", "a", -1.0)], True)
    with pytest.raises(InvalidGraphError, match="some of them below 0; scale"):
        run_program(ShortestPaths(source="a", negative_weights=True), graph.topology())
