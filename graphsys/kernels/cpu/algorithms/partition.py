"""Streaming partitioners: one pass over nodes with their neighbors.

Method: linear deterministic greedy (LDG: Stanton, Kliot, "Streaming graph partitioning
for large distributed graphs", KDD 2012) and Fennel (Tsourakakis et al., WSDM 2014), both
restreamed (Nishimura, Ugander, "Restreaming graph partitioning", KDD 2013): every pass
sees the assignment of the one before, loads start from zero.

Departs from the papers: a node's load may be any weight, for example its degree, so that
edges rather than nodes are balanced, and Fennel's penalty is what that load would cost,
its weight times the derivative; the capacity is a hard limit in every pass. A pass may
also keep the loads of the one before and take each node out before it is placed anew.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import inline_jit, jit

UNASSIGNED = 0xFFFFFFFF


@inline_jit
def _penalty(load: float, capacity: float, alpha: float, gamma: float) -> float:
    return alpha * gamma * load ** (gamma - 1.0) if alpha > 0.0 else 1.0 - load / capacity


@jit
def stream_pass(
    first: int,
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    weights: npt.NDArray[np.float64],
    parts: npt.NDArray[np.uint32],
    loads: npt.NDArray[np.float64],
    capacity: float,
    sizes: npt.NDArray[np.int64],
    max_size: int,
    alpha: float,
    gamma: float,
    keeps_loads: bool,
) -> int:
    """Assign a block of nodes, one after the other.

    LDG picks the partition with the largest ``neighbors * (1 - load / capacity)``,
    Fennel the largest ``neighbors - weight * alpha * gamma * load ** (gamma - 1)``; ties
    go to the lighter partition. A full partition is not picked unless all are, and then
    the lightest is of those with the least wrong.

    Args:
        first: Number of the first node of the block.
        indptr: Row offsets of the block, ``[n + 1]``.
        weights: Load of each node of the block, float64 ``[n]``.
        parts: Partition of every node of the graph, uint32 ``[N]``; read for neighbors,
            written for the block.
        loads: Load of every partition in this pass, float64 ``[P]``; added to.
        capacity: Load that a partition may reach.
        sizes: Nodes of every partition in this pass, int64 ``[P]``; added to.
        max_size: Nodes that a partition may have.
        alpha: Fennel's penalty; 0 for LDG.
        gamma: Fennel's exponent.
        keeps_loads: ``loads`` and ``sizes`` hold all nodes already.

    Returns:
        How many nodes changed their partition.
    """
    num_parts = len(loads)
    counts = np.zeros(num_parts, dtype=np.int64)
    penalties = np.empty(num_parts)
    # Two of P penalties change with a node: powers are taken for those alone.
    for part in range(num_parts):
        penalties[part] = _penalty(loads[part], capacity, alpha, gamma)
    moved = 0
    for k in range(len(indptr) - 1):
        node = first + k
        for e in range(indptr[k], indptr[k + 1]):
            part = parts[indices[e]]
            if part != UNASSIGNED and indices[e] != node:
                counts[part] += 1
        own = parts[node]
        # Out of its partition first, or a full one could not keep its own node.
        if keeps_loads:
            loads[own] -= weights[k]
            sizes[own] -= 1
            penalties[own] = _penalty(loads[own], capacity, alpha, gamma)
        best = 0
        best_score = -np.inf
        for part in range(num_parts):
            load = loads[part]
            if alpha > 0.0:
                score = counts[part] - weights[k] * penalties[part]
            else:
                score = counts[part] * penalties[part]
            # Worse than any score, but not -inf: where all are full one must win, and too
            # many nodes break the store's limit while too much load only breaks the
            # balance.
            if sizes[part] >= max_size:
                score = -2e300
            elif load + weights[k] > capacity:
                score = -1e300
            if score > best_score or (score == best_score and load < loads[best]):
                best, best_score = part, score
        if own != best:
            moved += 1
        parts[node] = best
        loads[best] += weights[k]
        sizes[best] += 1
        penalties[best] = _penalty(loads[best], capacity, alpha, gamma)
        counts[:] = 0
    return moved


@jit
def append_rows(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    base: int,
    cursor: npt.NDArray[np.int64],
    out: npt.NDArray[np.int64],
) -> None:
    """Copy rows of an index behind what their rows in a block hold already.

    Args:
        indptr: Offsets of the rows, ``[n + 1]``.
        indices: Neighbors of the whole index.
        base: Added to every neighbor.
        cursor: Next place of every row in ``out``, int64 ``[n]``; advanced.
        out: The block's neighbors.
    """
    for row in range(len(cursor)):
        for e in range(indptr[row], indptr[row + 1]):
            out[cursor[row]] = np.int64(indices[e]) + base
            cursor[row] += 1


@jit
def measure_block(
    first: int,
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    parts: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.int64],
    ghosts: npt.NDArray[np.int64],
) -> None:
    """Count the edge ends of a block of nodes by partitions, and its ghosts.

    Args:
        first: Number of the first node of the block.
        indptr: Row offsets of the block, ``[n + 1]``.
        parts: Partition of every node, uint32 ``[N]``.
        ends: Edge ends by partition of the node and of its neighbor, int64 ``[P, P]``;
            added to.
        ghosts: Nodes of others that every partition needs a copy of, int64 ``[P]``: those
            with a neighbor in it; added to.
    """
    # Marked by row, so that nothing is cleared between two rows.
    seen = np.full(len(ends), -1, dtype=np.int64)
    for k in range(len(indptr) - 1):
        own = parts[first + k]
        for e in range(indptr[k], indptr[k + 1]):
            other = parts[indices[e]]
            ends[own, other] += 1
            if other != own and seen[other] != k:
                seen[other] = k
                ghosts[other] += 1


@jit
def vertex_cut_block(
    method: int,
    first: int,
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    degrees: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.uint64],
    balance: float,
    loads: npt.NDArray[np.int64],
    copies: npt.NDArray[np.uint64],
) -> None:
    """Assign each edge (seen from its smaller end) to a partition.

    Methods: 0, degree-based hashing (DBH: Xie et al., NIPS 2014): by the hash of the end
    with the smaller degree; 1, grid (Jain, Liao, Willke, "GraphBuilder", GRADES 2013): by
    the hashes of both ends, as row and column of a rectangle; 2, high-degree replicated
    first (HDRF: Petroni et al., CIKM 2015), greedily.

    Args:
        method: Which of the three.
        first: Number of the first node of the block.
        indptr: Row offsets of the block, ``[n + 1]``.
        degrees: Degree of every node, int64 ``[N]``.
        hashes: Hash of every node, uint64 ``[N]``.
        balance: HDRF's lambda.
        loads: Edges of every partition, int64 ``[P]``; added to.
        copies: Partitions that hold each node, as bits of words, uint64 ``[N, W]``.
    """
    num_parts = len(loads)
    # The grid nearest to a square: a node's copies are at most a row and a column.
    rows = int(np.sqrt(num_parts))
    while num_parts % rows:
        rows -= 1
    columns = num_parts // rows
    for k in range(len(indptr) - 1):
        node = first + k
        for e in range(indptr[k], indptr[k + 1]):
            other = np.int64(indices[e])
            # Each edge stands in both rows; it is assigned once, from its smaller end.
            if other < node:
                continue
            part = np.int64(0)
            if method == 0:
                chosen = node if degrees[node] <= degrees[other] else other
                part = np.int64(hashes[chosen] % np.uint64(num_parts))
            elif method == 1:
                row = np.int64(hashes[node] % np.uint64(rows))
                part = row * columns + np.int64(hashes[other] % np.uint64(columns))
            else:
                part = np.int64(_hdrf(node, int(other), degrees, balance, loads, copies))
            loads[part] += 1
            bit = np.uint64(1) << np.uint64(part & 63)
            copies[node, part >> 6] |= bit
            copies[other, part >> 6] |= bit


@jit
def _hdrf(
    node: int,
    other: int,
    degrees: npt.NDArray[np.int64],
    balance: float,
    loads: npt.NDArray[np.int64],
    copies: npt.NDArray[np.uint64],
) -> int:
    # The end of higher degree counts less where a copy exists: it is the one to be
    # replicated.
    share = degrees[node] / (degrees[node] + degrees[other])
    least, most = loads.min(), loads.max()
    best, best_score = 0, -1.0
    for part in range(len(loads)):
        bit = np.uint64(1) << np.uint64(part & 63)
        score = balance * (most - loads[part]) / (1.0 + most - least)
        if copies[node, part >> 6] & bit:
            score += 2.0 - share
        if copies[other, part >> 6] & bit:
            score += 1.0 + share
        if score > best_score:
            best, best_score = part, score
    return best


@jit
def count_bits(copies: npt.NDArray[np.uint64]) -> int:
    """Return the number of set bits of all words."""
    total = 0
    for row in copies:
        for word in row:
            while word:
                word &= word - np.uint64(1)
                total += 1
    return total
