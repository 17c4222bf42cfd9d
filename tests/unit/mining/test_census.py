"""Censuses of motifs equal counts by hand, by NetworkX, and published ones."""

from itertools import combinations
from math import comb
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import GraphMatcher

from graphsys.core.errors import ConfigError
from graphsys.mining.census.motifs import motif_counts
from graphsys.mining.census.shapes import (
    SHAPES,
    copies_within,
    edge_set,
    induced_counts,
    shapes_of,
)
from graphsys.mining.closed_forms import CLOSED_FORMS, count_closed
from tests.unit.mining.small_rows import (
    SmallRows,
    induced_by_hand,
    read_rows,
    rows_of,
    small_rows,
)

TRIANGLES = {
    "wiki-Vote/wiki-Vote.txt": 608_389,
    "ego-facebook/facebook_combined.txt.gz": 1_612_010,
    "ca-GrQc/ca-GrQc.txt": 48_260,
    "email-Eu-core/email-Eu-core.txt": 105_461,
}


@given(rows=small_rows(), size=st.sampled_from([3, 4, 5]))
def test_every_motif_is_counted_as_by_hand(rows: SmallRows, size: int) -> None:
    by_hand = induced_by_hand(rows, size)
    assert motif_counts(rows, size, num_threads=2) == by_hand
    names, within = list(by_hand), copies_within(size)
    copies = motif_counts(rows, size, induced="edge", num_threads=1)
    for name, holds in zip(names, within, strict=True):
        counts = (num * by_hand[other] for num, other in zip(holds, names, strict=True))
        assert copies[name] == sum(counts)


@given(rows=small_rows())
def test_closed_forms_count_copies(rows: SmallRows) -> None:
    for size in (3, 4, 5):
        copies = motif_counts(rows, size, induced="edge", num_threads=1)
        for name in set(CLOSED_FORMS) & set(copies):
            assert count_closed(rows, name, num_threads=2) == copies[name], name


@pytest.mark.parametrize("size", [3, 4, 5])
def test_shapes_are_all_connected_graphs_of_their_size(size: int) -> None:
    graphs = [nx.Graph(list(edge_set(text))) for text in shapes_of(size).values()]
    assert all(len(graph) == size and nx.is_connected(graph) for graph in graphs)
    assert not any(nx.is_isomorphic(a, b) for a, b in combinations(graphs, 2))
    known = nx.graph_atlas_g()
    connected = [it for it in known if len(it) == size and nx.is_connected(it)]
    assert len(graphs) == len(connected)


def test_copies_within_a_graph_are_those_that_networkx_finds() -> None:
    graphs = [nx.Graph(list(edge_set(text))) for text in SHAPES[4].values()]
    for i, small in enumerate(graphs):
        own = sum(1 for _ in GraphMatcher(small, small).isomorphisms_iter())
        for j, large in enumerate(graphs):
            maps = sum(1 for _ in GraphMatcher(large, small).subgraph_monomorphisms_iter())
            assert copies_within(4)[i][j] == maps // own


def test_induced_counts_undo_counting_copies() -> None:
    names = list(shapes_of(5))
    induced = {name: 7 * k + 1 for k, name in enumerate(names)}
    copies = {
        name: sum(num * induced[other] for num, other in zip(row, names, strict=True))
        for name, row in zip(names, copies_within(5), strict=True)
    }
    assert induced_counts(5, copies) == induced


@pytest.mark.shared
@pytest.mark.parametrize("file", TRIANGLES)
def test_real_graphs_have_the_published_triangles(shared_data: Path, file: str) -> None:
    rows = read_rows(shared_data / file)
    assert motif_counts(rows, 3)["triangle"] == TRIANGLES[file]
    assert count_closed(rows, "triangle") == TRIANGLES[file]


@pytest.mark.shared
def test_wiki_vote_has_the_counts_that_other_systems_found(shared_data: Path) -> None:
    rows = read_rows(shared_data / "wiki-Vote/wiki-Vote.txt")
    assert motif_counts(rows, 3)["3-path"] == 12_720_413
    copies = motif_counts(rows, 4, induced="edge")
    assert copies["4-clique"] == 2_077_903
    assert copies["diamond"] == 40_544_543
    assert copies["4-cycle"] == 57_654_491
    assert count_closed(rows, "house") == 9_488_779_111
    five = motif_counts(rows, 5, induced="edge")
    assert five["house"] == 9_488_779_111
    assert five["5-clique"] == 4_514_137


@pytest.mark.shared
def test_the_census_of_a_real_graph_sums_up(shared_data: Path) -> None:
    """Edges added to a motif's set of nodes, one by one, are as many as there are."""
    rows = read_rows(shared_data / "ca-GrQc/ca-GrQc.txt")
    graph = nx.Graph(rows.edges())
    assert sum(nx.triangles(graph).values()) == 3 * motif_counts(rows, 3)["triangle"]
    for size in (4, 5):
        counts = motif_counts(rows, size)
        assert min(counts.values()) >= 0
        stars = sum(comb(degree, size - 1) for _, degree in graph.degree())
        held = copies_within(size)[0]
        assert sum(a * b for a, b in zip(held, counts.values(), strict=True)) == stars


def test_counts_beyond_64_bits_are_exact() -> None:
    leaves = np.arange(1, 200_001)
    star = rows_of(np.stack([np.zeros_like(leaves), leaves], axis=1), 200_001)
    assert motif_counts(star, 5)["5-star"] == comb(200_000, 4) > 2**63


@pytest.mark.parametrize("num_nodes", [0, 1, 70])
def test_graphs_without_edges_have_no_motifs(num_nodes: int) -> None:
    rows = rows_of(np.empty((0, 2), dtype=np.int64), num_nodes)
    for size in (3, 4, 5):
        assert set(motif_counts(rows, size).values()) == {0}


def test_complete_graphs_of_many_words_of_bits() -> None:
    nodes = 131
    rows = rows_of(np.array(list(combinations(range(nodes), 2))), nodes)
    for size in (4, 5):
        counts = motif_counts(rows, size)
        assert counts.pop(f"{size}-clique") == comb(nodes, size)
        assert set(counts.values()) == {0}


def test_motifs_of_other_sizes_are_refused() -> None:
    rows = rows_of(np.array([[0, 1]]), 2)
    with pytest.raises(ConfigError, match=r"motifs of 6 nodes are not counted; .* 6-cycle"):
        motif_counts(rows, 6)
    with pytest.raises(ConfigError, match="induced='node' is neither 'vertex' nor 'edge'"):
        motif_counts(rows, 4, induced="node")
