"""Centralities by power iteration, correlations of degrees, modularity."""

from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse

from graphsys.engine.algorithms.degrees import degree_assortativity
from graphsys.interop.networkx_calls import (
    no_loops,
    no_multigraph,
    some_nodes,
    takes,
)

# ruff: noqa: D103, N803  # documented by NetworkX, whose argument names these are

_EXACT = 1e-12
_SAME = 1e-7
_MOST_ITERATIONS = 10_000


def _matrix(G: Any, weight: str | None) -> Any:
    """Return the transposed adjacency matrix: row v holds who points to v."""
    into = G.topology(weight).csr("in")
    values = np.ones(into.num_edges) if into.weight is None else into.weight
    shape = (len(G), len(G))
    parts = values.astype(np.float64), into.indices.astype(np.int64), into.indptr
    return sparse.csr_array(parts, shape=shape)


def _by_node(G: Any, values: Any) -> dict[Any, float]:
    return dict(zip(G.nodes, values.tolist(), strict=True))


def _plain_iteration(_: Any, arguments: dict[str, Any]) -> str | None:
    numbers = arguments["max_iter"], arguments["tol"]
    if not all(isinstance(it, int | float) for it in numbers):
        return "max_iter and tol must be numbers"
    for name in ("alpha", "beta"):
        if not isinstance(arguments.get(name, 1.0), int | float):
            return f"{name} must be a number"
    return None


@takes(no_multigraph, some_nodes, _plain_iteration, without=("nstart",))
def eigenvector_centrality(
    G: Any, max_iter: int = 100, tol: float = 1e-06, nstart: Any = None, weight: Any = None
) -> dict[Any, float]:
    matrix = _matrix(G, weight)
    x = np.full(len(G), 1.0 / len(G))
    for _ in range(max_iter):
        last = x
        x = last + matrix @ last
        x = x / (np.linalg.norm(x) or 1.0)
        if np.abs(x - last).sum() < len(G) * tol:
            return _by_node(G, x)
    raise nx.PowerIterationFailedConvergence(max_iter)


@takes(no_multigraph, _plain_iteration, without=("nstart",))
def katz_centrality(
    G: Any,
    alpha: float = 0.1,
    beta: Any = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-06,
    nstart: Any = None,
    normalized: bool = True,
    weight: Any = None,
) -> dict[Any, float]:
    if not len(G):
        return {}
    matrix = _matrix(G, weight)
    x = np.zeros(len(G))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(max_iter):
            last = x
            x = alpha * (matrix @ last) + beta
            if np.abs(x - last).sum() < len(G) * tol:
                norm = float(np.linalg.norm(x)) if normalized else 1.0
                return _by_node(G, x / (norm or 1.0))
    raise nx.PowerIterationFailedConvergence(max_iter)


@takes(_plain_iteration, without=("nstart", "normalized"))
def hits(
    G: Any,
    max_iter: int = 100,
    tol: float = 1.0e-8,
    nstart: Any = None,
    normalized: bool = True,
) -> tuple[dict[Any, float], dict[Any, float]]:
    if not len(G):
        return {}, {}
    if max_iter <= 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    if len(G) == 1:
        raise NotImplementedError("NetworkX says what is wrong")
    back = _matrix(G, "weight")
    hubs, authorities = _hubs(back, np.ones(len(G)))
    # from elsewhere: where the largest singular value has several vectors, NetworkX's are
    # any of them
    others, _ = _hubs(back, np.arange(1.0, len(G) + 1.0))
    if np.abs(hubs - others).sum() > _SAME:
        raise NotImplementedError("there is more than one answer")
    return _by_node(G, hubs), _by_node(G, authorities)


def _hubs(back: Any, hubs: Any) -> tuple[Any, Any]:
    """Return hubs and authorities, each of sum 1, by power iteration."""
    matrix = back.T.tocsr()
    hubs = hubs / hubs.sum()
    for _ in range(_MOST_ITERATIONS):
        last = hubs
        authorities = back @ last
        hubs = matrix @ authorities
        mass = float(np.abs(hubs).sum())
        if not 0.0 < mass < np.inf:
            break
        hubs = hubs / mass
        if np.abs(hubs - last).sum() < _EXACT:
            return hubs, authorities / authorities.sum()
    raise NotImplementedError("the iteration does not settle, or there are no edges")


def _plain_degrees(_: Any, arguments: dict[str, Any]) -> str | None:
    is_ours = arguments["x"] == "out" and arguments["y"] == "in"
    return None if is_ours else "only out-degrees against in-degrees"


def _correlation(G: Any) -> float:
    found = degree_assortativity.native(G.topology()).result
    if found is None or np.isnan(found):
        raise NotImplementedError("NetworkX says what a correlation of nothing is")
    return float(found)


_CORRELATED = (no_multigraph, no_loops, _plain_degrees)


@takes(*_CORRELATED, without=("weight", "nodes"))
def degree_assortativity_coefficient(
    G: Any, x: str = "out", y: str = "in", weight: Any = None, nodes: Any = None
) -> float:
    return _correlation(G)


@takes(*_CORRELATED, without=("weight", "nodes"))
def degree_pearson_correlation_coefficient(
    G: Any, x: str = "out", y: str = "in", weight: Any = None, nodes: Any = None
) -> float:
    return _correlation(G)


def _plain_parts(graph: Any, arguments: dict[str, Any]) -> str | None:
    parts = arguments["communities"]
    kinds = (list, tuple, set, frozenset)
    if not isinstance(parts, list | tuple) or not all(isinstance(p, kinds) for p in parts):
        return "communities must be a list of collections of nodes"
    members = [node for part in parts for node in part]
    is_partition = len(members) == len(graph) and set(members) == set(graph)
    return None if is_partition else "communities are no partition of the nodes"


@takes(some_nodes, _plain_parts)
def modularity(
    G: Any, communities: Any, weight: str | None = "weight", resolution: float = 1
) -> float:
    numbers = {node: k for k, part in enumerate(communities) for node in part}
    label = np.array([numbers[node] for node in G.nodes])
    values = G.values_of(weight) if weight is not None else np.ones(G.num_entries)
    values = values.astype(np.float64)
    source, target = G.source, G.rows[1]
    out = np.bincount(label[source], values, minlength=len(communities))
    is_inside = label[source] == label[target]
    inside = np.bincount(label[source[is_inside]], values[is_inside], len(communities))
    if G.is_directed():
        into = np.bincount(label[target], values, minlength=len(communities))
        total = values.sum()
    else:
        is_loop = source == target
        loops = np.bincount(label[source[is_loop]], values[is_loop], len(communities))
        out, inside = out + loops, inside + loops  # both ends of a loop are at its node
        into, total = out, values.sum() + loops.sum()
    if total <= 0.0:
        raise NotImplementedError("NetworkX says what the modularity without edges is")
    return float((inside / total - resolution * out * into / total**2).sum())
