import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from graphsys.core.errors import ConfigError, NotConvergedError
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs
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


def star() -> SmallGraph:
    """K1,4, whose largest eigenvalue is 2."""
    return SmallGraph([0, 1, 2, 3, 4], [(0, n, 1.0) for n in (1, 2, 3, 4)], False)


def test_scores_just_below_the_bound_have_converged() -> None:
    done = run("katz", star(), alpha=0.499, normalized=False)
    hub, *leaves = done.to_numpy()["value"].tolist()
    assert done.converged
    assert hub == pytest.approx(749.74975, abs=1e-5)
    assert leaves == pytest.approx([375.12513] * 4, abs=1e-5)


@pytest.mark.parametrize("alpha", [0.5, 0.6, -0.5, 5.0, 1e250])
def test_an_alpha_that_is_not_below_the_bound_is_refused(alpha: float) -> None:
    with pytest.raises(NotConvergedError, match="take alpha=") as told:
        run("katz", star(), alpha=alpha)
    advised = float(re.findall(r"take alpha=(-?[\d.]+)", str(told.value))[0])
    assert run("katz", star(), alpha=advised).converged


def test_a_bound_that_few_nodes_break_is_seen_in_a_large_graph() -> None:
    # a triangle with loops grows by 1.2 a step, too little to move the sum of all others
    ids = list(range(5000))
    edges = [(a, b, 1.0) for a in range(3) for b in range(3)]
    with pytest.raises(NotConvergedError, match=r"does not settle|without bound"):
        run("katz", SmallGraph(ids, edges, True), alpha=0.4, tolerance=1e-3)


def test_an_alpha_very_close_to_the_bound_converges_as_the_error_advises() -> None:
    with pytest.raises(NotConvergedError, match="does not settle") as told:
        run("katz", star(), alpha=0.4999, normalized=False)
    more = int(re.findall(r"--max-supersteps (\d+)", str(told.value))[0])
    done = run("katz", star(), alpha=0.4999, normalized=False, max_supersteps=more)
    assert done.converged
    # x = 1 + 4 a y and y = 1 + a x
    assert done.to_numpy()["value"][0] == pytest.approx(2.9996 / (1 - 4 * 0.4999**2))


@pytest.mark.parametrize(
    "settings", [{"alpha": float("nan")}, {"beta": float("inf")}, {"tolerance": 0.0}]
)
def test_numbers_that_mean_nothing_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(settings))} is .* expected"):
        run("katz", star(), **settings)
