"""Patterns are counted alike in every way, whatever their spelling; NetworkX agrees."""

from itertools import permutations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import GraphMatcher

from graphsys.core.errors import ConfigError
from graphsys.mining import Pattern, SimpleGraph, count, plan_count
from graphsys.mining.census.shapes import SHAPES

NAMES = [name for shapes in SHAPES.values() for name in shapes]
LARGE = ["6-cycle", "6-path", "6-clique", "6-star", "a-b b-c c-a a-d d-e e-f f-a", "7-star"]


def drawn_graph(seed: int, num_nodes: int, share: float) -> nx.Graph:
    return nx.gnp_random_graph(num_nodes, share, seed=seed)


def as_rows(graph: nx.Graph) -> SimpleGraph:
    loops = [(node, node) for node in graph]  # which are left aside
    edges = np.array([*graph.edges, *loops], dtype=np.int64)
    return SimpleGraph.of((edges[:, 0], edges[:, 1]))


def by_networkx(graph: nx.Graph, pattern: Pattern, induced: str) -> int:
    matcher = GraphMatcher(graph, nx.Graph(list(pattern.edges)))
    maps = (
        matcher.subgraph_isomorphisms_iter()
        if induced == "vertex"
        else matcher.subgraph_monomorphisms_iter()
    )
    return sum(1 for _ in maps) // pattern.num_automorphisms()


@given(
    seed=st.integers(0, 1000),
    num_nodes=st.integers(2, 8),
    share=st.sampled_from([0.3, 0.6, 0.9]),
    text=st.sampled_from([*NAMES, *LARGE, "2-clique"]),
    induced=st.sampled_from(["edge", "vertex"]),
)
def test_counts_are_those_of_networkx(
    seed: int, num_nodes: int, share: float, text: str, induced: str
) -> None:
    graph, pattern = drawn_graph(seed, num_nodes, share), Pattern.of(text)
    rows = as_rows(graph)
    expected = by_networkx(graph, pattern, induced)
    assert count(rows, pattern, induced=induced) == expected
    assert count(rows, pattern, induced=induced, way="matches", num_threads=2) == expected


@pytest.mark.parametrize("text", ["diamond", "house", "bull", "4-cycle", "6-cycle"])
def test_a_count_does_not_depend_on_the_spelling(text: str) -> None:
    rows, pattern = as_rows(drawn_graph(5, 30, 0.3)), Pattern.of(text)
    orders = list(permutations(range(pattern.num_nodes)))[:: 1 + pattern.num_nodes]
    for induced in ("edge", "vertex"):
        counts = set()
        for order in orders:
            spelled = " ".join(f"n{order[a]}-n{order[b]}" for a, b in pattern.edges)
            for way in (None, "matches"):
                counts.add(count(rows, spelled, induced=induced, way=way))
        assert len(counts) == 1


@pytest.mark.shared
def test_matches_of_a_real_graph_are_as_published(shared_data: Path) -> None:
    edges = np.loadtxt(shared_data / "wiki-Vote/wiki-Vote.txt", dtype=np.int64)
    rows = SimpleGraph.of((edges[:, 0], edges[:, 1]))
    assert count(rows, "triangle", way="matches") == 608_389
    assert count(rows, "4-clique", way="matches") == 2_077_903
    assert count(rows, "diamond", way="matches") == 40_544_543


def test_the_plan_says_how_it_counts() -> None:
    assert plan_count("diamond").lines() == [
        "diamond: from few sums over the graph, without its matches"
    ]
    assert plan_count("a-b b-c c-d d-a a-c", induced="vertex").lines() == [
        "diamond: by the census of all motifs of 4 nodes"
    ]
    assert plan_count("4-cycle", induced="vertex", way="matches").lines() == [
        "match by match, the last node counted:",
        "1. node 0",
        "2. node 1; neighbor of 0; numbered above 0",
        "3. node 2; neighbor of 1; not of 0; numbered above 0",
        "4. node 3; neighbor of 0, 2; not of 1; numbered above 0, 1",
    ]
    assert plan_count("6-cycle").way == "matches"


def test_what_is_not_counted_so_is_refused() -> None:
    with pytest.raises(ConfigError, match="way='census': this pattern is counted by match"):
        plan_count("6-cycle", way="census")
    with pytest.raises(ConfigError, match="induced='node' is neither 'vertex' nor 'edge'"):
        plan_count("triangle", induced="node")
