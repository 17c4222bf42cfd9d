from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError, NotConvergedError
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values
from tests.unit.engine.programs.runs import Stored, native, run


def oracle(graph: SmallGraph, **options: Any) -> dict[Any, float]:
    found: dict[Any, float] = nx.pagerank(
        graph.networkx(), tol=1e-13, max_iter=5000, weight=None, **options
    )
    return found


@settings(max_examples=30)
@given(graph=small_graphs(), damping=st.sampled_from([0.5, 0.85]))
def test_scores_are_those_of_networkx(graph: SmallGraph, damping: float) -> None:
    result = run("pagerank", graph, damping=damping, tolerance=1e-12)
    assert values(result) == pytest.approx(oracle(graph, alpha=damping), abs=1e-10)
    if graph.ids:
        assert sum(values(result).values()) == pytest.approx(1, abs=1e-12)
    same = native("pagerank", graph, damping=damping, tolerance=1e-12)
    assert values(result) == pytest.approx(values(same), rel=1e-9)


@settings(max_examples=30)
@given(graph=small_graphs(), data=st.data())
def test_personalised_scores_are_those_of_networkx(
    graph: SmallGraph, data: st.DataObject
) -> None:
    if not graph.ids:
        return
    source = data.draw(st.sampled_from(graph.ids))
    result = run("personalized_pagerank", graph, source=source, tolerance=1e-12)
    expected = oracle(graph, personalization={source: 1.0})
    assert values(result) == pytest.approx(expected, abs=1e-10)


def test_layouts_and_threads_change_roundings_only(stored: Stored) -> None:
    scores = stored.alike("pagerank", tolerance=1e-12)
    assert scores == pytest.approx(oracle(stored.graph), abs=1e-10)
    source = stored.graph.ids[2]
    scores = stored.alike("personalized_pagerank", source=source, iterations=40)
    expected = oracle(stored.graph, personalization={source: 1.0})
    assert scores == pytest.approx(expected, abs=1e-3)


def test_iterations_are_run_exactly() -> None:
    graph = SmallGraph([0, 1, 2], [(0, 1, 1.0), (1, 0, 1.0)], True)
    for iterations in (57, 1200):
        result = run("pagerank", graph, iterations=iterations)
        assert (result.supersteps, result.converged) == (iterations, True)
    # one step by hand: the third node gives its third to all
    low = 0.4 / 3 + 0.6 / 9
    expected = {0: low + 0.2, 1: low + 0.2, 2: low}
    once = values(run("pagerank", graph, iterations=1, damping=0.6))
    assert once == pytest.approx(expected, rel=1e-12)


def test_giving_up_is_said_or_raised() -> None:
    graph = SmallGraph([0, 1, 2], [(0, 1, 1.0), (1, 2, 1.0), (2, 1, 1.0)], True)
    short = run("pagerank", graph, tolerance=1e-15, max_supersteps=3)
    assert (short.supersteps, short.converged) == (3, False)
    with pytest.raises(NotConvergedError, match="within 3 supersteps"):
        run("pagerank", graph, max_supersteps=3, require_convergence=True)


@pytest.mark.parametrize(("name", "value"), [("damping", 1.5), ("iterations", 0)])
def test_parameters_out_of_range_are_refused(name: str, value: float) -> None:
    graph = SmallGraph([0], [], True)
    with pytest.raises(ConfigError, match=f"{name} is {value}, expected"):
        run("pagerank", graph, **{name: value})
