"""Eccentricities, sums of distances and centralities with NetworkX's names."""

from typing import Any

import networkx as nx
import numpy as np

from graphsys.engine.algorithms.betweenness import betweenness
from graphsys.engine.algorithms.distances import (
    DistanceSums,
    distance_sums,
    length_sums,
)
from graphsys.engine.algorithms.pagerank import pagerank as native_pagerank
from graphsys.interop.networkx_calls import (
    by_node,
    chosen_numbers,
    no_direction,
    only_direction,
    plain_nodes,
    plain_seed,
    some_nodes,
    takes,
)
from graphsys.interop.networkx_paths import by_hops, hops

# ruff: noqa: D103, N803  # documented by NetworkX, whose argument names these are


def _sums(
    G: Any, nodes: Any = None, direction: Any = "out", length: str | None = None
) -> DistanceSums:
    chosen = np.array(chosen_numbers(G, nodes))
    if length is None:
        return distance_sums(G.topology().rows(direction), chosen)
    return length_sums(G.topology(length).rows(direction, ("weight",)), chosen)


def _farthest(G: Any, nodes: Any = None) -> Any:
    """Return the largest distance from every chosen node to any other."""
    sums = _sums(G, nodes)
    if np.any(sums.reached < len(G)):
        kind = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise nx.NetworkXError(f"Found infinite path length because the {kind} connected")
    return sums.farthest


@takes(some_nodes, plain_nodes, without=("sp", "weight"))
def eccentricity(G: Any, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    farthest = _farthest(G, v).tolist()
    if v is not None and v in G:
        return farthest[0]
    named = (G.nodes[k] for k in chosen_numbers(G, v))
    return dict(zip(named, farthest, strict=True))


@takes(some_nodes, without=("e", "weight"))
def diameter(G: Any, e: Any = None, usebounds: bool = False, weight: Any = None) -> int:
    return int(_farthest(G).max())


@takes(some_nodes, without=("e", "weight"))
def radius(G: Any, e: Any = None, usebounds: bool = False, weight: Any = None) -> int:
    return int(_farthest(G).min())


@takes(some_nodes, without=("e", "weight"))
def center(G: Any, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    farthest = _farthest(G)
    return [G.nodes[k] for k in np.flatnonzero(farthest == farthest.min()).tolist()]


@takes(some_nodes, without=("e", "weight"))
def periphery(
    G: Any, e: Any = None, usebounds: bool = False, weight: Any = None
) -> list[Any]:
    farthest = _farthest(G)
    return [G.nodes[k] for k in np.flatnonzero(farthest == farthest.max()).tolist()]


@takes(some_nodes, without=("weight", "method"))
def average_shortest_path_length(G: Any, weight: Any = None, method: Any = None) -> float:
    num_nodes = len(G)
    if num_nodes == 1:
        return 0
    sums = _sums(G)
    if np.any(sums.reached < num_nodes):
        kind = "strongly connected" if G.is_directed() else "connected"
        raise nx.NetworkXError(f"Graph is not {kind}.")
    return int(sums.total.sum()) / (num_nodes * (num_nodes - 1))


@takes(some_nodes, without=("weight",))
def wiener_index(G: Any, weight: Any = None) -> float:
    sums = _sums(G)
    if np.any(sums.reached < len(G)):
        return float("inf")
    total = int(sums.total.sum())
    return total if G.is_directed() else total / 2


@takes(without=("sp", "weight"))
def harmonic_diameter(G: Any, sp: Any = None, *, weight: Any = None) -> float:
    num_nodes = len(G)
    inverse = float(_sums(G).harmonic.sum()) if num_nodes else 0.0
    if inverse:
        return num_nodes * (num_nodes - 1) / inverse
    return float("inf") if num_nodes > 1 else float("nan")


@takes(without=("weight", "attr", "sp"))
def barycenter(G: Any, weight: Any = None, attr: Any = None, sp: Any = None) -> list[Any]:
    sums = _sums(G) if len(G) else None
    if sums is None or np.any(sums.reached < len(G)):
        raise NotImplementedError("NetworkX says what is wrong with the graph")
    if not G.is_directed() and len(G.edge_places()) == len(G) - 1:
        raise NotImplementedError("of a tree NetworkX takes the centroid")
    return [G.nodes[k] for k in np.flatnonzero(sums.total == sums.total.min()).tolist()]


def _two_nodes(graph: Any, arguments: dict[str, Any]) -> str | None:
    u, v = arguments["u"], arguments["v"]
    return None if u in graph and v in graph and u != v else "u and v must be two nodes"


@takes(no_direction, _two_nodes)
def efficiency(G: Any, u: Any, v: Any) -> float:
    distance = by_hops(G, *hops(G, G.number[u])).get(v)
    return 0 if distance is None else 1 / distance


@takes(no_direction)
def global_efficiency(G: Any) -> float:
    num_pairs = len(G) * (len(G) - 1)
    return float(_sums(G).harmonic.sum()) / num_pairs if num_pairs else 0


def _known_or_none(graph: Any, arguments: dict[str, Any]) -> str | None:
    node = arguments["u"]
    return None if node is None or node in graph else "no such node"


@takes(_known_or_none)
def closeness_centrality(
    G: Any, u: Any = None, distance: Any = None, wf_improved: bool = True
) -> Any:
    sums = _sums(G, u, "in", distance)
    others = sums.reached - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(sums.total > 0, others / sums.total, 0.0)
    if wf_improved:
        values = values * (others / max(len(G) - 1, 1))
    if u is not None:
        return values.tolist()[0]
    return by_node(G, values)


@takes(without=("nbunch", "sources"))
def harmonic_centrality(
    G: Any, nbunch: Any = None, distance: Any = None, sources: Any = None
) -> dict[Any, float]:
    found: dict[Any, float] = by_node(G, _sums(G, None, "in", distance).harmonic)
    return found


def _sampled(graph: Any, arguments: dict[str, Any]) -> str | None:
    k = arguments["k"]
    if k is not None and not (isinstance(k, int) and 1 < k <= len(graph)):
        return "k must be None or an integer of 2 to the number of nodes"
    return plain_seed(graph, arguments)


@takes(_sampled, without=("endpoints",))
def betweenness_centrality(
    G: Any,
    k: Any = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    sources = None
    if k is not None and k != len(G):
        draws = nx.utils.create_py_random_state(seed)
        sources = [G.number[node] for node in draws.sample(list(G.nodes), k)]
    # NetworkX has an answer of its own where lengths are 0, and refuses others itself
    found = betweenness.native(
        G.topology(weight),
        normalized=normalized,
        sources=sources,
        weighted=weight is not None,
    )
    scores: dict[Any, float] = by_node(G, found.table["value"].to_numpy())
    return scores


def _shares(_: Any, arguments: dict[str, Any]) -> str | None:
    given = arguments["personalization"]
    if given is not None and not (isinstance(given, dict) and sum(given.values()) > 0):
        return "personalization must be a dictionary with a sum above 0"
    is_fine = 0 <= arguments["alpha"] <= 1 and arguments["tol"] > 0
    return None if is_fine and arguments["max_iter"] >= 1 else "parameter out of range"


@takes(_shares, without=("nstart", "dangling"))
def pagerank(
    G: Any,
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Any = None,
    weight: str | None = "weight",
    dangling: Any = None,
) -> dict[Any, float]:
    if not len(G):
        return {}
    shares = personalization
    if shares is not None:
        shares = {G.number[node]: s for node, s in shares.items() if node in G}
    found = native_pagerank.native(
        G.topology(weight),
        damping=alpha,
        personalization=shares,
        max_supersteps=max_iter,
        tolerance=len(G) * tol,
        weighted=weight is not None,
    )
    if not found.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    scores: dict[Any, float] = by_node(G, found.table["value"].to_numpy())
    return scores


def _degree_share(G: Any, degree: Any) -> dict[Any, float]:
    if len(G) <= 1:
        return dict.fromkeys(G.nodes, 1)
    shares: dict[Any, float] = by_node(G, degree * (1.0 / (len(G) - 1.0)))
    return shares


@takes()
def degree_centrality(G: Any) -> dict[Any, float]:
    topology = G.topology()
    if G.is_directed():
        return _degree_share(G, topology.out_degree + topology.in_degree)
    return _degree_share(G, topology.out_degree + G.loops())


@takes(only_direction)
def in_degree_centrality(G: Any) -> dict[Any, float]:
    return _degree_share(G, G.topology().in_degree)


@takes(only_direction)
def out_degree_centrality(G: Any) -> dict[Any, float]:
    return _degree_share(G, G.topology().out_degree)
