from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError, InvalidGraphError, UnknownNameError
from graphsys.engine.algorithms.pagerank import pagerank
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


def oracle(graph: SmallGraph, **arguments: Any) -> dict[Any, float]:
    found: dict[Any, float] = nx.pagerank(
        graph.networkx(), tol=1e-13, max_iter=5000, **arguments
    )
    return found


@settings(max_examples=60)
@given(graph=small_graphs(), weighted=st.booleans(), damping=st.sampled_from([0.5, 0.85]))
def test_scores_are_those_of_networkx(
    graph: SmallGraph, weighted: bool, damping: float
) -> None:
    weight = "weight" if weighted else None
    expected = oracle(graph, alpha=damping, weight=weight)
    result = pagerank(graph.topology(), damping=damping, tolerance=1e-13, weighted=weighted)
    assert values(result) == pytest.approx(expected, abs=1e-11)
    assert result.converged
    if graph.ids:
        assert sum(values(result).values()) == pytest.approx(1, abs=1e-12)


@settings(max_examples=30)
@given(graph=small_graphs(), data=st.data())
def test_personalised_scores_are_those_of_networkx(
    graph: SmallGraph, data: st.DataObject
) -> None:
    if not graph.ids:
        return
    chosen = data.draw(st.lists(st.sampled_from(graph.ids), min_size=1, unique=True))
    shares = {node: float(k + 1) for k, node in enumerate(chosen)}
    expected = oracle(graph, personalization=shares, weight=None)
    result = pagerank(graph.topology(), tolerance=1e-13, personalization=shares)
    assert values(result) == pytest.approx(expected, abs=1e-11)


def random_graph() -> Topology:
    rng = np.random.default_rng(5)
    return Topology.from_edges(rng.integers(0, 900, 9000), rng.integers(0, 999, 9000), 1000)


def test_threads_do_not_change_a_bit() -> None:
    topology = random_graph()
    one = pagerank(topology, num_threads=1).to_numpy()["value"]
    assert (one == pagerank(topology, num_threads=3).to_numpy()["value"]).all()


def test_float32_scores_are_close() -> None:
    topology = random_graph()
    exact = pagerank(topology, iterations=30).to_numpy()["value"]
    quick = pagerank(topology, iterations=30, dtype="float32").to_numpy()["value"]
    assert quick.dtype == np.float32
    np.testing.assert_allclose(quick, exact, rtol=2e-6)


def test_iterations_are_run_exactly() -> None:
    topology = Topology.from_edges(np.array([0, 1]), np.array([1, 0]), 3)
    none = pagerank(topology, iterations=0)
    assert values(none) == {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}
    # one step by hand: the third node gives its third to all
    once = pagerank(topology, iterations=1, damping=0.6)
    low = 0.4 / 3 + 0.6 / 9
    assert values(once) == pytest.approx({0: low + 0.2, 1: low + 0.2, 2: low})
    assert pagerank(topology, iterations=57).supersteps == 57


def test_giving_up_is_reported() -> None:
    result = pagerank(random_graph(), max_supersteps=3)
    assert (result.converged, result.supersteps) == (False, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"damping": 1.5}, r"damping is 1\.5, expected a number from 0 to 1"),
        ({"tolerance": 0.0}, r"tolerance is 0\.0, expected a number > 0"),
        ({"dtype": "int8"}, "dtype is 'int8', expected 'float64' or 'float32'"),
        ({"iterations": -1}, "iterations is -1, expected a whole number >= 0"),
        ({"personalization": {0: -1.0}}, r"node 0 is -1\.0, expected a number >= 0"),
        ({"personalization": {0: 0.0}}, "gives every node the weight 0"),
    ],
)
def test_bad_parameters_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pagerank(random_graph(), **arguments)


def test_nodes_of_the_personalisation_must_exist() -> None:
    with pytest.raises(UnknownNameError, match="5000"):
        pagerank(random_graph(), personalization={5000: 1.0})


def test_negative_weights_are_refused() -> None:
    weight = np.array([1.0, -2.0])
    topology = Topology.from_edges(np.array([0, 1]), np.array([1, 2]), 3, weight=weight)
    with pytest.raises(InvalidGraphError, match=r"node number 1 weighs -2\.0"):
        pagerank(topology, weighted=True)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e200, 1e307])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tiny_and_huge_weights_share_like_others(scale: float, dtype: str) -> None:
    source, target = np.array([0, 0, 0, 1, 2, 3, 3]), np.array([1, 2, 3, 2, 0, 0, 1])
    weight = np.array([1.0, 2.0, 16.0, 4.0, 1.0, 8.0, 3.0])
    mixed = np.where(source == 3, weight, weight * scale)  # rows have scales of their own
    scores = [
        pagerank(
            Topology.from_edges(source, target, 5, weight=given), weighted=True, dtype=dtype
        )
        .table["value"]
        .to_numpy()
        for given in (weight, weight * scale, mixed)
    ]
    assert scores[0].sum() == pytest.approx(1)
    for found in scores[1:]:
        assert found == pytest.approx(scores[0], rel=1e-5 if dtype == "float32" else 1e-12)
