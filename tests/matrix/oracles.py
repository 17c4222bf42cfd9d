"""What every listed algorithm must give: computed by NetworkX, NumPy, or by trying all.

An oracle takes the graph and the result and asserts. Where a definition leaves a choice
(colors, matchings, communities, walks), it asserts what every right answer has.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import networkx as nx
import numpy as np
import pytest

from graphsys.engine.result import Result
from tests.matrix.graphs import acyclic, forest, formula, mixed, two_parts
from tests.unit.engine.algorithms.small_graphs import SmallGraph, values

Oracle = Callable[[SmallGraph, Result, Mapping[str, Any]], None]
ORACLES: Final[dict[str, Oracle]] = {}
GRAPHS: Final[dict[str, Callable[..., SmallGraph]]] = defaultdict(
    lambda: mixed,
    belief_propagation=forest,
    bipartite_matching=two_parts,
    longest_path=acyclic,
    survey_propagation=formula,
    topological_order=acyclic,
)
"""Which graph an algorithm is tried on."""
NOTHING: Final[Mapping[str, Any]] = {}
BY_WORKERS = "by workers"
"""The name of results that workers of a test gave."""
LABELED = 3
"""Of the graph for label propagation every so-manyth node has a label."""
SETTINGS: Final[dict[str, Callable[[SmallGraph], dict[str, Any]]]] = {
    "pagerank": lambda graph: {"tolerance": 1e-14},
    "personalized_pagerank": lambda graph: {"tolerance": 1e-14},
    "hits": lambda graph: {"tolerance": 1e-13},
    "katz": lambda graph: {"alpha": 0.01, "tolerance": 1e-14},
    "eigenvector": lambda graph: {"tolerance": 1e-14},
    "cdlp": lambda graph: {"iterations": 5},
    "label_propagation": lambda graph: {
        "labels": {node: k % 4 for k, node in enumerate(graph.ids[::LABELED])},
        "iterations": 4,
    },
    "random_walks": lambda graph: {"length": 6},
    "betweenness": lambda graph: {"normalized": False},
}
"""Parameters beside those of the algorithm's example."""


def oracle(function: Oracle) -> Oracle:
    """Register an oracle by the name of its function, which is the algorithm's."""
    ORACLES[function.__name__] = function
    return function


def same(found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> None:
    """Require equal values by id; floats within 1e-9 of each other, null what is absent."""
    found = {key: value for key, value in found.items() if value is not None}
    assert found == pytest.approx(dict(expected), rel=1e-9, abs=1e-12)


def answers(done: Result, expected: Any) -> None:
    """Require the one number; workers of a test give the table alone."""
    if done.algorithm != BY_WORKERS:
        assert done.result == pytest.approx(expected, rel=1e-9)


def edges_of(graph: SmallGraph, given: Mapping[str, Any]) -> list[tuple[Any, Any, float]]:
    """Return edges with what they count: their weight, the largest being 1, or 1 each.

    Edges of weight 0 are left out where weights count.
    """
    if not given.get("weighted"):
        return [(a, b, 1.0) for a, b, _ in graph.edges]
    largest = max(w for _, _, w in graph.edges)
    return [(a, b, w / largest) for a, b, w in graph.edges if w > 0]


def weighted(graph: SmallGraph, given: Mapping[str, Any]) -> Any:
    """Return the graph with repeated edges added up; an undirected loop counts once."""
    found = nx.DiGraph()
    found.add_nodes_from(graph.ids)
    for a, b, w in edges_of(graph, given):
        for u, v in {(a, b)} if graph.is_directed else {(a, b), (b, a)}:
            total = found.get_edge_data(u, v, {"weight": 0.0})["weight"]
            found.add_edge(u, v, weight=total + w)
    return found


def both_ways(graph: SmallGraph, given: Mapping[str, Any] = NOTHING) -> Any:
    """Return the graph without direction, repetitions included."""
    found = nx.MultiGraph()
    found.add_nodes_from(graph.ids)
    found.add_weighted_edges_from(edges_of(graph, given))
    return found


def matrix_of(graph: SmallGraph) -> Any:
    return nx.to_numpy_array(graph.networkx(), nodelist=graph.ids, weight=None)


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
    system = np.eye(len(graph.ids)) - given["alpha"] * matrix_of(graph).T
    scores = np.linalg.solve(system, np.ones(len(graph.ids)))
    scores /= np.linalg.norm(scores)
    same(values(done), dict(zip(graph.ids, scores.tolist(), strict=True)))


@oracle
def eigenvector(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    numbers, vectors = np.linalg.eig(matrix_of(graph).T)
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
    same(values(done), nx.closeness_centrality(graph.networkx()))


@oracle
def harmonic(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    same(values(done), nx.harmonic_centrality(graph.networkx()))


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


def _parts(done: Result) -> list[set[Any]]:
    found: dict[Any, set[Any]] = {}
    for node, part in values(done).items():
        found.setdefault(part, set()).add(node)
    return list(found.values())


@oracle
def leiden(graph: SmallGraph, done: Result, given: Mapping[str, Any]) -> None:
    whole, parts = both_ways(graph, given), _parts(done)
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
    answers(done, len(_parts(done)))


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
