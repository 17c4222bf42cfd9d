"""Paths, distances and centralities with NetworkX's names."""

from typing import Any

import networkx as nx
import numpy as np

from graphsys.core.threads import ThreadTeam
from graphsys.engine.native.betweenness import betweenness
from graphsys.engine.native.distances import DistanceSums, distance_sums
from graphsys.engine.native.pagerank import pagerank as native_pagerank
from graphsys.engine.native.shortest_paths import sssp
from graphsys.engine.native.traversal import search
from graphsys.interop.networkx_calls import (
    by_node,
    chosen_numbers,
    number_of,
    only_direction,
    plain_nodes,
    some_nodes,
    takes,
)

# ruff: noqa: D103, N803  # documented by NetworkX, whose argument names these are

_EXACT = 2**53


def _hops(G: Any, start: int, *, backwards: bool = False) -> tuple[Any, Any]:
    """Return the numbers of the nodes reached, by rising distance, and the distances."""
    topology = G.topology()
    out, into = topology.csr("out"), topology.csr("in")
    if backwards:
        out, into = into, out
    with ThreadTeam() as team:
        levels = search(out, into, start, team)
    is_reached = np.unpackbits(levels.reached.view(np.uint8), bitorder="little")
    nodes = np.flatnonzero(is_reached[: len(G)])
    distance = levels.distance[nodes]
    order = np.argsort(distance, kind="stable")
    return nodes[order], distance[order]


def _by_distance(G: Any, nodes: Any, distance: Any, cutoff: Any) -> dict[Any, Any]:
    if cutoff is not None:
        is_near = distance <= cutoff
        nodes, distance = nodes[is_near], distance[is_near]
    named = (G.nodes[k] for k in nodes.tolist())
    return dict(zip(named, distance.tolist(), strict=True))


def _natural_cutoff(_: Any, arguments: dict[str, Any]) -> str | None:
    cutoff = arguments["cutoff"]
    is_fine = cutoff is None or (isinstance(cutoff, int | float) and cutoff >= 0)
    return None if is_fine else "the cutoff must be a number >= 0"


@takes(_natural_cutoff)
def single_source_shortest_path_length(
    G: Any, source: Any, cutoff: Any = None
) -> dict[Any, int]:
    start = number_of(G, source, f"Source {source} is not in G")
    return _by_distance(G, *_hops(G, start), cutoff)


@takes(_natural_cutoff)
def single_target_shortest_path_length(
    G: Any, target: Any, cutoff: Any = None
) -> dict[Any, int]:
    start = number_of(G, target, f"Target {target} is not in G")
    return _by_distance(G, *_hops(G, start, backwards=True), cutoff)


def _lengths(G: Any, start: int, weight: Any, cutoff: Any) -> dict[Any, Any]:
    if weight is None:
        return _by_distance(G, *_hops(G, start), cutoff)
    values = G.values_of(weight)
    if not np.all(np.isfinite(values)):
        raise NotImplementedError("weights must be finite numbers")
    found = sssp(G.topology(weight), source=start).table["value"].combine_chunks()
    nodes = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    distance = found.drop_null().to_numpy()
    if values.dtype.kind in "bui":
        if distance.max() >= _EXACT or (len(values) and values.max() >= _EXACT):
            raise NotImplementedError("integer distances of 2**53 or more are not exact")
        distance = distance.astype(np.int64)
    order = np.argsort(distance, kind="stable")
    return _by_distance(G, nodes[order], distance[order], cutoff)


@takes(_natural_cutoff)
def single_source_dijkstra_path_length(
    G: Any, source: Any, cutoff: Any = None, weight: Any = "weight"
) -> dict[Any, Any]:
    start = number_of(G, source, f"Node {source} not found in graph")
    return _lengths(G, start, weight, cutoff)


@takes()
def single_source_bellman_ford_path_length(
    G: Any, source: Any, weight: Any = "weight"
) -> dict[Any, Any]:
    start = number_of(G, source, f"Source {source} not in G")
    return _lengths(G, start, weight, None)


def _known_source(graph: Any, arguments: dict[str, Any]) -> str | None:
    return None if arguments["source"] in graph else "no such node"


@takes(_known_source)
def descendants(G: Any, source: Any) -> set[Any]:
    nodes, _ = _hops(G, G.number[source])
    return {G.nodes[k] for k in nodes.tolist()} - {source}


@takes(_known_source)
def ancestors(G: Any, source: Any) -> set[Any]:
    nodes, _ = _hops(G, G.number[source], backwards=True)
    return {G.nodes[k] for k in nodes.tolist()} - {source}


def _sums(G: Any, nodes: Any = None, direction: Any = "out") -> DistanceSums:
    return distance_sums(G.topology().csr(direction), np.array(chosen_numbers(G, nodes)))


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


def _known_or_none(graph: Any, arguments: dict[str, Any]) -> str | None:
    node = arguments["u"]
    return None if node is None or node in graph else "no such node"


@takes(_known_or_none, without=("distance",))
def closeness_centrality(
    G: Any, u: Any = None, distance: Any = None, wf_improved: bool = True
) -> Any:
    sums = _sums(G, u, direction="in")
    others = sums.reached - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(sums.total > 0, others / sums.total, 0.0)
    if wf_improved:
        values = values * (others / max(len(G) - 1, 1))
    if u is not None:
        return values.tolist()[0]
    return by_node(G, values)


@takes(without=("nbunch", "distance", "sources"))
def harmonic_centrality(
    G: Any, nbunch: Any = None, distance: Any = None, sources: Any = None
) -> dict[Any, float]:
    found: dict[Any, float] = by_node(G, _sums(G, direction="in").harmonic)
    return found


@takes(without=("k", "weight", "endpoints"))
def betweenness_centrality(
    G: Any,
    k: Any = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    found = betweenness(G.topology(), normalized=normalized)
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
    found = native_pagerank(
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
