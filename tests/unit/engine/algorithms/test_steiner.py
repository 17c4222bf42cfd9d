"""Cheap trees that connect some nodes, against the lightest there is."""

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import graphsys as gs
from graphsys.core.errors import ConfigError, InvalidGraphError, UnknownNameError
from graphsys.engine.algorithms.structure import steiner
from graphsys.engine.topology import Topology
from tests.matrix.oracles import ORACLES
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs


@settings(max_examples=80)
@given(graph=small_graphs(), order=st.integers(0, 2), number=st.integers(1, 3))
def test_a_tree_is_at_most_twice_the_lightest(
    graph: SmallGraph, order: int, number: int
) -> None:
    parts = sorted(map(sorted, nx.connected_components(graph.simple())), key=len)
    assume(parts)
    terminals = parts[-1][:number]
    done = gs.algorithms.steiner_tree(graph.topology(order), terminals=terminals)
    if len(terminals) == 1:
        assert (len(done), done.result) == (0, 0.0)
    else:
        ORACLES["steiner_tree"](graph, done, {"terminals": terminals})
    again = gs.algorithms.steiner_tree(graph.topology(order + 1), terminals=terminals)
    assert again.table.equals(done.table)


def test_a_grid_of_many_terminals_is_near_the_lightest(rng: np.random.Generator) -> None:
    grid = nx.grid_2d_graph(40, 40)
    number = {node: k for k, node in enumerate(grid)}
    weight = rng.integers(0, 9, grid.number_of_edges()).astype(float)
    ends = np.array([[number[a], number[b]] for a, b in grid.edges])
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        (int(a), int(b), w) for (a, b), w in zip(ends, weight, strict=True)
    )
    terminals = rng.choice(1600, 60, replace=False).tolist()
    topology = Topology.from_edges(
        ends[:, 0], ends[:, 1], 1600, weight=weight, directed=False
    )
    done = gs.algorithms.steiner_tree(topology, terminals=terminals)
    tree = nx.Graph(zip(*(done.table[c].to_pylist() for c in ("id", "other")), strict=True))
    assert nx.is_tree(tree)
    assert set(terminals) <= set(tree)
    peer = nx.algorithms.approximation.steiner_tree(graph, terminals, method="mehlhorn")
    assert done.result == pytest.approx(peer.size(weight="weight"), rel=0.05)


def test_parallel_edges_count_once_and_direction_does_not() -> None:
    graph = Topology.from_edges(
        [1, 0, 2, 2, 3], [0, 1, 1, 1, 3], 4, weight=[5.0, 2.0, 7.0, 0.0, 1.0]
    )
    done = gs.algorithms.steiner_tree(graph, terminals=[2, 0])
    rows = [(r["id"], r["other"], r["value"]) for r in done.table.to_pylist()]
    assert rows == [(0, 1, 2.0), (1, 2, 0.0)]


def test_all_nodes_are_joined_by_a_spanning_tree(rng: np.random.Generator) -> None:
    pairs = np.array(list(itertools.combinations(range(9), 2)))
    weight = rng.permutation(len(pairs)).astype(float)
    graph = Topology.from_edges(pairs[:, 0], pairs[:, 1], 9, weight=weight, directed=False)
    done = gs.algorithms.steiner_tree(graph, terminals=range(9))
    assert done.result == gs.algorithms.mst(graph).result


@pytest.mark.parametrize(
    ("terminals", "error", "said"),
    [
        ([], ConfigError, "terminals is empty, expected ids of nodes"),
        ([0, 9], UnknownNameError, "9"),
        ([0, 1, 3], InvalidGraphError, "0 and 3 are not connected; leave one out"),
    ],
)
def test_terminals_that_cannot_be_joined(
    terminals: list[Any], error: type[Exception], said: str
) -> None:
    graph = Topology.from_edges([0, 2], [1, 3], 4)
    with pytest.raises(error, match=said):
        gs.algorithms.steiner_tree(graph, terminals=terminals)
    assert gs.algorithms.steiner_tree(graph, terminals=[0, 1]).result == 1.0  # as advised


def test_more_than_scipy_numbers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Topology.from_edges([0, 1, 2], [1, 2, 3], 4)
    monkeypatch.setattr(steiner, "_MOST_ENTRIES", 6)
    assert gs.algorithms.steiner_tree(graph, terminals=[0, 3]).result == 3.0
    monkeypatch.setattr(steiner, "_MOST_ENTRIES", 5)
    with pytest.raises(InvalidGraphError, match=r"at most 5 nodes.*there are 4 and 6"):
        gs.algorithms.steiner_tree(graph, terminals=[0, 3])


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (-1.0, "negative"),
        (np.nan, "NaN"),
        (np.inf, "infinite"),
        (1.7e308, "add up to more"),
    ],
)
def test_weights_that_are_none_are_refused(weight: float, said: str) -> None:
    graph = Topology.from_edges([0, 0], [1, 2], 3, weight=np.array([1.7e308, weight]))
    with pytest.raises(InvalidGraphError, match=said):
        gs.algorithms.steiner_tree(graph, terminals=[0, 1])
