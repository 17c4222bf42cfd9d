"""Every listed algorithm on graphs that are easily forgotten."""

import math
from typing import Any

import pytest

from graphsys.core.errors import InvalidGraphError, UnknownNameError
from graphsys.engine import algorithms
from graphsys.engine.result import Result
from tests.unit.engine.algorithms.small_graphs import SmallGraph

FAR = 2**32
IMPLEMENTATIONS = [
    (name, kind)
    for name, listed in algorithms.ALGORITHMS.items()
    for kind in ("native", "program")
    if getattr(listed, kind)
]
NEEDS_TARGET = ("max_flow", "min_cut", "shortest_path", "k_shortest_paths")
NEEDS_SOURCE = ("bfs", "sssp", "personalized_pagerank", *NEEDS_TARGET)
OTHER_TABLES = (
    "jaccard",
    "adamic_adar",
    "resource_allocation",
    "random_walks",
    "apsp",
    "degree_assortativity",
    "max_flow",
    "shortest_path",
    "k_shortest_paths",
    "longest_path",
    "find_cycle",
    "bridges",
    "biconnected_components",
    "maximal_cliques",
    "bipartite_projection",
    "steiner_tree",
)
"""Tables that do not have one row per node."""
TWO_KINDS_OF_NODES = [("survey_propagation", "native"), ("survey_propagation", "program")]
"""What takes edges from clauses to variables only, and refuses every other graph."""
TWO_PARTS = ("bipartite_matching", "bipartite_projection")
"""What takes bipartite graphs only."""
NO_CYCLES = ("topological_order", "longest_path")
"""What takes directed graphs without a cycle only."""
NEAR = [(0, 1, 1.0), (1, 1, 0.5), (1, 2, 2.0), (1, 2, 1.0), (2, 0, 1.0), (4, 3, 0.25)]
NEAR_CLAUSES = [(0, 1, 1.0), (0, 2, -1.0), (5, 1, -1.0), (5, 3, 1.0), (4, 3, 1.0)]

everywhere = pytest.mark.parametrize(("name", "implementation"), IMPLEMENTATIONS)
both_kinds = pytest.mark.parametrize("is_directed", [True, False])


def computed(name: str, implementation: str, graph: SmallGraph, **options: Any) -> Result:
    """Run an implementation with the parameters that it cannot do without."""
    needed: dict[str, Any] = {}
    if name in NEEDS_SOURCE:
        needed["source"] = graph.ids[0] if graph.ids else 0
    if name in NEEDS_TARGET:
        needed["target"] = graph.ids[-1] if graph.ids else 1
    if name == "steiner_tree":
        needed["terminals"] = graph.ids[:1] or [0]
    if name == "label_propagation":
        needed["labels"] = {node: k % 2 for k, node in enumerate(graph.ids[:2])}
    return algorithms.get(name)(
        graph.topology(), implementation=implementation, num_threads=1, **needed, **options
    )


def rows(result: Result, shift: int = 0) -> list[tuple[Any, ...]]:
    """Return a table's rows; ids and values that are ids are brought back by ``shift``."""

    def back(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(back(item) for item in value)
        if isinstance(value, float):
            return round(value, 9)
        return value - shift if isinstance(value, int) and value >= shift else value

    columns = [column.to_pylist() for column in result.table.columns]
    return [tuple(back(value) for value in row) for row in zip(*columns, strict=True)]


def check_rows(name: str, result: Result, graph: SmallGraph) -> None:
    """Check that there is a row per node, and no number that is none."""
    if name not in OTHER_TABLES:
        assert sorted(result.table["id"].to_pylist()) == sorted(graph.ids)
    for row in rows(result):
        assert not any(isinstance(value, float) and math.isnan(value) for value in row)


@everywhere
def test_no_nodes(name: str, implementation: str) -> None:
    graph = SmallGraph(ids=[], edges=[], is_directed=True)
    if name in (*NEEDS_SOURCE, "steiner_tree"):
        with pytest.raises(UnknownNameError):
            computed(name, implementation, graph)
        return
    check_rows(name, computed(name, implementation, graph), graph)


@everywhere
def test_isolated_nodes_only(name: str, implementation: str) -> None:
    graph = SmallGraph(ids=[9, 4, 6], edges=[], is_directed=False)
    check_rows(name, computed(name, implementation, graph), graph)


@everywhere
def test_a_loop_and_nothing_else(name: str, implementation: str) -> None:
    graph = SmallGraph(ids=[8, 3], edges=[(3, 3, 1.0)], is_directed=True)
    if (name, implementation) in TWO_KINDS_OF_NODES:
        with pytest.raises(InvalidGraphError, match="clauses to variables"):
            computed(name, implementation, graph)
        return
    if name in NO_CYCLES:
        with pytest.raises(InvalidGraphError, match="this one has 3 -> 3"):
            computed(name, implementation, graph)
        return
    check_rows(name, computed(name, implementation, graph), graph)


@both_kinds
@everywhere
def test_ids_around_two_to_the_32(
    name: str, implementation: str, is_directed: bool
) -> None:
    has_clauses = (name, implementation) in TWO_KINDS_OF_NODES or name in NO_CYCLES
    has_clauses = has_clauses or name in TWO_PARTS
    near = NEAR_CLAUSES if has_clauses else NEAR
    shift = FAR - 2  # two nodes below, the others at it and above
    results = []
    for by in (0, shift):
        edges = [(a + by, b + by, w) for a, b, w in near]
        ids = [node + by for node in (0, 3, 1, 4, 2, 5)]
        graph = SmallGraph(ids=ids, edges=edges, is_directed=is_directed or has_clauses)
        result = computed(name, implementation, graph)
        check_rows(name, result, graph)
        results.append((sorted(rows(result, by), key=repr), result.result))
    assert results[1][0] == results[0][0]
    assert results[1][1] == results[0][1]
