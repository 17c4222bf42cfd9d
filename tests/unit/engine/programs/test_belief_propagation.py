"""Marginals against brute force: exact on trees, close on weakly coupled graphs."""

import itertools
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, values
from tests.unit.engine.programs.runs import Stored, run


def enumerated(
    graph: SmallGraph, coupling: float, field: float, evidence: dict[Any, float]
) -> dict[Any, float]:
    """Sum over all configurations."""
    up, total = dict.fromkeys(graph.ids, 0.0), 0.0
    for spins in itertools.product([1, -1], repeat=len(graph.ids)):
        x = dict(zip(graph.ids, spins, strict=True))
        energy = sum(evidence.get(node, field) * x[node] for node in x)
        energy += sum(coupling * w * x[a] * x[b] for a, b, w in graph.edges if a != b)
        share = math.exp(energy)
        total += share
        for node in x:
            up[node] += share * (x[node] > 0)
    return {node: value / total for node, value in up.items()}


@st.composite
def forests(draw: st.DrawFn) -> SmallGraph:
    """Forests of up to nine nodes, edges in any direction, some loops."""
    num = draw(st.integers(0, 9))
    ids = draw(st.permutations(range(0, 5 * num, 5)))
    edges: list[tuple[Any, Any, float]] = []
    for k in range(1, num):
        parent = draw(st.integers(0, k))  # itself: a loop, and a new tree
        pair = draw(st.permutations([ids[k], ids[parent]]))
        weight = draw(st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 3.0]))
        edges.append((pair[0], pair[1], weight))
    return SmallGraph(list(ids), edges, draw(st.booleans()))


@settings(max_examples=40)
@given(graph=forests(), data=st.data())
def test_trees_are_exact(graph: SmallGraph, data: st.DataObject) -> None:
    coupling, field = data.draw(st.sampled_from([0.3, 1.0])), data.draw(st.floats(-1, 1))
    evidence = {}
    if graph.ids:
        node = st.sampled_from(graph.ids)
        evidence = data.draw(st.dictionaries(node, st.floats(-3, 3), max_size=3))
    options = {"coupling": coupling, "field": field, "evidence": evidence}
    result = run("belief_propagation", graph, num_threads=1, **options)
    assert result.converged
    expected = enumerated(graph, coupling, field, evidence)
    assert values(result) == pytest.approx(expected, abs=1e-8)


def test_opposite_messages_that_meet_do_not_stop_the_run() -> None:
    path = SmallGraph(list(range(7)), [(k, k + 1, 1.0) for k in range(6)], True)
    evidence = {0: 1.0, 6: -1.0}
    result = run("belief_propagation", path, evidence=evidence)
    assert values(result) == pytest.approx(enumerated(path, 1.0, 0.0, evidence), abs=1e-8)


def test_weak_couplings_are_close_on_graphs_with_cycles() -> None:
    net = nx.petersen_graph()
    graph = SmallGraph(list(net), [(a, b, 1.0) for a, b in net.edges], False)
    evidence = {0: 1.5, 7: -0.5}
    result = run("belief_propagation", graph, coupling=0.2, field=0.1, evidence=evidence)
    expected = enumerated(graph, 0.2, 0.1, evidence)
    assert values(result) == pytest.approx(expected, abs=5e-3)


def test_strong_couplings_do_not_overflow() -> None:
    path = SmallGraph([0, 1, 2], [(0, 1, 900.0), (1, 2, -900.0)], False)
    result = run("belief_propagation", path, evidence={0: 0.5})
    up = 1 / (1 + math.exp(-1))
    assert values(result) == pytest.approx({0: up, 1: up, 2: 1 - up})


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    node = stored.graph.ids[4]
    options: dict[str, Any] = {
        "coupling": 0.02,
        "field": -0.1,
        "evidence": {node: 2.0},
        "damping": 0.3,
    }
    found = stored.alike("belief_propagation", **options)
    assert max(found, key=lambda key: found[key]) == node


def test_a_run_that_does_not_settle_says_so() -> None:
    topology = Topology.from_edges(np.array([0, 1, 2]), np.array([1, 2, 0]), 3)
    result = run("belief_propagation", topology, coupling=2.0, field=0.1, max_supersteps=3)
    assert (result.supersteps, result.converged) == (3, False)


def test_bad_input_is_refused() -> None:
    graph = SmallGraph([1, 2], [(1, 2, 1.0)], True)
    with pytest.raises(UnknownNameError, match="3"):
        run("belief_propagation", graph, evidence={3: 1.0})
    with pytest.raises(
        ConfigError, match="evidence of belief_propagation: got '1', expected numb"
    ):
        run("belief_propagation", graph, evidence="1")
