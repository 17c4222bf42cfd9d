"""Orders, longest paths and cycles, against NetworkX."""

import itertools
import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsys as gs
from graphsys.core.errors import InvalidGraphError
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs, values


def without_cycles(graph: SmallGraph) -> SmallGraph:
    """Have every edge lead to the larger id."""
    edges = [(min(a, b), max(a, b), w) for a, b, w in graph.edges if a != b]
    return SmallGraph(graph.ids, edges, is_directed=True)


@settings(max_examples=80)
@given(graph=small_graphs(), order=st.integers(0, 2))
def test_orders_are_levels_and_ids(graph: SmallGraph, order: int) -> None:
    graph = without_cycles(graph)
    done = gs.algorithms.topological_order(graph.topology(order))
    levels = list(map(sorted, nx.topological_generations(graph.networkx())))
    expected = list(itertools.chain.from_iterable(levels))
    found = values(done)
    assert sorted(found, key=lambda node: found[node]) == expected
    assert done.supersteps == len(levels)


@settings(max_examples=80)
@given(graph=small_graphs(), order=st.integers(0, 2), below=st.sampled_from([0.0, 2.0]))
def test_longest_paths_are_those_of_networkx(
    graph: SmallGraph, order: int, below: float
) -> None:
    graph = without_cycles(graph)
    edges = [(a, b, w - below) for a, b, w in graph.edges]
    graph = SmallGraph(graph.ids, edges, is_directed=True)
    whole = nx.DiGraph()
    whole.add_nodes_from(graph.ids)
    for a, b, w in sorted(edges, key=lambda edge: edge[2]):
        whole.add_edge(a, b, weight=w)
    done = gs.algorithms.longest_path(graph.topology(order))
    path = done.table["id"].to_pylist()
    if not graph.ids:
        assert (path, done.result) == ([], None)
        return
    assert done.result == nx.dag_longest_path_length(whole)
    assert nx.path_weight(whole, path, "weight") == done.result
    assert gs.algorithms.longest_path(graph.topology(order + 1)).table.equals(done.table)


@settings(max_examples=100)
@given(graph=small_graphs(), order=st.integers(0, 2))
def test_a_cycle_is_found_where_there_is_one(graph: SmallGraph, order: int) -> None:
    whole, topology = graph.networkx(), graph.topology(order)
    done = gs.algorithms.find_cycle(topology)
    cycle = done.table["id"].to_pylist()
    if graph.is_directed:
        has_none = nx.is_directed_acyclic_graph(whole)
    else:
        has_none = not graph.ids or nx.is_forest(whole)
    assert (cycle == []) == has_none
    assert done.result == len(cycle) == len(set(cycle))
    assert all(whole.has_edge(*it) for it in itertools.pairwise([*cycle, *cycle[:1]]))
    assert graph.is_directed or len(cycle) != 2 or whole.number_of_edges(*cycle) > 1
    assert cycle[:1] == sorted(cycle)[:1]
    again = gs.algorithms.find_cycle(graph.topology(order + 1))
    assert again.table.equals(done.table)
    if graph.is_directed and cycle:
        shown = " -> ".join(map(str, [*cycle, cycle[0]])) if len(cycle) <= 6 else "..."
        for name in ("topological_order", "longest_path"):
            with pytest.raises(InvalidGraphError, match=re.escape(shown)):
                getattr(gs.algorithms, name)(topology)


def test_a_long_cycle_is_named_by_its_beginning() -> None:
    ring = np.arange(1000)
    topology = Topology.from_edges(ring, np.roll(ring, -1), 1000)
    said = r"0 -> 1 -> 2 -> 3 -> 4 -> 5 -> \.\.\. \(1000 nodes\) -> 0; delete one of these"
    with pytest.raises(InvalidGraphError, match=said):
        gs.algorithms.topological_order(topology)


def test_without_direction_there_is_no_order() -> None:
    topology = Topology.from_edges([0], [1], 2, directed=False)
    with pytest.raises(InvalidGraphError, match="undirected: every edge leads back"):
        gs.algorithms.topological_order(topology)
    none: Any = np.empty(0, dtype=np.int64)
    alone = Topology.from_edges(none, none, 3, directed=False)
    found = gs.algorithms.topological_order(alone).table["value"]
    assert found.to_pylist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ([np.nan, 1.0], "1 are not, the first nan"),
        ([np.inf, 1.0], "1 are not, the first inf"),
        ([1e308, 1e308], "more than float64 holds"),
    ],
)
def test_lengths_that_do_not_add_up_are_refused(weight: list[float], said: str) -> None:
    topology = Topology.from_edges([0, 1], [1, 2], 3, weight=np.array(weight))
    with pytest.raises(InvalidGraphError, match=said):
        gs.algorithms.longest_path(topology)


def test_a_chain_is_ordered_without_recursion() -> None:
    num = 200_000
    chain = Topology.from_edges(np.arange(1, num), np.arange(num - 1), num)
    found = gs.algorithms.topological_order(chain).table["value"].to_numpy()
    np.testing.assert_array_equal(found, np.arange(num)[::-1])
    assert gs.algorithms.longest_path(chain).result == num - 1
