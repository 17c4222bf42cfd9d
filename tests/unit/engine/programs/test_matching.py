"""Matchings: valid, maximal, and at least half of NetworkX's maximum."""

import math
from typing import Any

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, run


def heaviest(graph: SmallGraph) -> Any:
    """Return the simple graph with the heaviest of repeated edges."""
    simple = graph.simple()
    for a, b, weight in graph.edges:
        if a != b:
            simple[a][b]["weight"] = max(weight, simple[a][b].get("weight", -math.inf))
    return simple


def check(graph: SmallGraph, mate: dict[Any, Any]) -> None:
    simple = heaviest(graph)
    pairs = {frozenset(pair) for pair in mate.items() if pair[1] is not None}
    assert all(mate[mate[node]] == node for node in mate if mate[node] is not None)
    assert nx.is_maximal_matching(simple, {tuple(pair) for pair in pairs})
    most = nx.max_weight_matching(simple, maxcardinality=True)
    assert 2 * len(pairs) >= len(most)
    best = sum(simple[a][b]["weight"] for a, b in nx.max_weight_matching(simple))
    assert 2 * sum(simple[a][b]["weight"] for a, b in pairs) >= best


@settings(max_examples=40)
@given(graph=small_graphs(), order=st.integers(0, 2), seed=st.integers(0, 3))
def test_matchings_are_maximal_and_good(graph: SmallGraph, order: int, seed: int) -> None:
    result = run("matching", graph.topology(order), seed=seed, num_threads=1)
    mate = values(result)
    check(graph, mate)
    assert result.result == sum(other is not None for other in mate.values()) // 2
    assert result.converged


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    check(stored.graph, stored.same("matching", seed=5))


def test_the_heaviest_edge_is_always_taken() -> None:
    edges = [(k, k + 1, float(k)) for k in range(9)]
    assert values(run("matching", SmallGraph(list(range(10)), edges, True))) == {
        k: k ^ 1 for k in range(10)
    }


def test_equal_weights_do_not_wait_for_one_another() -> None:
    num = 500
    ring = SmallGraph(list(range(num)), [(k, (k + 1) % num, 1.0) for k in range(num)], True)
    found = {seed: run("matching", ring, seed=seed) for seed in (1, 2)}
    assert all(result.supersteps < 40 for result in found.values())
    assert values(found[1]) != values(found[2])
