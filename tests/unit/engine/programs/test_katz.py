import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from graphsys.core.errors import NotConvergedError
from tests.unit.engine.native.small_graphs import SmallGraph, small_graphs
from tests.unit.engine.programs.matrices import adjacency
from tests.unit.engine.programs.runs import Stored, run


@settings(max_examples=30)
@given(small_graphs())
def test_scores_solve_the_linear_system(graph: SmallGraph) -> None:
    if not graph.ids:
        assert len(run("katz", graph)) == 0
        return
    matrix = adjacency(graph)
    alpha = 0.6 / max(1.0, float(np.abs(np.linalg.eigvals(matrix)).max()))
    exact = np.linalg.solve(
        np.eye(len(matrix)) - alpha * matrix.T, 0.7 * np.ones(len(matrix))
    )
    options = {"alpha": alpha, "beta": 0.7, "tolerance": 1e-13}
    plain = run("katz", graph, normalized=False, **options)
    np.testing.assert_allclose(plain.to_numpy()["value"], exact, rtol=1e-9)
    scaled = run("katz", graph, **options).to_numpy()["value"]
    np.testing.assert_allclose(scaled, exact / np.linalg.norm(exact), rtol=1e-9)


def test_layouts_and_threads_change_roundings_only(stored: Stored) -> None:
    scores = stored.alike("katz", alpha=0.03, tolerance=1e-13)
    flat = nx.DiGraph(stored.graph.networkx().to_directed())
    nx.set_edge_attributes(flat, 0, "count")
    for a, b, _ in stored.graph.edges:
        flat[a][b]["count"] += 1
        if not stored.graph.is_directed and a != b:
            flat[b][a]["count"] += 1
    expected = nx.katz_centrality(flat, alpha=0.03, tol=1e-13, weight="count")
    assert scores == pytest.approx(expected, rel=1e-9)


def test_growth_without_bound_is_refused() -> None:
    graph = SmallGraph([0, 1], [(0, 1, 1.0), (1, 0, 1.0)], True)
    with pytest.raises(NotConvergedError, match="grows without bound at alpha = 5"):
        run("katz", graph, alpha=5.0)
