"""What degrees alone, or pairs of them, decide, with NetworkX's names."""

from typing import Any

import networkx as nx
import numpy as np

from graphsys.engine.algorithms.components import wcc
from graphsys.interop.networkx_calls import (
    by_node,
    no_direction,
    no_multigraph,
    only_direction,
    some_nodes,
    takes,
)
from graphsys.interop.networkx_trees import strong_numbers

# ruff: noqa: D103, N803  # documented by NetworkX, whose argument names these are


@takes()
def number_of_selfloops(G: Any) -> int:
    return int(G.num_loops)


@takes(some_nodes)
def is_regular(G: Any) -> bool:
    if not G.is_directed():
        return len(np.unique(G.degrees())) == 1
    out, into = np.diff(G.rows[0]), np.bincount(G.rows[1], minlength=len(G))
    return len(np.unique(out)) == 1 and len(np.unique(into)) == 1


@takes(no_direction)
def is_k_regular(G: Any, k: Any) -> bool:
    return all(degree == k for degree in G.degrees().tolist())


@takes()
def s_metric(G: Any) -> float:
    degree, places = G.degrees(), G.edge_places()
    return float((degree[G.source[places]] * degree[G.rows[1][places]]).sum())


def _balance(G: Any) -> Any:
    """Return out-degrees less in-degrees."""
    return np.diff(G.rows[0]) - np.bincount(G.rows[1], minlength=len(G))


def _is_eulerian(G: Any) -> bool:
    if G.is_directed():
        return not _balance(G).any() and strong_numbers(G)[1] == 1
    return not (G.degrees() % 2).any() and _is_whole(G)


def _is_whole(G: Any) -> bool:
    return wcc.native(G.topology()).result == 1


def _has_path(G: Any) -> bool:
    if _is_eulerian(G):
        return True
    if not G.is_directed():
        return int((G.degrees() % 2).sum()) == 2 and _is_whole(G)
    over = _balance(G)
    over = over[over != 0]
    return bool(np.array_equal(np.sort(over), [-1, 1])) and _is_whole(G)


@takes(some_nodes)
def is_eulerian(G: Any) -> bool:
    return _is_eulerian(G)


@takes(some_nodes)
def is_semieulerian(G: Any) -> bool:
    return _has_path(G) and not _is_eulerian(G)


@takes(some_nodes, without=("source",))
def has_eulerian_path(G: Any, source: Any = None) -> bool:
    return _has_path(G)


def _reciprocity(G: Any) -> float:
    if not G.num_entries:
        raise nx.NetworkXError("Not defined for empty graphs")
    target = G.rows[1].astype(np.int64)
    pairs = np.minimum(G.source, target) * len(G) + np.maximum(G.source, target)
    count = int(G.num_entries)
    return (count - len(np.unique(pairs))) * 2 / count


_RECIPROCAL = (only_direction, no_multigraph)


@takes(*_RECIPROCAL)
def overall_reciprocity(G: Any) -> float:
    return _reciprocity(G)


@takes(*_RECIPROCAL, without=("nodes",))
def reciprocity(G: Any, nodes: Any = None) -> float:
    return _reciprocity(G)


def _sums_of_neighbors(G: Any, degree: Any) -> Any:
    """Return the sum of the out-neighbors' degrees, of every node."""
    return np.bincount(G.source, weights=degree[G.rows[1]], minlength=len(G))


@takes(no_multigraph, without=("source", "target", "nodes", "weight"))
def average_neighbor_degree(
    G: Any,
    source: str = "out",
    target: str = "out",
    nodes: Any = None,
    weight: Any = None,
) -> dict[Any, float]:
    degree = np.diff(G.rows[0]) if G.is_directed() else G.degrees()
    means = _sums_of_neighbors(G, degree) / np.maximum(degree, 1)
    found: dict[Any, float] = by_node(G, means)
    return found


@takes(no_multigraph, no_direction, without=("source", "target", "nodes", "weight"))
def average_degree_connectivity(
    G: Any,
    source: str = "in+out",
    target: str = "in+out",
    nodes: Any = None,
    weight: Any = None,
) -> dict[int, float]:
    degree = G.degrees()
    kinds, first, own = np.unique(degree, return_index=True, return_inverse=True)
    sums = np.bincount(own, weights=_sums_of_neighbors(G, degree))
    counts = np.bincount(own, weights=degree)
    means = (sums / np.maximum(counts, 1)).tolist()
    order = np.argsort(first).tolist()
    return {int(kinds[k]): means[k] if kinds[k] else 0 for k in order}


@takes(only_direction, without=("weight",))
def flow_hierarchy(G: Any, weight: Any = None) -> float:
    if not G.num_entries:
        raise nx.NetworkXError("flow_hierarchy not applicable to empty graphs")
    component = strong_numbers(G)[0]
    within = int(np.count_nonzero(component[G.source] == component[G.rows[1]]))
    return 1 - within / int(G.num_entries)
