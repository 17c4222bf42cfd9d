"""Path lengths with NetworkX's names."""

import math
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from graphsys.core.threads import ThreadTeam
from graphsys.engine.algorithms.shortest_paths import sssp
from graphsys.engine.algorithms.traversal import search
from graphsys.interop.networkx_calls import (
    known_node,
    natural_cutoff,
    number_of,
    takes,
)

# ruff: noqa: D103, N803  # documented by NetworkX, whose argument names these are

_EXACT = 2**53


def hops(G: Any, start: int, *, backwards: bool = False) -> tuple[Any, Any]:
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


def by_hops(G: Any, nodes: Any, distance: Any, cutoff: Any = None) -> dict[Any, int]:
    """Return hops by node; a cutoff of 1.5 lets two pass, as in NetworkX."""
    whole = None if cutoff is None or math.isinf(cutoff) else math.ceil(cutoff)
    return _by_distance(G, nodes, distance, whole)


def _by_distance(G: Any, nodes: Any, distance: Any, cutoff: Any) -> dict[Any, Any]:
    if cutoff is not None:
        is_near = distance <= cutoff
        nodes, distance = nodes[is_near], distance[is_near]
    named = (G.nodes[k] for k in nodes.tolist())
    return dict(zip(named, distance.tolist(), strict=True))


@takes(natural_cutoff)
def single_source_shortest_path_length(
    G: Any, source: Any, cutoff: Any = None
) -> dict[Any, int]:
    start = number_of(G, source, f"Source {source} is not in G")
    return by_hops(G, *hops(G, start), cutoff)


@takes(natural_cutoff)
def single_target_shortest_path_length(
    G: Any, target: Any, cutoff: Any = None
) -> dict[Any, int]:
    start = number_of(G, target, f"Target {target} is not in G")
    return by_hops(G, *hops(G, start, backwards=True), cutoff)


def _lengths(G: Any, start: int, weight: Any, cutoff: Any) -> dict[Any, Any]:
    if weight is None:
        return by_hops(G, *hops(G, start), cutoff)
    values = G.values_of(weight)
    if not np.all(np.isfinite(values)):
        raise NotImplementedError("weights must be finite numbers")
    found = sssp.native(G.topology(weight), source=start).table["value"].combine_chunks()
    nodes = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    distance = found.drop_null().to_numpy()
    if values.dtype.kind in "bui":
        if distance.max() >= _EXACT or (len(values) and values.max() >= _EXACT):
            raise NotImplementedError("integer distances of 2**53 or more are not exact")
        distance = distance.astype(np.int64)
    order = np.argsort(distance, kind="stable")
    return _by_distance(G, nodes[order], distance[order], cutoff)


@takes(natural_cutoff)
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


@takes(known_node("source"))
def descendants(G: Any, source: Any) -> set[Any]:
    nodes, _ = hops(G, G.number[source])
    return {G.nodes[k] for k in nodes.tolist()} - {source}


@takes(known_node("source"))
def ancestors(G: Any, source: Any) -> set[Any]:
    nodes, _ = hops(G, G.number[source], backwards=True)
    return {G.nodes[k] for k in nodes.tolist()} - {source}


def _two_nodes(graph: Any, arguments: dict[str, Any]) -> str | None:
    is_fine = arguments["source"] in graph and arguments["target"] in graph
    return None if is_fine else "no such node"


@takes(_two_nodes)
def has_path(G: Any, source: Any, target: Any) -> bool:
    nodes, _ = hops(G, G.number[source])
    return bool(np.any(nodes == G.number[target]))


@takes()
def dijkstra_path_length(G: Any, source: Any, target: Any, weight: Any = "weight") -> Any:
    start = number_of(G, source, f"Node {source} not found in graph")
    return _length(G, start, target, weight, f"Node {target} not reachable from {source}")


@takes(known_node("source"))
def bellman_ford_path_length(
    G: Any, source: Any, target: Any, weight: Any = "weight"
) -> Any:
    start = G.number[source]
    return _length(G, start, target, weight, f"node {target} not reachable from {source}")


def _length(G: Any, start: int, target: Any, weight: Any, message: str) -> Any:
    if G.nodes[start] == target:
        return 0
    if target not in G:
        raise nx.NetworkXNoPath(message)
    found = _lengths(G, start, weight, None).get(target)
    if found is None:
        raise nx.NetworkXNoPath(message)
    return found


@takes(natural_cutoff)
def all_pairs_shortest_path_length(
    G: Any, cutoff: Any = None
) -> Iterator[tuple[Any, dict[Any, int]]]:
    return _all_lengths(G, None, cutoff)


@takes(natural_cutoff)
def all_pairs_dijkstra_path_length(
    G: Any, cutoff: Any = None, weight: Any = "weight"
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    return _all_lengths(G, weight, cutoff)


@takes()
def all_pairs_bellman_ford_path_length(
    G: Any, weight: Any = "weight"
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    return _all_lengths(G, weight, None)


def _all_lengths(G: Any, weight: Any, cutoff: Any) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Yield the lengths from node after node; weights are refused before the first."""
    if weight is not None and len(G):
        _refuse_negative(G, weight)
    return ((n, _lengths(G, k, weight, cutoff)) for k, n in enumerate(G.nodes))


def _refuse_negative(G: Any, weight: str) -> None:
    values = G.values_of(weight)
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise NotImplementedError("weights must be finite and not negative")


def _known_ends(graph: Any, arguments: dict[str, Any]) -> str | None:
    if arguments["method"] not in ("dijkstra", "bellman-ford"):
        return "no such method"
    ends = [arguments[name] for name in ("source", "target")]
    if not all(node is None or node in graph for node in ends):
        return "no such node"
    is_back = ends[0] is None and ends[1] is not None
    if is_back and arguments["weight"] is not None and graph.is_directed():
        return "searches against weighted edges are left to NetworkX"
    return None


@takes(_known_ends)
def shortest_path_length(
    G: Any,
    source: Any = None,
    target: Any = None,
    weight: Any = None,
    method: str = "dijkstra",
) -> Any:
    if source is None and target is None:
        return _all_lengths(G, weight, None)
    if source is None and weight is None:
        return by_hops(G, *hops(G, G.number[target], backwards=True))
    if source is None or target is None:
        return _lengths(G, G.number[target if source is None else source], weight, None)
    where = "node" if method == "bellman-ford" else "Node"
    message = f"No path between {source} and {target}."
    if weight is not None:
        message = f"{where} {target} not reachable from {source}"
    return _length(G, G.number[source], target, weight, message)


@takes(without=("nodelist",))
def floyd_warshall_numpy(G: Any, nodelist: Any = None, weight: Any = "weight") -> Any:
    if not len(G) or weight is None:
        raise NotImplementedError("NetworkX says what this gives")
    _refuse_negative(G, weight)
    topology = G.topology(weight)
    distance = np.full((len(G), len(G)), np.inf)
    for k in range(len(G)):
        found = sssp.native(topology, source=k).table["value"].combine_chunks()
        distance[k, found.is_valid().to_numpy(zero_copy_only=False)] = found.drop_null()
    return distance
