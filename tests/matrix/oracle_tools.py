"""What oracles have in common: where they are listed, and how answers are compared."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import networkx as nx
import pytest

from graphsys.engine.result import Result
from tests.matrix.graphs import acyclic, forest, formula, mixed, two_parts
from tests.unit.engine.algorithms.small_graphs import SmallGraph

Oracle = Callable[[SmallGraph, Result, Mapping[str, Any]], None]
ORACLES: Final[dict[str, Oracle]] = {}
GRAPHS: Final[dict[str, Callable[..., SmallGraph]]] = defaultdict(
    lambda: mixed,
    belief_propagation=forest,
    bipartite_matching=two_parts,
    bipartite_projection=two_parts,
    longest_path=acyclic,
    survey_propagation=formula,
    topological_order=acyclic,
)
"""Which graph an algorithm is tried on."""
NOTHING: Final[Mapping[str, Any]] = {}
BY_WORKERS = "by workers"
"""The name of results that workers of a test gave."""
LABELED = 3
"""Of the graph for label propagation every so-manyth node has a label."""
SETTINGS: Final[dict[str, Callable[[SmallGraph], dict[str, Any]]]] = {
    "pagerank": lambda graph: {"tolerance": 1e-14},
    "personalized_pagerank": lambda graph: {"tolerance": 1e-14},
    "hits": lambda graph: {"tolerance": 1e-13},
    "katz": lambda graph: {"alpha": 0.01, "tolerance": 1e-14},
    "eigenvector": lambda graph: {"tolerance": 1e-14},
    "cdlp": lambda graph: {"iterations": 5},
    "label_propagation": lambda graph: {
        "labels": {node: k % 4 for k, node in enumerate(graph.ids[::LABELED])},
        "iterations": 4,
    },
    "random_walks": lambda graph: {"length": 6},
    "betweenness": lambda graph: {"normalized": False},
}
"""Parameters beside those of the algorithm's example."""


def oracle(function: Oracle) -> Oracle:
    """Register an oracle by the name of its function, which is the algorithm's."""
    ORACLES[function.__name__] = function
    return function


def same(found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> None:
    """Require equal values by id; floats within 1e-9 of each other, null what is absent."""
    found = {key: value for key, value in found.items() if value is not None}
    assert found == pytest.approx(dict(expected), rel=1e-9, abs=1e-12)


def answers(done: Result, expected: Any) -> None:
    """Require the one number; workers of a test give the table alone."""
    if done.algorithm != BY_WORKERS:
        assert done.result == pytest.approx(expected, rel=1e-9)


def edges_of(graph: SmallGraph, given: Mapping[str, Any]) -> list[tuple[Any, Any, float]]:
    """Return edges with what they count: their weight, the largest being 1, or 1 each.

    Edges of weight 0 are left out where weights count.
    """
    if not given.get("weighted"):
        return [(a, b, 1.0) for a, b, _ in graph.edges]
    largest = max(w for _, _, w in graph.edges)
    return [(a, b, w / largest) for a, b, w in graph.edges if w > 0]


def weighted(graph: SmallGraph, given: Mapping[str, Any]) -> Any:
    """Return the graph with repeated edges added up; an undirected loop counts once."""
    found = nx.DiGraph()
    found.add_nodes_from(graph.ids)
    for a, b, w in edges_of(graph, given):
        for u, v in {(a, b)} if graph.is_directed else {(a, b), (b, a)}:
            total = found.get_edge_data(u, v, {"weight": 0.0})["weight"]
            found.add_edge(u, v, weight=total + w)
    return found


def both_ways(graph: SmallGraph, given: Mapping[str, Any] = NOTHING) -> Any:
    """Return the graph without direction, repetitions included."""
    found = nx.MultiGraph()
    found.add_nodes_from(graph.ids)
    found.add_weighted_edges_from(edges_of(graph, given))
    return found


def matrix_of(graph: SmallGraph, given: Mapping[str, Any] = NOTHING) -> Any:
    weight = "weight" if given.get("weighted") else None
    return nx.to_numpy_array(graph.networkx(), nodelist=graph.ids, weight=weight)
