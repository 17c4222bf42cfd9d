"""Paths between two nodes, against NetworkX and all simple paths there are."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsys as gs
from graphsys.core.errors import ConfigError, InvalidGraphError, UnknownNameError
from graphsys.engine.algorithms import get
from graphsys.engine.algorithms.routes import k_shortest_paths, shortest_path
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs
from tests.unit.engine.programs.runs import LAYOUTS, random_graph, store


def plain(graph: SmallGraph) -> Any:
    """Of repeated edges the shortest."""
    found = nx.DiGraph() if graph.is_directed else nx.Graph()
    found.add_nodes_from(graph.ids)
    for a, b, w in sorted(graph.edges, key=lambda edge: -edge[2]):
        found.add_edge(a, b, weight=w)
    return found


def paths_of(table: Any) -> dict[int, list[tuple[Any, float]]]:
    found: dict[int, list[tuple[Any, float]]] = {}
    for row in table.to_pylist():
        found.setdefault(row["path"], []).append((row["id"], row["value"]))
    return found


@settings(max_examples=80)
@given(
    graph=small_graphs(max_nodes=7).filter(lambda graph: len(graph.ids) > 1),
    order=st.integers(0, 2),
    has_zeros=st.booleans(),
)
def test_paths_are_the_first_of_all_simple_ones(
    graph: SmallGraph, order: int, has_zeros: bool
) -> None:
    if has_zeros:
        edges = [(a, b, w // 1) for a, b, w in graph.edges]
        graph = SmallGraph(graph.ids, edges, graph.is_directed)
    source, target = graph.ids[:2]
    whole = plain(graph)
    ranked = sorted(
        (nx.path_weight(whole, path, "weight"), len(path), path)
        for path in nx.all_simple_paths(whole, source, target)
    )
    topology = graph.topology(order)
    many = k_shortest_paths(topology, source=source, target=target, k=4)
    found = paths_of(many.table)
    measures = [(path[-1][1], len(path)) for path in found.values()]
    assert measures == [it[:2] for it in ranked[:4]]
    assert many.result == len(found)
    nodes = [[node for node, _ in path] for path in found.values()]
    assert all(path in [it[2] for it in ranked] for path in nodes)
    assert len({tuple(path) for path in nodes}) == len(nodes)
    one = shortest_path(topology, source=source, target=target)
    assert one.table["id"].to_pylist() == (nodes[0] if nodes else [])
    assert one.result == (ranked[0][0] if ranked else None)
    # another numbering, the same paths
    again = k_shortest_paths(graph.topology(order + 1), source=source, target=target, k=4)
    assert again.table.equals(many.table)


@pytest.mark.parametrize("is_directed", [True, False])
def test_layouts_do_not_matter(tmp_path: Path, is_directed: bool) -> None:
    graph = random_graph(is_directed=is_directed, is_text=is_directed)
    stored = store(tmp_path, graph)
    ends = {"source": graph.ids[0], "target": graph.ids[9]}
    for name in ("shortest_path", "k_shortest_paths"):
        tables = [get(name)(stored.stores[it], **ends).table for it in LAYOUTS]
        assert len(tables[0]) > 0
        assert all(it.to_pydict() == tables[0].to_pydict() for it in tables)
        tree = gs.algorithms.sssp(graph.topology(), source=ends["source"], parents=True)
        parent = dict(
            zip(*(tree.table[c].to_pylist() for c in ("id", "parent")), strict=True)
        )
        path = tables[0]["id"].to_pylist()
        first = path[
            : len(path) if name == "shortest_path" else path.index(ends["target"]) + 1
        ]
        assert [parent[node] for node in first] == [None, *first[:-1]]


def test_a_path_to_oneself_has_one_node() -> None:
    topology = Topology.from_edges([0, 1], [1, 0], 3)
    for name in ("shortest_path", "k_shortest_paths"):
        done = get(name)(topology, source=1, target=1)
        assert done.table["id"].to_pylist() == [1]
        assert done.table["value"].to_pylist() == [0.0]
    nowhere = get("shortest_path")(topology, source=0, target=2)
    assert (len(nowhere), nowhere.result) == (0, None)
    assert get("k_shortest_paths")(topology, source=0, target=2).result == 0


def test_a_long_path_is_found_and_a_detour_beside_it() -> None:
    num = 3000
    src, dst = np.arange(num - 1), np.arange(1, num)
    line = Topology.from_edges(np.append(src, 0), np.append(dst, num - 1), num)
    done = gs.algorithms.k_shortest_paths(line, source=0, target=num - 1, k=2)
    assert [len(path) for path in paths_of(done.table).values()] == [2, num]


@pytest.mark.parametrize("name", ["shortest_path", "k_shortest_paths"])
def test_bad_input_is_refused(name: str) -> None:
    topology = Topology.from_edges([0, 1], [1, 2], 3, weight=np.array([1.0, -1.0]))
    with pytest.raises(InvalidGraphError, match="negative"):
        get(name)(topology, source=0, target=1)
    with pytest.raises(UnknownNameError, match="99"):
        get(name)(topology, source=0, target=99)
    with pytest.raises(ConfigError, match="needs the parameter 'target'"):
        get(name)(topology, source=0)


def test_a_number_of_paths_is_at_least_one() -> None:
    with pytest.raises(ConfigError, match="k is 0, expected a whole number >= 1"):
        gs.algorithms.k_shortest_paths(
            Topology.from_edges([0], [1], 2), source=0, target=1, k=0
        )


def test_a_length_that_float64_does_not_hold_is_refused() -> None:
    weight = np.array([1e308, 1e308])
    topology = Topology.from_edges([0, 1], [1, 2], 3, weight=weight)
    for name in ("shortest_path", "k_shortest_paths"):
        with pytest.raises(InvalidGraphError, match="add up to more than float64 holds"):
            get(name)(topology, source=0, target=2)
        scaled = Topology.from_edges([0, 1], [1, 2], 3, weight=weight / 4)
        assert get(name)(scaled, source=0, target=2).table["id"].to_pylist() == [0, 1, 2]
    one = gs.algorithms.k_shortest_paths(topology, source=0, target=1, k=1)
    assert one.table["value"].to_pylist() == [0.0, 1e308]  # which is k paths
