"""Flows and matchings of bipartite graphs, against NetworkX and SciPy."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

import graphsys as gs
from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.engine.algorithms import get
from graphsys.engine.algorithms.structure import flow
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from tests.matrix.oracles import ORACLES
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs
from tests.unit.engine.programs.runs import LAYOUTS, random_graph, store


@settings(max_examples=80)
@given(
    graph=small_graphs().filter(lambda it: len(it.ids) > 1 and bool(it.edges)),
    order=st.integers(0, 2),
)
def test_a_flow_is_the_largest_and_fits(graph: SmallGraph, order: int) -> None:
    ends = {"source": graph.ids[0], "target": graph.ids[1]}
    done = gs.algorithms.max_flow(graph.topology(order), **ends)
    ORACLES["max_flow"](graph, done, ends)
    again = gs.algorithms.max_flow(graph.topology(order + 1), **ends)
    assert again.table.equals(done.table)
    # sums of quarters are exact: the cut of another method is as large
    assert gs.algorithms.min_cut(graph.topology(), **ends).result == done.result


def test_a_large_flow_is_that_of_scipy(rng: np.random.Generator) -> None:
    src, dst = rng.zipf(1.4, (2, 60_000)) % 5000
    capacity = rng.integers(1, 100, len(src))
    matrix = coo_array((capacity.astype(np.int32), (src, dst)), shape=(5000, 5000))
    expected = maximum_flow(matrix.tocsr(), 1, 2).flow_value
    topology = Topology.from_edges(src, dst, 5000, weight=capacity.astype(np.float64))
    assert gs.algorithms.max_flow(topology, source=1, target=2).result == expected > 0


def test_capacities_of_any_size_end(rng: np.random.Generator) -> None:
    src, dst = rng.integers(0, 200, (2, 3000))
    capacity = 10.0 ** rng.uniform(-12, 12, 3000)
    graph = SmallGraph(
        list(range(200)),
        list(zip(src.tolist(), dst.tolist(), capacity.tolist(), strict=True)),
        is_directed=True,
    )
    done = gs.algorithms.max_flow(graph.topology(), source=0, target=1)
    whole = nx.DiGraph()
    for a, b, w in graph.edges:
        known = whole.get_edge_data(a, b, {"capacity": 0.0})["capacity"]
        whole.add_edge(a, b, capacity=known + w)
    assert done.result == pytest.approx(nx.maximum_flow_value(whole, 0, 1), rel=1e-9)


@pytest.mark.parametrize(
    ("weight", "said"),
    [(-1.0, "negative"), (np.nan, "NaN"), (np.inf, "infinite"), (1e308, "add up to more")],
)
def test_capacities_that_are_none_are_refused(weight: float, said: str) -> None:
    graph = Topology.from_edges([0, 0], [1, 1], 3, weight=np.array([1e308, weight]))
    with pytest.raises(InvalidGraphError, match=said):
        gs.algorithms.max_flow(graph, source=0, target=1)


def test_nothing_flows_to_itself() -> None:
    graph = Topology.from_edges([0], [1], 3)
    with pytest.raises(ConfigError, match="source and target are both 1; give two nodes"):
        gs.algorithms.max_flow(graph, source=1, target=1)
    none = gs.algorithms.max_flow(graph, source=0, target=2)
    assert (none.result, len(none)) == (0.0, 0)


def in_two_parts(graph: SmallGraph) -> SmallGraph:
    """Keep loops and what leads from one half of the ids to the other."""
    side = {node: place % 2 for place, node in enumerate(graph.ids)}
    edges = [(a, b, w) for a, b, w in graph.edges if a == b or side[a] != side[b]]
    return SmallGraph(graph.ids, edges, graph.is_directed)


@settings(max_examples=80)
@given(graph=small_graphs(), order=st.integers(0, 2))
def test_a_matching_is_the_largest(graph: SmallGraph, order: int) -> None:
    graph = in_two_parts(graph)
    done = gs.algorithms.bipartite_matching(graph.topology(order))
    ORACLES["bipartite_matching"](graph, done, {})
    again = gs.algorithms.bipartite_matching(graph.topology(order + 1))
    assert again.table["value"].to_pylist() == by_id(again, done)


def by_id(like: Result, done: Result) -> list[Any]:
    found = dict(zip(*(done.table[c].to_pylist() for c in ("id", "value")), strict=True))
    return [found[node] for node in like.table["id"].to_pylist()]


def test_an_odd_cycle_is_refused() -> None:
    graph = Topology.from_edges([0, 1, 2, 3], [1, 2, 0, 4], 5)
    with pytest.raises(InvalidGraphError, match="a cycle of an odd number of nodes"):
        gs.algorithms.bipartite_matching(graph)
    assert gs.algorithms.matching(graph).result == 2  # as the message advises


@pytest.mark.parametrize("is_directed", [True, False])
def test_layouts_do_not_matter(tmp_path: Path, is_directed: bool) -> None:
    graph = random_graph(is_directed=is_directed, is_text=is_directed)
    parts = in_two_parts(graph)
    ends = {"source": graph.ids[0], "target": graph.ids[9]}
    for name, one, options in (
        ("max_flow", graph, ends),
        ("bipartite_matching", parts, {}),
    ):
        stored = store(tmp_path / name, one)
        tables = [
            get(name)(stored.stores[it], **options).table.sort_by("id").to_pydict()
            for it in LAYOUTS
        ]
        assert len(tables[0]["id"]) > 0
        assert all(it == tables[0] for it in tables)


@pytest.mark.parametrize(
    ("limit", "call", "said"),
    [
        (
            "_MOST_OF_PAIRS",
            lambda graph: gs.algorithms.max_flow(graph, source=0, target=3),
            4,
        ),
        ("_MOST_OF_SCIPY", gs.algorithms.bipartite_matching, 6),
    ],
)
def test_more_than_can_be_numbered_is_refused(
    limit: str, call: Any, said: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Topology.from_edges([0, 1, 2], [1, 2, 3], 4)
    monkeypatch.setattr(flow, limit, said)
    assert call(graph).result > 0
    monkeypatch.setattr(flow, limit, said - 1)
    with pytest.raises(InvalidGraphError, match=rf"at most {said - 1} .*there are {said}"):
        call(graph)


def test_pairs_of_as_many_nodes_as_a_flow_takes_are_integers() -> None:
    most = flow._MOST_OF_PAIRS
    assert most * most <= np.iinfo(np.int64).max < (most + 1) ** 2
