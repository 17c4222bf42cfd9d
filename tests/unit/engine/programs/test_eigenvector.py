from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from tests.unit.engine.native.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.matrices import adjacency
from tests.unit.engine.programs.runs import Stored, run


def ringed(graph: SmallGraph) -> SmallGraph:
    """Join all nodes by a ring, so that the eigenvector is unique (Perron, Frobenius)."""
    ring = [(a, b, 1.0) for a, b in pairwise([*graph.ids, graph.ids[0]])]
    return SmallGraph(graph.ids, graph.edges + ring, graph.is_directed)


@settings(max_examples=30)
@given(small_graphs())
def test_scores_are_the_first_eigenvector(graph: SmallGraph) -> None:
    if not graph.ids:
        assert len(run("eigenvector", graph)) == 0
        return
    graph = ringed(graph)
    eigenvalues, vectors = np.linalg.eig(adjacency(graph).T)
    first = np.abs(np.real(vectors[:, np.argmax(np.real(eigenvalues))]))
    result = run("eigenvector", graph, tolerance=1e-13)
    assert result.converged
    found = result.to_numpy()["value"]
    np.testing.assert_allclose(found, first / np.linalg.norm(first), atol=1e-8)


def test_layouts_and_threads_change_roundings_only(stored: Stored) -> None:
    stored.alike("eigenvector", tolerance=1e-9)


def test_scores_are_those_of_networkx() -> None:
    graph = nx.karate_club_graph()
    edges = [(a, b, 1.0) for a, b in graph.edges]
    result = run("eigenvector", SmallGraph(list(graph), edges, False), tolerance=1e-11)
    expected = nx.eigenvector_centrality(graph, tol=1e-11, max_iter=1000, weight=None)
    assert values(result) == pytest.approx(expected, abs=1e-8)
