"""What depends on the order of nodes and neighbors, with NetworkX's names and orders."""

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from graphsys.engine.algorithms.components import wcc
from graphsys.interop.networkx_calls import (
    known_node,
    natural_cutoff,
    no_direction,
    no_multigraph,
    number_of,
    some_nodes,
    takes,
)
from graphsys.kernels.cpu.algorithms.ordered import (
    color_in_order,
    match_in_order,
    search_in_order,
)

# ruff: noqa: D103, N803  # documented by NetworkX, whose argument names these are


class _SearchOrder:
    """Nodes in the order in which they were found, their parents and depths."""

    def __init__(self, rows: tuple[Any, Any], sources: Any, limit: Any = None) -> None:
        num_nodes = len(rows[0]) - 1
        order, self.parent = (np.empty(num_nodes, dtype=np.int64) for _ in range(2))
        self.depth = np.full(num_nodes, -1, dtype=np.int64)
        starts = np.array(sources, dtype=np.int64)
        found = search_in_order(*rows, starts, order, self.parent, self.depth)
        self.order = order[:found]
        if limit is not None:
            self.order = self.order[self.depth[self.order] <= limit]


def _edges(G: Any, source: Any, depth_limit: Any) -> Iterator[tuple[Any, Any]]:
    found = _SearchOrder(G.rows, [G.number[source]], depth_limit)
    nodes = found.order[1:]
    pairs = zip(found.parent[nodes].tolist(), nodes.tolist(), strict=True)
    return ((G.nodes[u], G.nodes[v]) for u, v in pairs)


def _no_way_back(graph: Any, arguments: dict[str, Any]) -> str | None:
    is_back = arguments["reverse"] and graph.is_directed()
    return "searches against the edges are left to NetworkX" if is_back else None


def _plain_limit(_: Any, arguments: dict[str, Any]) -> str | None:
    limit = arguments["depth_limit"]
    return None if isinstance(limit, int | None) else "depth_limit must be an integer"


_SEARCHED = (known_node("source"), _plain_limit)


@takes(*_SEARCHED, _no_way_back, without=("sort_neighbors",))
def bfs_edges(
    G: Any,
    source: Any,
    reverse: bool = False,
    depth_limit: Any = None,
    sort_neighbors: Any = None,
) -> Iterator[tuple[Any, Any]]:
    return _edges(G, source, depth_limit)


@takes(*_SEARCHED, _no_way_back, without=("sort_neighbors",))
def bfs_tree(
    G: Any,
    source: Any,
    reverse: bool = False,
    depth_limit: Any = None,
    sort_neighbors: Any = None,
) -> Any:
    tree = nx.DiGraph()
    tree.add_node(source)
    tree.add_edges_from(_edges(G, source, depth_limit))
    return tree


@takes(*_SEARCHED, without=("sort_neighbors",))
def bfs_predecessors(
    G: Any, source: Any, depth_limit: Any = None, sort_neighbors: Any = None
) -> Iterator[tuple[Any, Any]]:
    return ((child, parent) for parent, child in _edges(G, source, depth_limit))


@takes(*_SEARCHED, without=("sort_neighbors",))
def bfs_successors(
    G: Any, source: Any, depth_limit: Any = None, sort_neighbors: Any = None
) -> Iterator[tuple[Any, list[Any]]]:
    edges = list(_edges(G, source, depth_limit))
    if not edges:
        return iter([(source, [])])
    groups = itertools.groupby(edges, key=lambda edge: edge[0])
    return ((parent, [child for _, child in some]) for parent, some in groups)


def _plain_sources(graph: Any, arguments: dict[str, Any]) -> str | None:
    sources = arguments["sources"]
    if sources in graph:
        return None
    if not isinstance(sources, list | tuple | set | frozenset):
        return "sources must be a node or a collection of nodes"
    is_fine = all(node in graph for node in sources)
    return None if is_fine else "sources has members that are no nodes"


@takes(_plain_sources)
def bfs_layers(G: Any, sources: Any) -> Iterator[list[Any]]:
    chosen = [sources] if sources in G else list(set(sources))
    found = _SearchOrder(G.rows, [G.number[node] for node in chosen])
    depths = found.depth[found.order].tolist()
    pairs = zip(depths, found.order.tolist(), strict=True)
    layers = itertools.groupby(pairs, key=lambda pair: pair[0])
    return ([G.nodes[k] for _, k in layer] for _, layer in layers)


@takes()
def descendants_at_distance(G: Any, source: Any, distance: Any) -> set[Any]:
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    found = _SearchOrder(G.rows, [G.number[source]])
    chosen = found.order[found.depth[found.order] == distance]
    return {G.nodes[k] for k in chosen.tolist()}


def _paths(G: Any, source: Any, cutoff: Any = None) -> dict[Any, list[Any]]:
    limit = None if cutoff is None or math.isinf(cutoff) else math.ceil(cutoff)
    found = _SearchOrder(G.rows, [G.number[source]], limit)
    nodes = found.order.tolist()
    paths = {nodes[0]: [source]}
    for node, parent in zip(nodes[1:], found.parent[nodes[1:]].tolist(), strict=True):
        paths[node] = [*paths[parent], G.nodes[node]]
    return {G.nodes[node]: path for node, path in paths.items()}


@takes(natural_cutoff)
def single_source_shortest_path(
    G: Any, source: Any, cutoff: Any = None
) -> dict[Any, list[Any]]:
    number_of(G, source, f"Source {source} not in G")
    return _paths(G, source, cutoff)


@takes(natural_cutoff)
def all_pairs_shortest_path(
    G: Any, cutoff: Any = None
) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    return ((node, _paths(G, node, cutoff)) for node in G.nodes)


def _known_method(graph: Any, arguments: dict[str, Any]) -> str | None:
    if arguments["method"] not in ("dijkstra", "bellman-ford"):
        return "no such method"
    source = arguments["source"]
    return None if source is None or source in graph else "no such node"


@takes(_known_method, without=("target", "weight"))
def shortest_path(
    G: Any,
    source: Any = None,
    target: Any = None,
    weight: Any = None,
    method: str = "dijkstra",
) -> Any:
    if source is None:
        return all_pairs_shortest_path(G)
    return _paths(G, source)


def _largest_first(_: Any, arguments: dict[str, Any]) -> str | None:
    is_ours = arguments["strategy"] == "largest_first" and not arguments["interchange"]
    return None if is_ours else "only largest_first, without interchange"


@takes(_largest_first)
def greedy_color(
    G: Any, strategy: Any = "largest_first", interchange: bool = False
) -> dict[Any, int]:
    order = np.argsort(-G.degrees(), kind="stable")
    color = np.full(len(G), -1, dtype=np.int64)
    indptr, indices = G.rows
    color_in_order(indptr, indices, order, color)
    pairs = zip(order.tolist(), color[order].tolist(), strict=True)
    return {G.nodes[node]: number for node, number in pairs}


@takes(no_direction, no_multigraph)
def maximal_matching(G: Any) -> set[tuple[Any, Any]]:
    places = G.edge_places()
    src, dst = G.source[places], G.rows[1][places]
    is_chosen = np.zeros(len(places), dtype=np.bool_)
    match_in_order(src, dst, np.zeros(len(G), dtype=np.bool_), is_chosen)
    pairs = zip(src[is_chosen].tolist(), dst[is_chosen].tolist(), strict=True)
    return {(G.nodes[u], G.nodes[v]) for u, v in pairs}


def _two_colors(G: Any) -> Any:
    """Return 1 or 0 for every node, neighbors never alike; None if that cannot be."""
    if G.num_loops:
        return None
    topology = G.topology()
    both, label = topology.simple(), wcc.native(topology).table["value"].to_numpy()
    starts = np.flatnonzero(np.diff(G.rows[0]))  # the first of each component begins
    _, first = np.unique(label[starts], return_index=True)
    rows = both.indptr, both.indices
    depth = _SearchOrder(rows, starts[first]).depth
    source = np.repeat(depth, both.degrees())
    if np.any((source + depth[both.indices]) % 2 == 0):
        return None
    return np.where(depth < 0, 0, 1 - depth % 2)


@takes()
def is_bipartite(G: Any) -> bool:
    return _two_colors(G) is not None


@takes()
def color(G: Any) -> dict[Any, int]:
    colors = _two_colors(G)
    if colors is None:
        raise nx.NetworkXError("Graph is not bipartite.")
    return dict(zip(G.nodes, colors.tolist(), strict=True))


@takes(some_nodes, without=("top_nodes",))
def sets(G: Any, top_nodes: Iterable[Any] | None = None) -> tuple[set[Any], set[Any]]:
    if wcc.native(G.topology()).result != 1:
        raise nx.AmbiguousSolution(
            "Disconnected graph: Ambiguous solution for bipartite sets."
        )
    colors = color(G)
    top = {node for node, is_top in colors.items() if is_top}
    return top, set(G.nodes) - top
