"""Patterns in several parts: against all ways to choose their nodes."""

from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.mining import SimpleGraph, count, count_all, explain_all, matches
from graphsys.mining.pattern import Pattern

EDGES = [(a, b) for a, b in np.random.default_rng(1).integers(0, 8, (16, 2)).tolist()]
GRAPH = nx.Graph([(a, b) for a, b in EDGES if a != b])


@pytest.fixture(scope="module")
def rows() -> SimpleGraph:
    return SimpleGraph.of(GRAPH)


def by_hand(pattern: Pattern, induced: str) -> int:
    """Try all ways to choose the pattern's nodes."""
    pairs = list(combinations(range(pattern.num_nodes), 2))
    found = 0
    for nodes in permutations(GRAPH, pattern.num_nodes):
        has = {pair for pair in pairs if GRAPH.has_edge(nodes[pair[0]], nodes[pair[1]])}
        found += has == pattern.edges if induced == "vertex" else has >= pattern.edges
    return found // pattern.num_automorphisms()


@pytest.mark.parametrize("induced", ["edge", "vertex"])
@pytest.mark.parametrize(
    "text", ["a-b c-d", "c-d a-b b-e", "a-b b-c c-a d-e", "a-b c-d e-f", "a-b b-c d-e e-f"]
)
def test_counts_are_those_of_all_ways_to_choose_nodes(
    rows: SimpleGraph, text: str, induced: str
) -> None:
    pattern = Pattern.of(text, disconnected=True)
    if induced == "vertex" and pattern.num_nodes > 5:
        with pytest.raises(ConfigError, match="of 6 nodes is counted edge-induced; vertex"):
            count(rows, text, induced=induced, disconnected=True)
        return
    found = count(rows, text, induced=induced, disconnected=True)
    assert found == by_hand(pattern, induced)


@pytest.mark.parametrize("induced", ["edge", "vertex"])
def test_a_node_alone_may_be_any_other(rows: SimpleGraph, induced: str) -> None:
    pattern = nx.Graph([(0, 1)])
    pattern.add_node(2)
    found = count(rows, pattern, induced=induced, disconnected=True)
    assert found == by_hand(Pattern.of(pattern, disconnected=True), induced)


def test_those_in_one_part_are_counted_beside_them(rows: SimpleGraph) -> None:
    found = count_all(rows, ["bull", "a-b c-d", "triangle"], disconnected=True)
    assert found == {
        "bull": count(rows, "bull"),
        "a-b c-d": count(rows, "a-b c-d", disconnected=True),
        "triangle": count(rows, "triangle"),
    }
    assert list(found) == ["bull", "a-b c-d", "triangle"]


def test_large_counts_are_exact() -> None:
    leaves = np.arange(1, 100_001)  # two stars
    src = np.concatenate([np.zeros_like(leaves), np.full_like(leaves, 200_000)])
    graph = SimpleGraph.of((src, np.concatenate([leaves, leaves + 200_000])))
    pairs = 100_000 * 99_999 // 2
    expected = pairs**2  # more than 64 bits hold; the middles of both paths are the stars'
    assert count(graph, "a-b b-c d-e e-f", disconnected=True) == expected


def test_they_are_refused_unless_asked_for(rows: SimpleGraph) -> None:
    two = Pattern.of("a-b c-d", disconnected=True)
    for pattern in ("a-b c-d", two, nx.Graph([("a", "b"), ("c", "d")])):
        with pytest.raises(
            ConfigError, match=r"no path of its edges leads to (c, d|2, 3);"
        ):
            count(rows, pattern)
    with pytest.raises(ConfigError, match=r"or ask for it: --disconnected \(disconn"):
        list(matches(rows, two))


def test_labels_in_several_parts_are_refused(rows: SimpleGraph) -> None:
    with pytest.raises(ConfigError, match="counted without labels, arrows and anti-edges"):
        count(rows, "a>b c-d", disconnected=True)


def test_what_they_follow_from_is_explained(rows: SimpleGraph) -> None:
    [lines], [code] = explain_all(rows, ["a-b c-d"], disconnected=True)
    assert "from the counts of 2 connected patterns:" in lines[0]
    assert (lines[1:], code) == (["3-path", "a-b"], "")
