"""Components, clustering, cores, communities and link prediction with NetworkX's names."""

import itertools
import math
import random
from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms import k_core, leiden, similarity
from graphsys.engine.algorithms.components import wcc
from graphsys.engine.algorithms.structure.cliques import maximal_cliques
from graphsys.engine.algorithms.triangles import count as count_triangles
from graphsys.interop.networkx_calls import (
    by_node,
    no_direction,
    no_loops,
    no_multigraph,
    only_direction,
    plain_nodes,
    plain_seed,
    some_nodes,
    takes,
)

# ruff: noqa: D103, N803  # documented by NetworkX, whose argument names these are


def _groups(graph: Any, labels: Any) -> list[set[Any]]:
    """Return sets of nodes by label, in the order of their first nodes."""
    members: dict[int, set[Any]] = {}
    for node, label in zip(graph.nodes, labels.tolist(), strict=True):
        members.setdefault(label, set()).add(node)
    return list(members.values())


def _labels(G: Any) -> Any:
    return wcc.native(G.topology()).table["value"].to_numpy()


@takes(no_direction)
def connected_components(G: Any) -> Iterator[set[Any]]:
    return iter(_groups(G, _labels(G)))


@takes(no_direction)
def number_connected_components(G: Any) -> int:
    return int(wcc.native(G.topology()).result or 0)


@takes(no_direction, some_nodes)
def is_connected(G: Any) -> bool:
    return wcc.native(G.topology()).result == 1


def _no_such_node(graph: Any, arguments: dict[str, Any]) -> str | None:
    return None if arguments["n"] in graph else "no such node"


@takes(no_direction, _no_such_node)
def node_connected_component(G: Any, n: Any) -> set[Any]:
    labels = _labels(G)
    members = np.flatnonzero(labels == labels[G.number[n]])
    return {G.nodes[k] for k in members.tolist()}


@takes(only_direction)
def weakly_connected_components(G: Any) -> Iterator[set[Any]]:
    return iter(_groups(G, _labels(G)))


@takes(only_direction)
def number_weakly_connected_components(G: Any) -> int:
    return int(wcc.native(G.topology()).result or 0)


@takes(only_direction, some_nodes)
def is_weakly_connected(G: Any) -> bool:
    return wcc.native(G.topology()).result == 1


def _triangles_and_pairs(G: Any) -> tuple[Any, Any]:
    """Return the triangles at every node and the ordered pairs of its neighbors."""
    rows = G.topology().simple_rows()
    with ThreadTeam() as team:
        counts, _ = count_triangles(rows, team)
    degree = rows.degrees()
    return counts, degree * (degree - 1)


@takes(no_direction, no_multigraph, plain_nodes)
def triangles(G: Any, nodes: Any = None) -> Any:
    return by_node(G, _triangles_and_pairs(G)[0], nodes)


def _coefficients(G: Any) -> Any:
    counts, pairs = _triangles_and_pairs(G)
    return 2 * counts / np.maximum(pairs, 1)


@takes(no_direction, no_multigraph, plain_nodes, without=("weight",))
def clustering(G: Any, nodes: Any = None, weight: Any = None) -> Any:
    return by_node(G, _coefficients(G), nodes)


@takes(no_direction, no_multigraph, some_nodes, without=("nodes", "weight"))
def average_clustering(
    G: Any, nodes: Any = None, weight: Any = None, count_zeros: bool = True
) -> float:
    values = _coefficients(G).tolist()
    if not count_zeros:
        values = [value for value in values if value > 0]
    return float(sum(values) / len(values))


@takes(no_direction, no_multigraph)
def transitivity(G: Any) -> float:
    counts, pairs = _triangles_and_pairs(G)
    closed = int(counts.sum())
    return 2 * closed / int(pairs.sum()) if closed else 0


@takes(no_direction, no_multigraph, no_loops)
def core_number(G: Any) -> dict[Any, int]:
    numbers = k_core.native(G.topology()).table["value"].to_numpy()
    found: dict[Any, int] = by_node(G, numbers)
    return found


@takes(no_direction, without=("nodes",))
def find_cliques(G: Any, nodes: Any = None) -> Iterator[list[Any]]:
    found = maximal_cliques.native(G.topology())
    members = found.table["id"].to_numpy().tolist()
    sizes = np.bincount(found.table["value"].to_numpy())
    bounds = [0, *np.cumsum(sizes).tolist()]
    return ([G.nodes[k] for k in members[a:b]] for a, b in itertools.pairwise(bounds))


@takes(plain_seed, without=("max_level",))
def leiden_communities(
    G: Any,
    weight: str | None = "weight",
    resolution: float = 1,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set[Any]]:
    draws = (
        seed
        if isinstance(seed, random.Random)
        else random.Random(None if seed is None else int(seed))
    )
    found = leiden.native(
        G.topology(weight),
        resolution=resolution,
        weighted=weight is not None,
        seed=draws.getrandbits(63),
    )
    return _groups(G, found.table["value"].to_numpy())


def _predict(G: Any, ebunch: Iterable[Any] | None, search: Any) -> Iterator[Any]:
    if ebunch is None:
        return _predict_all(G, search)
    pairs = [(u, v) for u, v in ebunch]
    for node in (node for pair in pairs for node in pair):
        if node not in G:
            raise nx.NodeNotFound(f"Node {node} not in G.")
    return _scored(G, pairs, search)


def _scored(G: Any, pairs: list[tuple[Any, Any]], search: Any) -> Iterator[Any]:
    numbers = [(G.number[u], G.number[v]) for u, v in pairs]
    left, right = np.array(numbers, dtype=np.int64).reshape(-1, 2).T.copy()
    scores = search.scores_of(left, right).tolist()
    return ((u, v, score) for (u, v), score in zip(pairs, scores, strict=True))


def _predict_all(G: Any, search: Any) -> Iterator[Any]:
    """Score all pairs without an edge, the pairs of one node at a time."""
    indptr, indices = G.rows
    left = set(G.nodes)
    while left:
        u = left.pop()
        # loops too: how many are taken out of a set decides the order of what is left
        row = indices[indptr[G.number[u]] : indptr[G.number[u] + 1]]
        others = left - {G.nodes[k] for k in row.tolist()}
        yield from _scored(G, [(u, v) for v in others], search)


@takes(no_direction, no_multigraph, no_loops)
def jaccard_coefficient(G: Any, ebunch: Any = None) -> Iterator[Any]:
    return _predict(G, ebunch, similarity.jaccard_search(G.topology()))


@takes(no_direction, no_multigraph, no_loops)
def adamic_adar_index(G: Any, ebunch: Any = None) -> Iterator[Any]:
    found = _predict(G, ebunch, similarity.adamic_adar_search(G.topology()))
    degree = G.topology().simple().degrees()
    # one over log(1): NetworkX divides by 0 where a node is paired with itself
    return (_checked(G, degree, row) for row in found)


@takes(no_direction, no_multigraph, no_loops)
def resource_allocation_index(G: Any, ebunch: Any = None) -> Iterator[Any]:
    return _predict(G, ebunch, similarity.resource_allocation_search(G.topology()))


class _DegreeProducts:
    """Scores pairs by the product of their degrees."""

    def __init__(self, degrees: Any) -> None:
        self.degrees = degrees

    def scores_of(self, left: Any, right: Any) -> Any:
        return self.degrees[left] * self.degrees[right]


@takes(no_direction, no_multigraph)
def preferential_attachment(G: Any, ebunch: Any = None) -> Iterator[Any]:
    return _predict(G, ebunch, _DegreeProducts(G.degrees()))


def _checked(G: Any, degree: Any, row: tuple[Any, Any, float]) -> tuple[Any, Any, float]:
    u, v, score = row
    if u == v:
        csr = G.topology().simple()
        near = csr.indices[csr.indptr[G.number[u]] : csr.indptr[G.number[u] + 1]]
        score = sum(1 / math.log(d) for d in degree[near].tolist())
    return u, v, score
