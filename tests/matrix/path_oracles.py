"""Oracles of paths, orders, trees and flows; see ``oracles``."""

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import networkx as nx
import pytest

from graphsys.engine.result import Result
from tests.matrix.oracle_tools import (
    answers,
    oracle,
    same,
)
from tests.unit.engine.algorithms.small_graphs import SmallGraph, values

# ---- paths


@oracle
def bfs(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    hops = nx.single_source_shortest_path_length(graph.networkx(), given["source"])
    assert values(done) == {node: hops.get(node) for node in graph.ids}


@oracle
def sssp(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    found = nx.single_source_dijkstra_path_length(graph.networkx(), given["source"])
    same(values(done), found)


def _lengths_along(graph: SmallGraph, path: list[Any]) -> list[float]:
    """Return the distances along a path, of repeated edges by the shortest."""
    edges = list(graph.edges)
    if not graph.is_directed:
        edges += [(b, a, w) for a, b, w in edges]
    steps = [
        min(w for a, b, w in edges if (a, b) == ends) for ends in itertools.pairwise(path)
    ]
    return list(itertools.accumulate(steps, initial=0.0))


@oracle
def shortest_path(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    ends = given["source"], given["target"]
    expected = nx.dijkstra_path_length(graph.networkx(), *ends)
    answers(done, expected)
    path = done.table["id"].to_pylist()
    assert (path[0], path[-1]) == ends
    lengths = _lengths_along(graph, path)
    assert done.table["value"].to_pylist() == pytest.approx(lengths, rel=1e-12)
    assert lengths[-1] == pytest.approx(expected, rel=1e-12)


@oracle
def k_shortest_paths(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    plain = nx.DiGraph() if graph.is_directed else nx.Graph()
    for a, b, w in sorted(graph.edges, key=lambda edge: -edge[2]):
        plain.add_edge(a, b, weight=w)
    ends = given["source"], given["target"]
    found = itertools.islice(nx.shortest_simple_paths(plain, *ends, "weight"), 3)
    expected = [nx.path_weight(plain, path, "weight") for path in found]
    rows = done.table.to_pylist()
    num_paths = int(done.result or 0)
    paths = [[row for row in rows if row["path"] == k] for k in range(1, num_paths + 1)]
    nodes = [[row["id"] for row in path] for path in paths]
    assert sum(map(len, paths)) == len(rows)
    assert len({tuple(path) for path in nodes}) == len(expected) == num_paths
    assert [path[-1]["value"] for path in paths] == pytest.approx(expected, rel=1e-12)
    for path, own in zip(nodes, paths, strict=True):
        assert (path[0], path[-1]) == ends
        lengths = _lengths_along(graph, path)
        assert [row["value"] for row in own] == pytest.approx(lengths, rel=1e-12)


@oracle
def apsp(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    expected = {
        (node, other): length
        for node, lengths in nx.all_pairs_dijkstra_path_length(graph.networkx())
        for other, length in lengths.items()
    }
    rows = done.table.to_pylist()
    assert len(rows) == len(graph.ids) ** 2
    found = {(row["id"], row["other"]): row["value"] for row in rows}
    same(found, expected)


@oracle
def diameter(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    simple = graph.simple()
    hub = max(sorted(graph.ids), key=simple.degree)
    whole = simple.subgraph(nx.node_connected_component(simple, hub))
    assert nx.radius(whole) <= done.result <= nx.diameter(whole)


@oracle
def topological_order(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    levels = list(map(sorted, nx.topological_generations(graph.networkx())))
    order = [node for level in levels for node in level]
    assert values(done) == {node: place for place, node in enumerate(order)}
    own = {node: k for k, level in enumerate(levels) for node in level}
    assert values(done, "level") == own


@oracle
def longest_path(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    longest = nx.DiGraph()
    longest.add_nodes_from(graph.ids)
    for a, b, w in sorted(graph.edges, key=lambda edge: edge[2]):
        longest.add_edge(a, b, weight=w)
    expected = nx.dag_longest_path_length(longest)
    answers(done, expected)
    path = done.table["id"].to_pylist()
    steps = [longest[a][b]["weight"] for a, b in itertools.pairwise(path)]
    found = list(itertools.accumulate(steps, initial=0.0))
    assert done.table["value"].to_pylist() == pytest.approx(found, rel=1e-12)
    assert found[-1] == pytest.approx(expected, rel=1e-12)


@oracle
def find_cycle(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    cycle = done.table["id"].to_pylist()
    whole = graph.networkx()
    assert cycle == list(dict.fromkeys(cycle)) != []
    assert cycle[0] == min(cycle)
    assert all(whole.has_edge(*ends) for ends in itertools.pairwise([*cycle, cycle[0]]))
    assert graph.is_directed or len(cycle) != 2 or whole.number_of_edges(*cycle) > 1
    answers(done, len(cycle))


@oracle
def mst(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    lightest = nx.Graph()
    for a, b, w in graph.edges:
        if a != b and not (lightest.has_edge(a, b) and lightest[a][b]["weight"] <= w):
            lightest.add_edge(a, b, weight=w)
    expected = nx.minimum_spanning_tree(lightest).size(weight="weight")
    answers(done, expected)
    rows = [row for row in done.table.to_pylist() if row["weight"] is not None]
    chosen = nx.Graph([(row["source"], row["target"]) for row in rows])
    assert len(rows) == len(graph.ids) - nx.number_connected_components(graph.simple())
    assert not rows or nx.is_forest(chosen)
    assert all(lightest[r["source"]][r["target"]]["weight"] == r["weight"] for r in rows)


def _capacities(graph: SmallGraph) -> Any:
    """Return the graph with repeated edges added up, and edges both ways if undirected."""
    capacities = nx.DiGraph()
    capacities.add_nodes_from(graph.ids)
    for a, b, w in graph.edges:
        for u, v in [(a, b)] if graph.is_directed else [(a, b), (b, a)]:
            known = capacities.get_edge_data(u, v, {"capacity": 0.0})["capacity"]
            capacities.add_edge(u, v, capacity=known + w * (a != b))
    return capacities


@oracle
def min_cut(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    capacities = _capacities(graph)
    expected = nx.minimum_cut_value(capacities, given["source"], given["target"])
    answers(done, expected)
    side = values(done)
    assert side[given["source"]]
    assert not side[given["target"]]
    crossing = [
        d["capacity"] for u, v, d in capacities.edges(data=True) if side[u] > side[v]
    ]
    assert sum(crossing) == pytest.approx(expected, rel=1e-9)


@oracle
def max_flow(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    capacities = _capacities(graph)
    expected = nx.maximum_flow_value(capacities, given["source"], given["target"])
    answers(done, expected)
    over: Counter[Any] = Counter()
    rows = done.table.to_pylist()
    for row in rows:
        a, b, flow = row["id"], row["other"], row["value"]
        assert 0 < flow <= capacities[a][b]["capacity"] * (1 + 1e-12)
        over[a] -= flow
        over[b] += flow
    largest = max(w for _, _, w in graph.edges)
    balance = {given["source"]: -expected, given["target"]: expected}
    for node in graph.ids:
        assert over[node] == pytest.approx(balance.get(node, 0), abs=1e-9 * largest)
    assert len({frozenset((row["id"], row["other"])) for row in rows}) == len(rows)


@oracle
def bipartite_matching(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    simple, partner, side = graph.simple(), values(done), values(done, "side")
    assert all(side[a] != side[b] for a, b in simple.edges)
    for part in nx.connected_components(simple):
        assert side[min(part)] == 0
    pairs = {node: other for node, other in partner.items() if other is not None}
    assert all(simple.has_edge(*pair) for pair in pairs.items())
    assert all(pairs[other] == node for node, other in pairs.items())
    expected = len(nx.max_weight_matching(simple, maxcardinality=True))
    assert len(pairs) == 2 * expected
    answers(done, expected)


@oracle
def bipartite_projection(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    simple = graph.simple()
    first = {min(part) for part in nx.connected_components(simple)}
    kept = {
        node
        for node in graph.ids
        if any(
            nx.shortest_path_length(simple, start, node) % 2 == 0
            for start in first
            if nx.has_path(simple, start, node)
        )
    }
    shared = {
        (a, b): len(list(nx.common_neighbors(simple, a, b)))
        for a, b in itertools.combinations(sorted(kept), 2)
    }
    expected = [(*pair, number) for pair, number in shared.items() if number]
    rows = [(row["id"], row["other"], row["value"]) for row in done.table.to_pylist()]
    assert rows == expected


@oracle
def steiner_tree(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    lightest = nx.Graph()
    lightest.add_nodes_from(graph.ids)
    for a, b, w in graph.edges:
        if a != b and w <= lightest.get_edge_data(a, b, {"weight": w})["weight"]:
            lightest.add_edge(a, b, weight=w)
    rows = [(row["id"], row["other"], row["value"]) for row in done.table.to_pylist()]
    assert rows == sorted(rows)
    assert all(a < b and lightest[a][b]["weight"] == w for a, b, w in rows)
    tree, terminals = nx.Graph((a, b) for a, b, _ in rows), set(given["terminals"])
    tree.add_nodes_from(terminals)
    assert nx.is_tree(tree)
    assert {node for node in tree if tree.degree(node) == 1} <= terminals
    weight = sum(w for _, _, w in rows)
    answers(done, weight)
    best = lightest_steiner_tree(lightest, terminals)
    assert best * (1 - 1e-12) <= weight <= (2 - 2 / len(terminals)) * best * (1 + 1e-12)


def lightest_steiner_tree(graph: Any, terminals: set[Any]) -> float:
    """Return the weight of the best tree: paths from one node to all of three terminals.

    Of two and three terminals the lightest tree is a node and its shortest paths to each.
    """
    assert len(terminals) <= 3
    lengths = [nx.single_source_dijkstra_path_length(graph, it) for it in terminals]
    meeting = set(lengths[0]).intersection(*lengths[1:])
    return min(float(sum(length[node] for length in lengths)) for node in meeting)
