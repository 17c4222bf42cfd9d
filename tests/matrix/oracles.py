"""What every listed algorithm must give: computed by NetworkX, NumPy, or by trying all.

An oracle takes the graph and the result and asserts. Where a definition leaves a choice
(colors, matchings, communities, walks), it asserts what every right answer has.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphsys.engine.result import Result
from tests.matrix import path_oracles
from tests.matrix.oracle_tools import (
    BY_WORKERS,
    GRAPHS,
    ORACLES,
    SETTINGS,
    answers,
    both_ways,
    matrix_of,
    oracle,
    same,
    weighted,
)
from tests.unit.engine.algorithms.small_graphs import SmallGraph, communities, values

__all__ = ["BY_WORKERS", "GRAPHS", "ORACLES", "SETTINGS", "path_oracles"]
"""Whoever takes the list from here has it whole."""

# ---- centrality


@oracle
def pagerank(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    whole = weighted(graph, given)
    same(values(done), nx.pagerank(whole, tol=1e-16, max_iter=10_000))


@oracle
def personalized_pagerank(
    graph: SmallGraph, done: Result, given: Mapping[str, Any]
) -> None:
    jump = {given["source"]: 1.0}
    whole = weighted(graph, given)
    found = nx.pagerank(whole, personalization=jump, tol=1e-16, max_iter=10_000)
    same(values(done), found)


@oracle
def hits(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    matrix = matrix_of(graph)
    for column, product in (("hub", matrix @ matrix.T), ("authority", matrix.T @ matrix)):
        power = product / np.linalg.norm(product)
        for _ in range(12):  # the 4096th power
            power = power @ power
            power /= np.linalg.norm(power)
        scores = power @ np.ones(len(graph.ids))
        scores /= scores.sum()
        found = values(done, column)
        expected = dict(zip(graph.ids, scores.tolist(), strict=True))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


@oracle
def katz(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    system = np.eye(len(graph.ids)) - given["alpha"] * matrix_of(graph, given).T
    scores = np.linalg.solve(system, np.ones(len(graph.ids)))
    scores /= np.linalg.norm(scores)
    same(values(done), dict(zip(graph.ids, scores.tolist(), strict=True)))


@oracle
def eigenvector(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    numbers, vectors = np.linalg.eig(matrix_of(graph, given).T)
    scores = np.abs(vectors[:, numbers.real.argmax()].real)
    expected = dict(zip(graph.ids, scores.tolist(), strict=True))
    assert values(done) == pytest.approx(expected, rel=1e-6, abs=1e-7)


@oracle
def betweenness(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    simple = nx.DiGraph() if graph.is_directed else nx.Graph()
    simple.add_nodes_from(graph.ids)
    for a, b, w in sorted(graph.edges, key=lambda edge: -edge[2]):
        if a != b:
            simple.add_edge(a, b, weight=w)
    weight = "weight" if given.get("weighted") else None
    found = nx.betweenness_centrality(simple, normalized=False, weight=weight)
    same(values(done), found)


@oracle
def closeness(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    distance = "weight" if given.get("weighted") else None
    same(values(done), nx.closeness_centrality(graph.networkx(), distance=distance))


@oracle
def harmonic(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    distance = "weight" if given.get("weighted") else None
    same(values(done), nx.harmonic_centrality(graph.networkx(), distance=distance))


@oracle
def degree_statistics(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    matrix = matrix_of(graph)
    for column, axis in (("out_degree", 1), ("in_degree", 0)):
        counts = matrix.sum(axis=axis).astype(int).tolist()
        assert values(done, column) == dict(zip(graph.ids, counts, strict=True))
    answers(done, matrix.sum() / len(graph.ids))


@oracle
def degree_assortativity(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    matrix = matrix_of(graph)
    src, dst = np.nonzero(matrix)
    times = matrix[src, dst].astype(int)
    first, second = matrix.sum(axis=1)[src], matrix.sum(axis=0)[dst]
    ends = np.repeat(first, times), np.repeat(second, times)
    answers(done, np.corrcoef(*ends)[0, 1])


# ---- components, cores, triangles


def _smallest(parts: Any) -> dict[Any, Any]:
    return {node: min(part) for part in parts for node in part}


@oracle
def wcc(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    assert values(done) == _smallest(nx.connected_components(both_ways(graph)))


@oracle
def scc(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    if graph.is_directed:
        expected = _smallest(nx.strongly_connected_components(graph.networkx()))
    else:
        expected = _smallest(nx.connected_components(graph.networkx()))
    assert values(done) == expected
    answers(done, len(set(expected.values())))


@oracle
def articulation_points(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    expected = set(nx.articulation_points(graph.simple()))
    assert values(done) == {node: node in expected for node in graph.ids}
    answers(done, len(expected))


@oracle
def bridges(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    whole = both_ways(graph)
    whole.remove_edges_from(list(nx.selfloop_edges(whole, keys=True)))
    expected = sorted(tuple(sorted(edge[:2])) for edge in nx.bridges(whole))
    rows = done.table.to_pylist()
    assert [(row["id"], row["other"]) for row in rows] == expected
    answers(done, len(expected))


@oracle
def biconnected_components(
    graph: SmallGraph, done: Result, given: Mapping[str, Any]
) -> None:
    parts = sorted(map(sorted, nx.biconnected_components(graph.simple())))
    rows = [(row["id"], row["value"]) for row in done.table.to_pylist()]
    assert rows == [(node, k) for k, part in enumerate(parts) for node in part]
    answers(done, len(parts))


@oracle
def maximal_cliques(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    expected = sorted(map(sorted, nx.find_cliques(graph.simple())))
    rows = [(row["id"], row["value"]) for row in done.table.to_pylist()]
    found = [
        [node for node, _ in part] for _, part in itertools.groupby(rows, lambda it: it[1])
    ]
    assert sorted(found) == expected
    assert [len(part) for part in found] == sorted(map(len, found), reverse=True)
    assert [number for _, number in rows] == [
        k for k, part in enumerate(found) for _ in part
    ]
    answers(done, len(expected))


@oracle
def k_core(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    expected = nx.core_number(graph.simple())
    assert values(done) == expected
    answers(done, max(expected.values()))


@oracle
def triangle_count(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    expected = nx.triangles(graph.simple())
    assert values(done) == expected
    answers(done, sum(expected.values()) // 3)


@oracle
def lcc(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    links = {(a, b) for a, b, _ in graph.edges}
    links |= set() if graph.is_directed else {(b, a) for a, b in links}
    expected = {}
    for node, near in graph.simple().adjacency():
        pairs = list(itertools.permutations(near, 2))
        found = sum(pair in links for pair in pairs)
        expected[node] = found / len(pairs) if pairs else 0.0
    same(values(done), expected)


# ---- communities and labels


def _neighbors(graph: SmallGraph) -> dict[Any, list[Any]]:
    """Return the other ends of each node's edges; an undirected loop is one."""
    found: dict[Any, list[Any]] = {node: [] for node in graph.ids}
    for a, b, _ in graph.edges:
        found[a].append(b)
        if a != b or graph.is_directed:
            found[b].append(a)
    return found


def _most_frequent(labels: list[Any]) -> Any:
    counts = Counter(labels)
    return min(counts, key=lambda label: (-counts[label], label))


@oracle
def cdlp(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    near, label = _neighbors(graph), {node: node for node in graph.ids}
    for _ in range(given["iterations"]):
        label = {
            node: _most_frequent([label[other] for other in others]) if others else node
            for node, others in near.items()
        }
    assert values(done) == label


@oracle
def label_propagation(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    near, known = _neighbors(graph), given["labels"]
    label = {node: known.get(node) for node in graph.ids}
    for _ in range(given["iterations"]):
        told = {n: [label[o] for o in near[n] if label[o] is not None] for n in graph.ids}
        label = {
            node: label[node]
            if node in known or not told[node]
            else _most_frequent(told[node])
            for node in graph.ids
        }
    assert values(done) == label


@oracle
def leiden(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    whole, parts = both_ways(graph, given), communities(done)
    answers(done, nx.community.modularity(whole, parts))
    assert all(nx.is_connected(whole.subgraph(part)) for part in parts)
    assert values(done) == _smallest(parts)
    best = nx.community.louvain_communities(whole, seed=1)
    assert done.result >= 0.9 * nx.community.modularity(whole, best)


@oracle
def clustering(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    simple = graph.simple()
    for center in set(values(done).values()):
        inside = [n for n, found in values(done).items() if found == center]
        assert center in inside
        assert nx.is_connected(simple.subgraph(inside))
    answers(done, len(communities(done)))


# ---- choices


@oracle
def coloring(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    simple, color = graph.simple(), values(done)
    assert all(color[a] != color[b] for a, b in simple.edges)
    num = len(set(color.values()))
    assert set(color.values()) == set(range(num))
    answers(done, num)
    assert num <= 1 + max(degree for _, degree in simple.degree)


@oracle
def mis(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    simple, inside = graph.simple(), values(done)
    assert not any(inside[a] and inside[b] for a, b in simple.edges)
    assert all(inside[n] or any(inside[o] for o in simple[n]) for n in simple)
    answers(done, sum(inside.values()))


@oracle
def matching(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    partner, heaviest = values(done), nx.Graph()
    for a, b, w in graph.edges:
        if a != b and not (heaviest.has_edge(a, b) and heaviest[a][b]["weight"] >= w):
            heaviest.add_edge(a, b, weight=w)
    pairs = {frozenset(pair) for pair in partner.items() if pair[1] is not None}
    assert all(partner[partner[node]] == node for node in partner if partner[node])
    assert all(partner[a] or partner[b] for a, b in heaviest.edges)
    answers(done, len(pairs))
    weight = sum(heaviest[a][b]["weight"] for a, b in pairs)
    best = nx.max_weight_matching(heaviest)
    assert 2 * weight >= sum(heaviest[a][b]["weight"] for a, b in best) * (1 - 1e-12)


@oracle
def belief_propagation(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    number = {node: place for place, node in enumerate(graph.ids)}
    states = np.array(list(itertools.product((-1, 1), repeat=len(graph.ids))))
    energy = sum(w * states[:, number[a]] * states[:, number[b]] for a, b, w in graph.edges)
    weight = np.exp(energy)
    up = ((states > 0) * weight[:, None]).sum(axis=0) / weight.sum()
    same(values(done), dict(zip(graph.ids, up.tolist(), strict=True)))


@oracle
def survey_propagation(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    truth = values(done)
    clauses = {a for a, _, _ in graph.edges}
    if done.result is None:  # the program gives biases of the variables alone
        assert all(-1 <= value <= 1 for value in truth.values())
        assert all(truth[clause] == 0 for clause in clauses)
        return
    satisfied = {a for a, b, w in graph.edges if truth[b] == (w > 0)}
    assert satisfied == clauses
    assert done.result == 0
    assert all(truth[clause] for clause in clauses)


# ---- pairs and walks


def _scores(done: Result) -> dict[frozenset[Any], float]:
    rows = done.table.to_pylist()
    found = {frozenset((row["id"], row["other"])): row["value"] for row in rows}
    assert len(found) == len(rows)
    return found


def _near_pairs(simple: Any) -> list[tuple[Any, Any]]:
    pairs = itertools.combinations(simple, 2)
    return [(a, b) for a, b in pairs if set(simple[a]) & set(simple[b])]


@oracle
def jaccard(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    simple = graph.simple()
    found = nx.jaccard_coefficient(simple, _near_pairs(simple))
    same(_scores(done), {frozenset((a, b)): score for a, b, score in found})


@oracle
def adamic_adar(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    simple = graph.simple()
    found = nx.adamic_adar_index(simple, _near_pairs(simple))
    same(_scores(done), {frozenset((a, b)): score for a, b, score in found})


@oracle
def resource_allocation(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    simple = graph.simple()
    found = nx.resource_allocation_index(simple, _near_pairs(simple))
    same(_scores(done), {frozenset((a, b)): score for a, b, score in found})


@oracle
def random_walks(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    whole = weighted(graph, given)
    rows = done.table.to_pylist()
    assert sorted(row["id"] for row in rows) == sorted(graph.ids)
    for row in rows:
        walk = row["nodes"]
        assert walk[0] == row["id"]
        assert all(whole.has_edge(a, b) for a, b in itertools.pairwise(walk))
        is_whole = len(walk) == given["length"] + 1
        assert is_whole or not list(whole.neighbors(walk[-1]))
        assert math.isfinite(len(walk))
