"""Minimum spanning forests against SciPy and NetworkX."""

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from graphsys.core.errors import InvalidGraphError
from graphsys.engine.programs.mst import SpanningForest
from graphsys.engine.run import run as engine_run
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs
from tests.unit.engine.programs.runs import Stored, run

Edges = list[tuple[Any, Any, float]]


def forest_of(result: Any) -> Edges:
    """Return the rows that are edges, in an order of their own."""
    columns = (result.table[name].to_pylist() for name in ("source", "target", "weight"))
    rows = zip(*columns, strict=True)
    return sorted((row for row in rows if row[2] is not None), key=repr)


def expected_forest(graph: SmallGraph) -> Edges:
    """Kruskal's forest with ties broken by ids, on what has neither direction nor loops."""
    plain = nx.utils.UnionFind(graph.ids)
    ordered = sorted((w, *sorted((a, b))) for a, b, w in graph.edges)
    found = []
    for weight, low, high in ordered:
        if plain[low] != plain[high]:
            plain.union(low, high)
            found.append((low, high, weight))
    return sorted(found, key=repr)


@settings(max_examples=40)
@given(graph=small_graphs(), order=st.integers(0, 2))
def test_the_forest_is_the_only_one_with_ties_by_ids(graph: SmallGraph, order: int) -> None:
    result = run("mst", graph.topology(order), num_threads=1)
    forest = forest_of(result)
    assert forest == expected_forest(graph)
    assert result.result == pytest.approx(math.fsum(w for _, _, w in forest))
    assert result.converged
    undirected = nx.MultiGraph()
    undirected.add_nodes_from(graph.ids)
    undirected.add_weighted_edges_from(graph.edges)
    peer = nx.minimum_spanning_edges(undirected, keys=False)
    assert result.result == pytest.approx(math.fsum(d["weight"] for _, _, d in peer))


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    graph = stored.graph
    number = {node: k for k, node in enumerate(graph.ids)}
    least: dict[tuple[int, int], float] = {}
    for a, b, weight in graph.edges:
        low, high = sorted((number[a], number[b]))
        if low != high:  # SciPy adds repetitions up
            least[low, high] = min(weight, least.get((low, high), math.inf))
    ends = np.array(list(least), dtype=np.int64).T
    matrix = coo_array((list(least.values()), tuple(ends)), shape=2 * (len(graph.ids),))
    expected = minimum_spanning_tree(matrix.tocsr()).sum()
    first, *others = stored.runs("mst")
    assert first.result == pytest.approx(expected)
    assert forest_of(first) == expected_forest(graph)
    for other in others:
        assert forest_of(other) == forest_of(first)
        assert other.result == first.result


def test_a_long_path_keeps_all_of_its_edges() -> None:
    num = 300
    weights = np.random.default_rng(2).permutation(num).tolist()
    edges = [(k, k + 1, float(weights[k])) for k in range(num - 1)]
    path = SmallGraph(list(range(num)), edges, False)
    assert forest_of(run("mst", path)) == sorted(edges, key=repr)


def test_negative_weights_are_lightest() -> None:
    edges = [("a", "b", -2.0), ("b", "c", 0.0), ("c", "a", -1.0)]
    result = run("mst", SmallGraph(["a", "b", "c"], edges, True))
    assert forest_of(result) == [("a", "b", -2.0), ("a", "c", -1.0)]
    assert result.result == -3.0


def test_weights_that_add_up_to_more_than_float64_holds() -> None:
    source, target = np.array([0, 1, 2]), np.array([1, 2, 3])
    for weights in ([1e308] * 3, [-1e308] * 3):
        topology = Topology.from_edges(source, target, 4, weight=np.array(weights))
        with pytest.raises(InvalidGraphError, match="add up to more than float64 holds"):
            engine_run(SpanningForest(), topology)
    mixed = np.array([1e308, 1e308, -1.5e308])
    topology = Topology.from_edges(source, target, 4, weight=mixed)
    assert engine_run(SpanningForest(), topology).result == pytest.approx(0.5e308)
