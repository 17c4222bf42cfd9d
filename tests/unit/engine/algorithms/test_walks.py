from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.engine.algorithms.walks import random_walks
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs

FORK = SmallGraph(
    ids=["a", "b", "c", "d"],
    edges=[("a", "b", 1.0), ("b", "c", 2.0), ("b", "d", 5.0), ("a", "c", 0.5)],
    is_directed=False,
)


def walks(topology: Topology, **arguments: Any) -> list[list[Any]]:
    found: list[list[Any]] = random_walks(topology, **arguments).table["nodes"].to_pylist()
    return found


@settings(max_examples=50)
@given(graph=small_graphs(), p=st.sampled_from([0.5, 1, 300.0]), weighted=st.booleans())
def test_walks_follow_edges_until_none_leads_on(
    graph: SmallGraph, p: float, weighted: bool
) -> None:
    known = graph.networkx()
    arguments: dict[str, Any] = {"length": 6, "p": p, "q": 2.0, "weighted": weighted}
    result = random_walks(graph.topology(), walks_per_node=2, **arguments)
    starts = [node for node in sorted(graph.ids) for _ in range(2)]
    assert result.table["id"].to_pylist() == starts
    assert result.table["walk"].to_pylist() == [0, 1] * len(graph.ids)
    for start, nodes in zip(starts, result.table["nodes"].to_pylist(), strict=True):
        assert nodes[0] == start
        assert all(known.has_edge(a, b) for a, b in pairwise(nodes))
        assert len(nodes) == 7 or not list(known.neighbors(nodes[-1]))
    again = random_walks(
        graph.topology(order=4), walks_per_node=2, num_threads=3, **arguments
    )
    assert again.table.equals(result.table)


def follow(num: int, **arguments: Any) -> tuple[Counter[Any], Counter[Any]]:
    """Count the first nodes after b, and the nodes after a step from a to b."""
    found = walks(
        FORK.topology(), starts=["b", "a"], walks_per_node=num, length=2, **arguments
    )
    first = Counter(nodes[1] for nodes in found[:num])
    second = Counter(nodes[2] for nodes in found[num:] if nodes[1] == "b")
    return first, second


def assert_shares(found: Counter[Any], shares: dict[Any, float]) -> None:
    total = sum(shares.values())
    expected = [found.total() * share / total for share in shares.values()]
    assert set(found) <= set(shares)
    assert chisquare([found[node] for node in shares], expected).pvalue > 1e-4


@pytest.mark.parametrize(("p", "q"), [(1, 1), (0.25, 4), (4, 0.25), (1e4, 1e3), (1e-3, 10)])
@pytest.mark.parametrize("weighted", [False, True])
def test_steps_have_the_chances_of_node2vec(p: float, q: float, weighted: bool) -> None:
    first, second = follow(30_000, p=p, q=q, weighted=weighted, seed=9)
    weight = {"a": 1.0, "c": 2.0, "d": 5.0} if weighted else dict.fromkeys("acd", 1.0)
    assert_shares(first, weight)
    # coming from a: back to a by 1/p; c is a's neighbor; d is not
    bias = {"a": 1 / p, "c": 1.0, "d": 1 / q}
    assert_shares(second, {node: weight[node] * bias[node] for node in weight})


def test_seeds_starts_and_walks_draw_on_their_own() -> None:
    rng = np.random.default_rng(0)
    topology = Topology.from_edges(rng.integers(0, 50, 2000), rng.integers(0, 50, 2000), 50)
    ten = walks(topology, walks_per_node=10, length=20, seed=1)
    assert len({tuple(nodes) for nodes in ten}) == 500
    assert walks(topology, walks_per_node=10, length=20, seed=2) != ten
    # a start draws the same whatever else is walked
    assert walks(topology, starts=[7], walks_per_node=10, length=9, seed=1) == [
        nodes[:10] for nodes in ten[70:80]
    ]


def test_edges_of_weight_zero_are_never_taken() -> None:
    weight = np.array([0.0, 1.0, 0.0])
    topology = Topology.from_edges(
        np.array([0, 0, 1]), np.array([1, 2, 0]), 3, weight=weight
    )
    found = walks(topology, starts=[0, 1], walks_per_node=50, length=3, weighted=True)
    assert {tuple(nodes) for nodes in found} == {(0, 2), (1,)}


def test_bad_parameters_are_named() -> None:
    topology = FORK.topology()
    with pytest.raises(ConfigError, match=r"p is 0, expected a number > 0"):
        random_walks(topology, p=0)
    with pytest.raises(ConfigError, match="length is -1, expected a whole number >= 0"):
        random_walks(topology, length=-1)
    weight = np.array([-1.0])
    negative = Topology.from_edges(np.array([0]), np.array([1]), 2, weight=weight)
    with pytest.raises(InvalidGraphError, match=r"node number 0 weighs -1\.0"):
        random_walks(negative, weighted=True)
    huge = Topology.from_edges([0, 0], [1, 2], 3, weight=np.array([1e308, 1e308]))
    with pytest.raises(InvalidGraphError, match="than float64 holds; scale the weights"):
        random_walks(huge, weighted=True)
