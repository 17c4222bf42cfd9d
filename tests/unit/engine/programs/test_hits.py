import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings

from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.matrices import adjacency
from tests.unit.engine.programs.runs import Stored, random_graph, run

Vector = npt.NDArray[np.float64]


def oracle(matrix: Vector) -> tuple[Vector, Vector]:
    """Where the iteration from equal scores goes: a projection on the first eigenspace."""
    eigenvalues, vectors = np.linalg.eigh(matrix @ matrix.T)
    top = eigenvalues[-1]
    near = eigenvalues[(eigenvalues < top * (1 - 1e-9))]
    assume(not len(near) or near[-1] < 0.9 * top)  # or it takes for ever
    first = vectors[:, eigenvalues >= top * (1 - 1e-9)]
    # the first hubs are A A' 1
    hub = np.abs(first @ (first.T @ np.ones(len(matrix))))
    authority = matrix.T @ hub
    return hub / hub.sum(), authority / authority.sum()


@settings(max_examples=40)
@given(small_graphs())
def test_scores_are_those_of_linear_algebra(graph: SmallGraph) -> None:
    if not graph.edges:
        result = run("hits", graph)
        assert set(values(result, "hub").values()) <= {0.0}
        return
    hub, authority = oracle(adjacency(graph))
    result = run("hits", graph, tolerance=1e-13)
    assert result.converged
    columns = result.to_numpy()
    np.testing.assert_allclose(columns["hub"], hub, atol=1e-9)
    np.testing.assert_allclose(columns["authority"], authority, atol=1e-9)


def test_layouts_and_threads_change_roundings_only(stored: Stored) -> None:
    stored.alike("hits", "hub", iterations=30)
    stored.alike("hits", "authority", iterations=30)


def test_scores_are_those_of_networkx() -> None:
    once = {(a, b) for a, b, _ in random_graph(is_directed=True, is_text=False).edges}
    ids = sorted({node for pair in once for node in pair})
    hubs, authorities = nx.hits(nx.DiGraph(once), tol=1e-12)
    graph = SmallGraph(ids, [(a, b, 2.0) for a, b in once], is_directed=True)
    result = run("hits", graph, tolerance=1e-13)
    assert values(result, "hub") == pytest.approx(hubs, abs=1e-8)
    assert values(result, "authority") == pytest.approx(authorities, abs=1e-8)


def test_iterations_are_run_exactly() -> None:
    graph = SmallGraph([0, 1, 2], [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 1.0)], True)
    assert run("hits", graph, iterations=9).supersteps == 18
