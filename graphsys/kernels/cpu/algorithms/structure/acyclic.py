"""Orders of graphs without cycles, and a cycle where there is one.

Kahn, "Topological sorting of large networks", CACM 5(11), 1962: nodes that nothing leads to
are taken out, and then those that this frees. What is left lies on cycles, or behind them:
whoever walks back from a node of it meets a node twice. O(N + E), in one thread.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import lean_jit


@lean_jit
def find_levels(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    left: npt.NDArray[np.int64],
    queue: npt.NDArray[Any],
    level: npt.NDArray[np.int64],
) -> int:
    """Give every node the edges of the longest path that ends at it.

    Args:
        begins: Where each row of out-neighbors begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Out-neighbors ``[E]``.
        left: Edges into every node ``[N]``; above 0 in the end on cycles and behind them.
        queue: Receives the nodes, by rising level ``[N]``.
        level: Zeros; receives the levels ``[N]``.

    Returns:
        How many nodes there are on no cycle and behind none.
    """
    first, last = np.int64(0), np.int64(0)
    for row in range(len(begins)):
        if left[row] == 0:
            queue[last] = row
            last += 1
    while first < last:
        node = np.int64(queue[first])
        first += 1
        for entry in range(np.int64(begins[node]), np.int64(ends[node])):
            other = np.int64(indices[entry])
            left[other] -= 1
            if left[other] == 0:
                # nodes come by rising level: the last one before it is the farthest
                level[other] = level[node] + 1
                queue[last] = other
                last += 1
    return int(last)


@lean_jit
def peel_leaves(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    left: npt.NDArray[np.int64],
    queue: npt.NDArray[Any],
) -> int:
    """Take nodes of one edge out of an undirected graph, until all others have two.

    Args:
        begins: Where each row begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Neighbors ``[E]``.
        left: Receives edges to nodes that are left, a loop as two; 0 of who is not ``[N]``.
        queue: Scratch ``[N]``.

    Returns:
        How many nodes are left.
    """
    num_nodes = np.int64(len(begins))
    first, last = np.int64(0), np.int64(0)
    for row in range(num_nodes):
        count = np.int64(ends[row]) - np.int64(begins[row])
        for entry in range(np.int64(begins[row]), np.int64(ends[row])):
            # A loop stands once in its row but is two ends: its node never counts as a
            # leaf.
            if np.int64(indices[entry]) == row:
                count += 1
        left[row] = count
        if count <= 1:
            left[row] = 0
            queue[last] = row
            last += 1
    while first < last:
        node = np.int64(queue[first])
        first += 1
        for entry in range(np.int64(begins[node]), np.int64(ends[node])):
            other = np.int64(indices[entry])
            if left[other] == 0:
                continue
            left[other] -= 1
            if left[other] == 1:
                left[other] = 0
                queue[last] = other
                last += 1
    return int(num_nodes - last)


@lean_jit
def walk_to_cycle(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    left: npt.NDArray[np.int64],
    rank: npt.NDArray[Any],
    is_directed: bool,
    met: npt.NDArray[np.int64],
    walk: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Walk from node to node until one is met again, always to the least that is left.

    Args:
        begins: Where each row begins, of in-neighbors where there is a direction ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Neighbors ``[E]``.
        left: Above 0 of the nodes that the walk may visit, at least one ``[N]``.
        rank: Places of the nodes in the order that decides ``[N]``.
        is_directed: Whether edges have a direction; else none is taken back.
        met: -1 everywhere; scratch ``[N]``.
        walk: Receives the nodes ``[N]``.

    Returns:
        Where in the walk the cycle begins, and where it ends.
    """
    node, last = np.int64(-1), np.int64(-1)
    for row in range(len(begins)):
        if left[row] > 0 and (node < 0 or np.int64(rank[row]) < np.int64(rank[node])):
            node = np.int64(row)
    length = np.int64(0)
    while met[node] < 0:
        met[node] = length
        walk[length] = node
        length += 1
        best, may_skip = np.int64(-1), not is_directed
        for entry in range(np.int64(begins[node]), np.int64(ends[node])):
            other = np.int64(indices[entry])
            if left[other] == 0:
                continue
            if may_skip and other == last:
                may_skip = False  # the edge by which it came; another one may lead back
                continue
            # A loop is the shortest cycle that there is.
            if other == node:
                best = node
                break
            if best < 0 or np.int64(rank[other]) < np.int64(rank[best]):
                best = other
        last, node = node, best
    return int(met[node]), int(length)


@lean_jit
def longest_lengths(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    weight_begins: npt.NDArray[Any],
    weight: npt.NDArray[Any],
    rank: npt.NDArray[Any],
    queue: npt.NDArray[Any],
    longest: npt.NDArray[np.float64],
    parent: npt.NDArray[np.int64],
) -> None:
    """Give every node the length of the longest path that ends at it, at least 0.

    Args:
        begins: Where each row of out-neighbors begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: Out-neighbors ``[E]``.
        weight_begins: Where each row begins in the lengths ``[N]``.
        weight: Lengths ``[E]``; or of length 0: all are 1.
        rank: Places of the nodes in the order that decides ``[N]``.
        queue: All nodes, none before one that leads to it ``[N]``.
        longest: Zeros; receives the lengths ``[N]``.
        parent: -1 everywhere; receives the node before, of several the least ``[N]``.
    """
    for place in range(len(queue)):
        node = np.int64(queue[place])
        for entry in range(np.int64(begins[node]), np.int64(ends[node])):
            other = np.int64(indices[entry])
            far = longest[node] + 1.0
            if len(weight) > 0:
                shift = np.int64(weight_begins[node]) - np.int64(begins[node])
                far = longest[node] + np.float64(weight[entry + shift])
            known = parent[other]
            # Only where a path was taken already: a length of 0 needs no node before.
            is_first = known >= 0 and np.int64(rank[node]) < np.int64(rank[known])
            if far > longest[other] or (far == longest[other] and is_first):
                longest[other], parent[other] = far, node
