from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import InvalidGraphError
from graphsys.engine import algorithms
from graphsys.engine.programs.sssp import ShortestPaths
from graphsys.engine.run import run as run_program
from graphsys.engine.topology import Topology
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


def expected_parents(graph: SmallGraph, source: Any) -> dict[Any, Any]:
    """By their definition: on a path of few edges, the first that fits by id."""
    edges = list(graph.edges)
    if not graph.is_directed:
        edges += [(b, a, w) for a, b, w in edges]
    best = {source: (0.0, 0)}
    for _ in graph.ids:
        for a, b, w in edges:
            if a in best and (found := (best[a][0] + w, best[a][1] + 1)) < best.get(
                b, (np.inf, 0)
            ):
                best[b] = found
    return {
        node: min(
            a
            for a, b, w in edges
            if b == node and a in best and (best[a][0] + w, best[a][1] + 1) == best[b]
        )
        if node in best and node != source
        else None
        for node in graph.ids
    }


@settings(max_examples=60)
@given(
    graph=small_graphs().filter(lambda graph: bool(graph.ids)),
    weights=st.sampled_from([(0.0, 0.5), (0.0,), (0.25, 1.0, 1.5)]),
    order=st.integers(0, 2),
)
def test_parents_are_the_first_on_paths_of_few_edges(
    graph: SmallGraph, weights: tuple[float, ...], order: int
) -> None:
    edges = [(a, b, weights[k % len(weights)]) for k, (a, b, _) in enumerate(graph.edges)]
    graph = SmallGraph(graph.ids, edges, graph.is_directed)
    source = graph.ids[0]
    expected = expected_parents(graph, source)
    topology = graph.topology(order)
    for implementation in ("native", "program"):
        done = algorithms.get("sssp")(
            topology, source=source, parents=True, implementation=implementation
        )
        assert done.table.column_names == ["id", "value", "parent"]
        assert values(done, "parent") == expected
        assert values(done) == distances(graph, source)


def test_parents_are_the_same_in_every_layout(stored: Stored) -> None:
    source = stored.graph.ids[5]
    options = {"source": source, "parents": True}
    found = stored.same("sssp", "parent", **options)
    assert found == expected_parents(stored.graph, source)
    for topology in stored.stores.values():
        done = algorithms.get("sssp")(topology, implementation="native", **options)
        assert values(done, "parent") == found


def test_parents_without_lengths_are_those_of_hops() -> None:
    topology = Topology.from_edges([0, 1, 0, 2], [3, 3, 1, 0], 5, ids=list("dcbae"))
    found = [
        algorithms.get(name)(topology, source="b", parents=True).table["parent"].to_pylist()
        for name in ("sssp", "bfs")
    ]
    assert found[0] == found[1] == ["b", "d", None, "d", None]


def test_parents_go_with_negative_lengths_and_their_cycles_are_refused() -> None:
    graph = SmallGraph([1, 2, 3], [(1, 2, 3.0), (1, 3, 1.0), (3, 2, -1.0)], True)
    options = {"source": 1, "parents": True, "negative_weights": True}
    assert values(run("sssp", graph, **options), "parent") == {1: None, 2: 3, 3: 1}
    wrong = SmallGraph([1, 2, 3], [(1, 2, 3.0), (2, 3, -2.0), (3, 2, 1.0)], True)
    with pytest.raises(InvalidGraphError, match="a cycle of negative length"):
        run("sssp", wrong, **options)


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
