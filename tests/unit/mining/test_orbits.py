"""Orbit counts equal counts by hand, and add up to the census."""

from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from graphsys.core.errors import InvalidGraphError
from graphsys.mining.census import orbits as module
from graphsys.mining.census.motifs import motif_counts
from graphsys.mining.census.orbits import edge_orbits, node_orbits
from graphsys.mining.census.rooted import EDGE_ORBITS, NODE_ORBITS, Orbit, size_of
from graphsys.mining.census.shapes import SHAPES, edge_set, mask_of
from tests.unit.mining.small_rows import SmallRows, read_rows, rows_of, small_rows


def roots_by_hand(
    rows: SmallRows, orbits: dict[str, Orbit]
) -> dict[str, dict[frozenset[int], int]]:
    """Look at every set of nodes, and count what stands where in the graph it induces."""
    edges = set(rows.edges())
    found: dict[str, dict[frozenset[int], int]] = {name: {} for name in orbits}
    for size in (3, 4):
        named = {
            (mask_of(edge_set(SHAPES[size][orbit.shape]), order), frozenset(roots)): name
            for name, orbit in orbits.items()
            if size_of(orbit) == size
            for order in permutations(range(size))
            for roots in [tuple(order[root] for root in orbit.roots)]
        }
        places = list(combinations(range(size), 2))
        num_roots = len(next(iter(orbits.values())).roots)
        for nodes in combinations(range(rows.num_nodes), size):
            bits = (
                1 << k for k, (a, b) in enumerate(places) if (nodes[a], nodes[b]) in edges
            )
            mask = sum(bits)
            for roots in combinations(range(size), num_roots):
                name = named.get((mask, frozenset(roots)))
                if name:
                    key = frozenset(nodes[root] for root in roots)
                    found[name][key] = found[name].get(key, 0) + 1
    return found


@given(rows=small_rows(8))
def test_orbits_of_nodes_are_counted_as_by_hand(rows: SmallRows) -> None:
    counts = node_orbits(rows, num_threads=2)
    assert list(counts) == [f"orbit_{k}" for k in range(15)]
    assert counts["orbit_0"].tolist() == np.diff(rows.indptr).tolist()
    for name, by_hand in roots_by_hand(rows, NODE_ORBITS).items():
        expected = [by_hand.get(frozenset([v]), 0) for v in range(rows.num_nodes)]
        assert counts[name].tolist() == expected, name


@given(rows=small_rows(8))
def test_orbits_of_edges_are_counted_as_by_hand(rows: SmallRows) -> None:
    src, dst, counts = edge_orbits(rows, num_threads=2)
    edges = list(zip(src.tolist(), dst.tolist(), strict=True))
    assert edges == rows.edges()
    assert list(counts) == list(EDGE_ORBITS)
    for name, by_hand in roots_by_hand(rows, EDGE_ORBITS).items():
        assert counts[name].tolist() == [by_hand.get(frozenset(e), 0) for e in edges], name


@pytest.mark.shared
def test_orbits_of_a_real_graph_add_up_to_its_census(shared_data: Path) -> None:
    rows = read_rows(shared_data / "wiki-Vote/wiki-Vote.txt")
    census = motif_counts(rows, 4) | motif_counts(rows, 3)
    nodes, (_, _, edges) = node_orbits(rows), edge_orbits(rows)
    for shape, total in census.items():
        size = size_of(Orbit(shape, (0,)))
        of_nodes = [nodes[name] for name, it in NODE_ORBITS.items() if it.shape == shape]
        assert sum(int(it.sum()) for it in of_nodes) == size * total
        of_edges = [edges[name] for name, it in EDGE_ORBITS.items() if it.shape == shape]
        num_edges = len(edge_set(SHAPES[size][shape]))
        assert sum(int(it.sum()) for it in of_edges) == num_edges * total


def test_threads_change_nothing(rng: np.random.Generator) -> None:
    rows = rows_of(rng.integers(0, 60, (700, 2)), 60)
    alone, many = (node_orbits(rows, num_threads=num) for num in (1, 5))
    for name, values in alone.items():
        assert (many[name] == values).all()


def test_counts_that_may_exceed_64_bits_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST_NEIGHBORS", 2)
    rows = rows_of(np.array([[0, 1], [0, 2], [0, 3]]), 4)
    with pytest.raises(
        InvalidGraphError, match=r"a node has 3 neighbors, .* exceed 64 bits; up to 2 are"
    ):
        node_orbits(rows)
