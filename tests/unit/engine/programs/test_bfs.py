from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError, UnknownNameError
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, native, run


def hops(graph: SmallGraph, source: Any) -> dict[Any, int | None]:
    found = nx.single_source_shortest_path_length(graph.networkx(), source)
    return {node: found.get(node) for node in graph.ids}


def first_parents(graph: SmallGraph, source: Any) -> dict[Any, Any]:
    far = hops(graph, source)
    edges = [(a, b) for a, b, _ in graph.edges]
    if not graph.is_directed:
        edges += [(b, a) for a, b in edges]
    found: dict[Any, Any] = dict.fromkeys(graph.ids)
    for a, b in edges:
        near = far[a]
        if near is not None and far[b] == near + 1:
            found[b] = a if found[b] is None else min(found[b], a)
    return found


@settings(max_examples=40)
@given(graph=small_graphs(), data=st.data())
def test_hops_and_parents_are_those_of_networkx(
    graph: SmallGraph, data: st.DataObject
) -> None:
    if not graph.ids:
        return
    source = data.draw(st.sampled_from(graph.ids))
    result = run("bfs", graph, source=source)
    assert values(result) == hops(graph, source)
    assert result.table.equals(native("bfs", graph, source=source).table)
    tree = run("bfs", graph, source=source, parents=True)
    assert values(tree) == hops(graph, source)
    assert values(tree, "parent") == first_parents(graph, source)
    assert tree.table.equals(native("bfs", graph, source=source, parents=True).table)


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    source = stored.graph.ids[5]
    assert stored.same("bfs", source=source) == hops(stored.graph, source)
    parents = stored.same("bfs", "parent", source=source, parents=True)
    assert parents == first_parents(stored.graph, source)


def test_a_long_path_is_followed_to_its_end() -> None:
    path = SmallGraph(list(range(300)), [(n, n + 1, 1.0) for n in range(299)], True)
    assert values(run("bfs", path, source=0)) == {n: n for n in range(300)}


def test_a_source_is_needed_and_must_exist() -> None:
    graph = SmallGraph([1, 2], [(1, 2, 1.0)], True)
    with pytest.raises(ConfigError, match="bfs needs the parameter 'source'"):
        run("bfs", graph)
    with pytest.raises(UnknownNameError, match="7"):
        run("bfs", graph, source=7)
    with pytest.raises(UnknownNameError, match="did you mean 'parents'"):
        run("bfs", graph, source=1, parent=True)
