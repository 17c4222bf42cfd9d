"""Connected components by Afforest: link a few neighbors first, skip the giant then.

Every node points to another of its component with a smaller number, or to itself: a
forest. Linking an edge hooks the larger root under the smaller one with an atomic, so the
root that remains is the smallest number. After linking only the first two neighbors of
every node most nodes are in one tree; edges out of that tree need not be looked at, since
the other end looks at them.

Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity computation via subgraph
sampling", IPDPS 2018; GAPBS (cc.cc).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_min, compare_exchange
from graphsys.kernels.cpu.loops import claimed_rows
from graphsys.kernels.jit import inline_jit, jit, lean_inline_jit, lean_jit


@inline_jit
def root_of(parent: Any, node: Any) -> Any:
    """Return the root of a node's tree; the path to it is halved."""
    while parent[node] != node:
        # Halving needs no second walk over the path.
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@lean_inline_jit
def link(parent: Any, one: Any, other: Any) -> None:
    """Join the trees of two nodes."""
    a = parent[one]
    b = parent[other]
    while a != b:
        # The larger root goes under the smaller, so no cycle can come of two threads'
        # links.
        high = max(a, b)
        low = min(a, b)
        above = parent[high]
        if above == low:
            break
        if above == high and compare_exchange(parent, np.int64(high), high, low):
            break
        # Another thread hooked it first: go on from where it hangs now.
        a = parent[parent[high]]
        b = parent[low]


@lean_jit
def hook_first(
    thread: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    parent: npt.NDArray[Any],
    second: npt.NDArray[Any],
) -> None:
    """Start the forest: hook every node under its first neighbor if that is smaller.

    The second neighbor lies in the same cache line, so it is copied out now.

    Args:
        indices: Neighbors, rows sorted ``[E]``.
        parent: Receives the forest ``[N]``.
        second: Receives the second neighbor, or the node itself ``[N]``.
    """
    for node in claimed_rows(bounds, counter):
        begin, end = np.int64(begins[node]), np.int64(ends[node])
        above = np.int64(node)
        if begin < end:
            above = min(above, np.int64(indices[begin]))
        parent[node] = above
        second[node] = indices[begin + 1] if begin + 1 < end else node


@lean_jit
def link_second(
    thread: int,
    bounds: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    parent: npt.NDArray[Any],
    second: npt.NDArray[Any],
) -> None:
    """Link every node with its second neighbor.

    Args:
        parent: The forest ``[N]``; updated.
        second: See :func:`hook_first`.
    """
    for node in claimed_rows(bounds, counter):
        link(parent, np.int64(node), np.int64(second[node]))


@lean_jit
def link_rest(
    thread: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    parent: npt.NDArray[Any],
    giant: int,
) -> None:
    """Link all nodes outside of one tree with all their neighbors.

    Args:
        parent: The forest ``[N]``; updated.
        giant: Root of the tree whose nodes are skipped.
    """
    for node in claimed_rows(bounds, counter):
        # Edges between two of the giant say nothing new; one that leads out is seen from
        # outside.
        if np.int64(parent[node]) == giant:
            continue
        for e in range(np.int64(begins[node]), np.int64(ends[node])):
            link(parent, np.int64(node), np.int64(indices[e]))


@lean_jit
def compress(
    thread: int,
    bounds: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    parent: npt.NDArray[Any],
) -> np.int64:
    """Let every node point to its root; return how many roots this thread saw.

    Args:
        parent: The forest ``[N]``; updated.
    """
    num_roots = np.int64(0)
    for node in claimed_rows(bounds, counter):
        above = parent[node]
        while above != parent[above]:
            above = parent[above]
        parent[node] = above
        num_roots += np.int64(above) == node
    return num_roots


@lean_jit
def least_ranks(
    thread: int,
    bounds: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    root: npt.NDArray[Any],
    rank: npt.NDArray[Any],
    least: npt.NDArray[Any],
) -> None:
    """Find the smallest rank of every tree.

    Args:
        root: Root of every node ``[N]``.
        rank: Rank of every node ``[N]``.
        least: Ranks of the nodes at first; at a root that of its tree then ``[N]``.
    """
    for node in claimed_rows(bounds, counter):
        atomic_min(least, np.int64(root[node]), rank[node])


@jit
def join_regions(
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    parent: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.int64],
) -> int:
    """Take every edge that joins two regions which are not joined yet.

    Kruskal, "On the shortest spanning subtree of a graph and the traveling salesman
    problem", Proceedings of the AMS 7, 1956.

    Args:
        left: Region of one end of every edge, in the order in which they are tried ``[B]``.
        right: Region of the other end ``[B]``.
        parent: Each region itself ``[K]``; joined regions have one root after.
        chosen: Receives the places of the edges that are taken ``[K - 1]``.

    Returns:
        How many are taken.
    """
    count = 0
    for place in range(len(left)):
        one, other = root_of(parent, left[place]), root_of(parent, right[place])
        if one != other:
            parent[max(one, other)] = min(one, other)
            chosen[count] = place
            count += 1
            if count == len(chosen):
                break
    return count
