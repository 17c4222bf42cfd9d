"""Eigenvector and Katz centrality where edges count as much as their weights."""

from typing import Any

import networkx as nx
import pytest

from graphsys.core.errors import InvalidGraphError
from tests.unit.engine.algorithms.small_graphs import SmallGraph, values
from tests.unit.engine.programs.runs import Stored, run

SETTINGS: dict[str, dict[str, Any]] = {
    "eigenvector": {"tolerance": 1e-11},
    "katz": {"alpha": 0.02, "tolerance": 1e-13},
}


def club(scale: float = 1.0) -> SmallGraph:
    """Return the karate club with the weights that it has, times a number."""
    graph = nx.karate_club_graph()
    edges = [(a, b, scale * w) for a, b, w in graph.edges(data="weight")]
    return SmallGraph(list(graph), edges, False)


@pytest.mark.parametrize("name", SETTINGS)
def test_scores_are_those_of_networkx(name: str) -> None:
    found = values(run(name, club(), weighted=True, **SETTINGS[name]))
    given = {"alpha": 0.02} if name == "katz" else {}
    expected = getattr(nx, f"{name}_centrality")(
        nx.karate_club_graph(), tol=1e-11, max_iter=5000, weight="weight", **given
    )
    assert found == pytest.approx(expected, abs=1e-8)
    assert found != pytest.approx(values(run(name, club(), **SETTINGS[name])), abs=1e-3)


@pytest.mark.parametrize("name", SETTINGS)
def test_layouts_and_threads_change_roundings_only(name: str, stored: Stored) -> None:
    stored.alike(name, weighted=True, **SETTINGS[name])


@pytest.mark.parametrize("name", SETTINGS)
def test_weights_that_no_score_has_are_refused(name: str) -> None:
    for weight, message in (
        (-1.0, "negative or NaN, the first -1.*leave weighted=False"),
        (float("inf"), "finite"),
    ):
        graph = SmallGraph([0, 1], [(0, 1, weight), (1, 0, 1.0)], True)
        with pytest.raises(InvalidGraphError, match=message) as refused:
            run(name, graph, weighted=True)
        assert "hops" not in str(refused.value)
        assert len(run(name, graph)) == 2  # without weights nothing is wrong


def test_weights_whose_squares_overflow_are_refused_with_what_helps() -> None:
    with pytest.raises(InvalidGraphError, match=r"1e\+150 at most.*scale the weights down"):
        run("eigenvector", club(scale=1e160), weighted=True)
    one, two = (
        values(run("eigenvector", club(scale), weighted=True, tolerance=1e-9))
        for scale in (1.0, 1e120)
    )
    assert one == pytest.approx(two, abs=1e-8)
