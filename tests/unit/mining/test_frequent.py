"""Frequent patterns equal those found by looking at every set of edges."""

from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import GraphMatcher, categorical_node_match

import graphsys as gs
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.threads import ThreadTeam
from graphsys.core.types import EdgeType
from graphsys.graph.csr import Csr
from graphsys.mining import frequent_patterns
from graphsys.mining.frequent.labeled_pattern import (
    LabeledPattern,
    canonical,
    orbits_of,
)
from graphsys.mining.frequent.labeled_rows import LabeledEdges
from graphsys.mining.frequent.search import _PatternGrowth
from tests.stores import edge_chunk, make_store

SAME = categorical_node_match("label", 0)


def rows_of(labels: list[int], edges: list[tuple[int, int, int]]) -> LabeledEdges:
    both = sorted(set(edges) | {(b, a, label) for a, b, label in edges})
    owners = [a for a, _, _ in both]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(labels)))])
    return LabeledEdges(
        rows=Csr(
            indptr=indptr.astype(np.int64),
            indices=np.array([b for _, b, _ in both], dtype=np.uint32),
            relation=np.array([label for _, _, label in both], dtype=np.int64),
        ),
        node_labels=np.array(labels, dtype=np.int64),
        node_names=["A", "B"],
        edge_names=["x", "y"],
    )


def by_hand(
    labels: list[int], edges: list[tuple[int, int, int]], support: int, most: int
) -> dict[LabeledPattern, int]:
    """Map every pattern onto every connected set of edges in all ways."""
    images: dict[LabeledPattern, dict[int, set[int]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for num in range(1, most + 1):
        for chosen in combinations(edges, num):
            pairs = [(a, b) for a, b, _ in chosen]
            graph = nx.Graph(pairs)
            if len(set(pairs)) < num or not nx.is_connected(graph):
                continue
            places = {node: k for k, node in enumerate(graph)}
            pattern = canonical(
                LabeledPattern(
                    tuple(labels[node] for node in graph),
                    tuple(
                        sorted(
                            (*sorted((places[a], places[b])), label)  # type: ignore[misc]
                            for a, b, label in chosen
                        )
                    ),
                )
            )
            nx.set_node_attributes(graph, {node: labels[node] for node in graph}, "label")
            for a, b, label in chosen:
                graph.edges[a, b]["kind"] = label
            small = nx.Graph()
            small.add_nodes_from((k, {"label": it}) for k, it in enumerate(pattern.nodes))
            small.add_edges_from((a, b, {"kind": it}) for a, b, it in pattern.edges)
            matcher = GraphMatcher(
                graph, small, node_match=SAME, edge_match=lambda one, two: one == two
            )
            for match in matcher.isomorphisms_iter():
                for node, place in match.items():
                    images[pattern][place].add(node)
    supports = {it: min(map(len, nodes.values())) for it, nodes in images.items()}
    return {pattern: num for pattern, num in supports.items() if num >= support}


@st.composite
def labeled_graphs(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int, int]]]:
    num_nodes = draw(st.integers(2, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    pairs = list(combinations(range(num_nodes), 2))
    num_labels, num_kinds = draw(st.sampled_from([(1, 1), (2, 1), (2, 2)]))
    edges = [
        (a, b, kind)
        for a, b in pairs
        for kind in range(num_kinds)
        if rng.random() < 0.55 / num_kinds
    ]
    return rng.integers(0, num_labels, num_nodes).tolist(), edges


@given(drawn=labeled_graphs(), support=st.integers(1, 3), threads=st.sampled_from([1, 3]))
def test_patterns_and_supports_are_those_found_by_hand(
    drawn: tuple[list[int], list[tuple[int, int, int]]], support: int, threads: int
) -> None:
    labels, edges = drawn
    with ThreadTeam(threads) as team:
        found = _PatternGrowth(rows_of(labels, edges), support, 4, team).run()
    assert found == by_hand(labels, edges, support, 4)


def test_equal_patterns_have_one_name() -> None:
    one = LabeledPattern((0, 1, 0), ((0, 1, 0), (1, 2, 1)))
    other = LabeledPattern((1, 0, 0), ((0, 1, 1), (0, 2, 0)))
    assert canonical(one) == canonical(other)
    assert canonical(LabeledPattern((0, 1, 0), ((0, 1, 0), (0, 2, 1)))) != canonical(one)
    star = LabeledPattern((0, 1, 1, 0), ((0, 1, 0), (0, 2, 0), (0, 3, 0)))
    assert orbits_of(star) == [0, 1, 1, 3]


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    """Three users, each likes an own item; the first two know each other, twice."""
    likes, knows = EdgeType("user", "likes", "item"), EdgeType("user", "knows", "user")
    pairs = [("u1", "i1"), ("u2", "i2"), ("u3", "i3")]
    make_store(
        tmp_path / "g",
        edge_chunk(pairs, likes),
        edge_chunk([("u1", "u2"), ("u2", "u1"), ("u2", "u3"), ("u3", "u3")], knows),
        partitions=2,
    )
    return tmp_path / "g"


def told(graph: Any, support: int, **options: Any) -> list[tuple[str, int]]:
    found = frequent_patterns(graph, support, **options)
    return [(it.pattern, it.support) for it in found]


def test_types_of_nodes_and_edges_are_labels(papers: Path) -> None:
    assert told(papers, 3, max_edges=1) == [
        ("a:item-b:user", 3),
        ("a:user-b:user", 3),
    ]
    assert told(papers, 3, max_edges=1, edge_labels=True) == [
        ("a:item-[likes]-b:user", 3),
        ("a:user-[knows]-b:user", 3),
    ]
    assert told(papers, 4) == []
    assert told(papers, 2)[2:] == [
        ("a:item-b:user b-c:user", 3),
        ("a:item-c:user b:item-d:user c-d", 3),
    ]
    assert len(told(papers, 1)) > len(told(papers, 2))


def test_a_column_of_nodes_is_their_label(tmp_path: Path) -> None:
    nodes = pa.table({"id": [0, 1, 2, 3], "color": ["r", "g", "r", None]})
    edges = pa.table({"src": [0, 1, 2], "dst": [1, 2, 3]})
    kind = ("node", "edge", "node")
    gs.ingest(out=tmp_path / "g", nodes={"node": nodes}, edges={kind: edges})
    assert told(tmp_path / "g", 1, labels="color") == [
        ("a:g-b:r", 1),
        ("a:g-b:r a-c:r", 1),
    ]
    with pytest.raises(
        UnknownNameError, match=r"unknown column of nodes 'colour'; .*color"
    ):
        frequent_patterns(tmp_path / "g", 1, labels="colour")


def test_numbers_out_of_range_are_refused(papers: Path) -> None:
    with pytest.raises(ConfigError, match="support=0: expected 1 or more nodes"):
        frequent_patterns(papers, 0)
    with pytest.raises(ConfigError, match="max_edges=5: patterns of 1 to 4 edges"):
        frequent_patterns(papers, 1, max_edges=5)
