"""Blocks, bridges and orders with NetworkX's names, in the order of its searches."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from graphsys.engine.algorithms.structure.acyclic import longest_lengths
from graphsys.engine.algorithms.structure.cut_points import Blocks, blocks_of_rows
from graphsys.interop.networkx_calls import (
    no_direction,
    no_multigraph,
    only_direction,
    some_nodes,
    takes,
)
from graphsys.interop.networkx_trees import strong_numbers
from graphsys.kernels.cpu.algorithms.ordered import search_in_order
from graphsys.kernels.cpu.algorithms.structure.acyclic import find_levels

# ruff: noqa: D103, N803  # documented by NetworkX, whose argument names these are

_EXACT = 2**53


def _blocks(G: Any) -> Blocks:
    indptr, indices = G.rows
    none = indptr[:0], indptr[:0], indices[:0]
    return blocks_of_rows((indptr[:-1], indptr[1:], indices), none)


def _members(found: Blocks) -> Iterator[Any]:
    bounds = found.bounds.tolist()
    return (found.members[a:b].tolist() for a, b in itertools.pairwise(bounds))


@takes(no_direction)
def biconnected_components(G: Any) -> Iterator[set[Any]]:
    return ({G.nodes[k] for k in block} for block in _members(_blocks(G)))


@takes(no_direction)
def is_biconnected(G: Any) -> bool:
    found = _blocks(G)
    return len(found.is_bridge) == 1 and len(found.members) == len(G)


@takes(no_direction)
def articulation_points(G: Any) -> Iterator[Any]:
    return (G.nodes[k] for k in _cut_nodes(_blocks(G)))


def _cut_nodes(found: Blocks) -> list[int]:
    """Return nodes as blocks below them are complete; the root of a tree behind them."""
    tops = found.members[found.bounds[1:] - 1].tolist()
    below = set(np.delete(found.members, found.bounds[1:] - 1).tolist())
    blocks = Counter(tops)
    last = {top: place for place, top in enumerate(tops)}
    cuts: dict[int, None] = {}
    for place, top in enumerate(tops):
        is_root = top not in below
        if not is_root or (blocks[top] > 1 and last[top] == place):
            cuts[top] = None
    return list(cuts)


def _bridge_places(G: Any) -> Any:
    """Return the entries of bridges, in the order of ``G.edges``."""
    found = _blocks(G)
    first = found.bounds[:-1][found.is_bridge]
    ends = np.sort(found.members[np.stack([first, first + 1])].astype(np.int64), axis=0)
    places = G.edge_places()
    own = G.source[places] * len(G) + G.rows[1][places]
    return places[np.isin(own, ends[0] * len(G) + ends[1])]


@takes(no_direction, without=("root",))
def bridges(G: Any, root: Any = None) -> Iterator[tuple[Any, Any]]:
    places = _bridge_places(G)
    pairs = zip(G.source[places].tolist(), G.rows[1][places].tolist(), strict=True)
    return ((G.nodes[u], G.nodes[v]) for u, v in pairs)


@takes(no_direction, without=("root",))
def has_bridges(G: Any, root: Any = None) -> bool:
    return bool(_blocks(G).is_bridge.any())


def _in_order(G: Any) -> tuple[Any, Any]:
    """Return the nodes that no cycle leads to, by level, and the levels of all."""
    indptr, indices = G.rows
    left = np.bincount(indices, minlength=len(G)).astype(np.int64)
    queue, level = np.empty(len(G), np.int64), np.zeros(len(G), np.int64)
    found = find_levels(indptr[:-1], indptr[1:], indices, left, queue, level)
    return queue[:found], level


@takes(only_direction, without=("default_weight",))
def dag_longest_path_length(G: Any, weight: str = "weight", default_weight: int = 1) -> Any:
    queue, _ = _in_order(G)
    if len(queue) < len(G):
        raise NotImplementedError("NetworkX says what is wrong with a cycle")
    if not len(G):
        return 0
    values = G.values_of(weight)
    longest, _ = longest_lengths(G.topology(weight), queue)
    found = float(longest.max())
    if values.dtype.kind not in "bui":
        return found
    if found >= _EXACT or (len(values) and np.abs(values).max() >= _EXACT):
        raise NotImplementedError("integer lengths of 2**53 or more are not exact")
    return int(found)


@takes(only_direction, some_nodes)
def is_semiconnected(G: Any) -> bool:
    # components are numbered against the edges: each must have one from the next
    component, count = strong_numbers(G)
    source, target = component[G.source], component[G.rows[1]]
    return len(np.unique(target[source == target + 1])) == count - 1


@takes(only_direction, some_nodes)
def is_aperiodic(G: Any) -> bool:
    indptr, indices = G.rows
    if strong_numbers(G)[1] != 1:
        raise NotImplementedError("NetworkX says that it is not strongly connected")
    order, parent, depth = np.full((3, len(G)), -1, dtype=np.int64)
    search_in_order(indptr, indices, np.zeros(1, np.int64), order, parent, depth)
    return int(np.gcd.reduce(depth[G.source] - depth[indices] + 1, initial=0)) == 1


@takes(only_direction, no_multigraph)
def is_tournament(G: Any) -> bool:
    num, target = len(G), G.rows[1].astype(np.int64)
    pairs = np.minimum(G.source, target) * num + np.maximum(G.source, target)
    is_whole = len(pairs) == num * (num - 1) // 2 == len(np.unique(pairs))
    return bool(is_whole and not G.num_loops)
