"""Low-diameter decompositions against a search from every node."""

import math
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError
from graphsys.kernels.cpu.hashing import random_fraction
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, run


def head_starts(graph: SmallGraph, beta: float, seed: int) -> dict[Any, float]:
    ranks = {node: rank for rank, node in enumerate(sorted(graph.ids))}
    return {
        node: math.log(1 - random_fraction(seed, rank, 0)) / beta
        for node, rank in ranks.items()
    }


def expected_centers(graph: SmallGraph, beta: float, seed: int) -> dict[Any, Any]:
    """Search from every node; the first to come wins."""
    simple, starts = graph.simple(), head_starts(graph, beta, seed)
    first: dict[Any, tuple[float, Any]] = {}
    for source in simple:
        for node, hops in nx.single_source_shortest_path_length(simple, source).items():
            arrival = starts[source]
            for _ in range(hops):
                arrival += 1
            first[node] = min(first.get(node, (math.inf, source)), (arrival, source))
    return {node: center for node, (_, center) in first.items()}


@settings(max_examples=40)
@given(graph=small_graphs(), order=st.integers(0, 2), seed=st.integers(0, 5))
def test_nodes_join_the_search_that_comes_first(
    graph: SmallGraph, order: int, seed: int
) -> None:
    result = run("clustering", graph.topology(order), beta=0.4, seed=seed, num_threads=1)
    expected = expected_centers(graph, 0.4, seed)
    assert values(result) == expected
    assert result.result == len(set(expected.values()))


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    found = stored.same("clustering", seed=2)
    assert found == expected_centers(stored.graph, 0.2, 2)


def test_planted_groups_stay_together() -> None:
    groups, size = 30, 20
    net = nx.connected_caveman_graph(groups, size)
    graph = SmallGraph(list(net), [(a, b, 1.0) for a, b in net.edges], False)
    cut, seeds = 0.0, 8
    for seed in range(seeds):
        result = run("clustering", graph, beta=0.1, seed=seed)
        center = values(result)
        cut += sum(center[a] != center[b] for a, b in net.edges) / net.number_of_edges()
        radius = max(-start for start in head_starts(graph, 0.1, seed).values())
        for core in set(center.values()):
            members = net.subgraph([node for node in net if center[node] == core])
            assert nx.is_connected(members)
            assert nx.eccentricity(members, core) <= radius
    assert cut / seeds <= 0.1  # the theorem's bound, in expectation


def test_bad_input_is_refused() -> None:
    graph = SmallGraph([1, 2], [(1, 2, 1.0)], True)
    with pytest.raises(ConfigError, match="beta must be above 0"):
        run("clustering", graph, beta=0.0)
