import contextlib
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from graphsys.core.errors import InvalidGraphError, NotConvergedError
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
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


def acyclic(num: int, seed: int) -> SmallGraph:
    """Return edges from smaller to larger nodes only."""
    ends = np.random.default_rng(seed).integers(0, num, (3 * num, 2))
    edges = [(int(min(p)), int(max(p)), 1.0) for p in ends if p[0] != p[1]]
    return SmallGraph(list(range(num)), edges, True)


@pytest.mark.parametrize("seed", range(4))
def test_a_graph_without_cycles_has_none(seed: int) -> None:
    graph = acyclic(40, seed)
    assert nx.is_directed_acyclic_graph(graph.networkx())
    with pytest.raises(InvalidGraphError, match=r"no cycle.*take katz or pagerank"):
        run("eigenvector", graph)
    # what the error advises
    assert run("katz", graph).converged
    assert run("pagerank", graph).converged
    (a, b, _) = graph.edges[0]
    for closing in ((b, a, 1.0), (a, a, 1.0)):
        cyclic = SmallGraph(graph.ids, [*graph.edges, closing], True)
        exact = np.linalg.eigvals(adjacency(cyclic))
        assert np.abs(exact).max() > 0.5
        with contextlib.suppress(NotConvergedError):
            run("eigenvector", cyclic, require_convergence=True)


def test_a_long_path_is_no_exception_and_no_edges_are() -> None:
    path = [(n, n + 1, 1.0) for n in range(5000)]
    with pytest.raises(InvalidGraphError, match="all eigenvalues"):
        run("eigenvector", SmallGraph(list(range(5001)), path, True))
    # of no edges every vector is one; NetworkX says the same
    found = run("eigenvector", SmallGraph([0, 1, 2, 3], [], True)).to_numpy()["value"]
    assert found.tolist() == [0.5] * 4
