"""Surveys: exact on trees, at rest, and the same for any partitions and threads."""

from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.engine import algorithms
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.test_satisfiability import Clauses, drawn, topology_of


def biases(graph: Topology, **options: Any) -> list[float]:
    listed = algorithms.get("survey_propagation")
    done = listed(graph, implementation="program", **options)
    assert done.converged
    found: list[float] = done.table["value"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ([[1], [-1, 2]], [1, 1]),  # both are true in every solution
        ([[-1], [1, -2]], [-1, -1]),
        ([[1, 2], [-2, 3]], [0, 0, 0]),  # nothing is bound
        ([[-1], [1, 2, 3]], [-1, 0, 0]),
    ],
)
def test_trees_are_exact(clauses: Clauses, expected: list[float]) -> None:
    found = biases(topology_of(clauses, len(expected)), tolerance=1e-9)
    assert found == pytest.approx(expected + [0] * len(clauses), abs=1e-6)


def test_surveys_at_rest_do_not_depend_on_where_they_began() -> None:
    graph = drawn(2000, 4.2, 1)
    first, other = (np.array(biases(graph, seed=seed, tolerance=1e-6)) for seed in (0, 1))
    assert np.abs(first).mean() > 0.01  # not the point where nothing is bound
    assert np.allclose(first, other, atol=1e-3)
    assert np.array_equal(first, biases(graph, tolerance=1e-6, num_threads=1))


def test_graphs_that_are_no_formula_are_refused_as_by_the_native_one() -> None:
    path = Topology.from_edges(np.array([0, 1]), np.array([1, 2]), 3)
    zero = Topology.from_edges(np.array([1]), np.array([0]), 2, weight=np.zeros(1))
    for graph, message in ((path, "ingest a formula"), (zero, "weights above or below 0")):
        with pytest.raises(InvalidGraphError, match=message):
            biases(graph)


def test_a_tolerance_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="tolerance is 0"):
        biases(topology_of([[1]], 1), tolerance=0)
