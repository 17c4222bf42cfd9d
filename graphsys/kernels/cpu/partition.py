"""Streaming partitioners: one pass over nodes with their neighbours.

Method: linear deterministic greedy (LDG: Stanton, Kliot, "Streaming graph partitioning
for large distributed graphs", KDD 2012) and Fennel (Tsourakakis et al., WSDM 2014), both
restreamed (Nishimura, Ugander, "Restreaming graph partitioning", KDD 2013): every pass
sees the assignment of the one before, loads start from zero.

Departs from the papers: a node's load may be any weight, for example its degree, so that
edges rather than nodes are balanced; the capacity is a hard limit in every pass.
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
    alpha: float,
    gamma: float,
) -> int:
    """Assign a block of nodes, one after the other.

    LDG picks the partition with the largest ``neighbours * (1 - load / capacity)``,
    Fennel the largest ``neighbours - alpha * gamma * load ** (gamma - 1)``; ties go to
    the lighter partition. A full partition is not picked unless all are.

    Args:
        first: Number of the first node of the block.
        indptr: Row offsets of the block, ``[n + 1]``.
        indices: Numbers of the neighbours.
        weights: Load of each node of the block, float64 ``[n]``.
        parts: Partition of every node of the graph, uint32 ``[N]``; read for neighbours,
            written for the block.
        loads: Load of every partition in this pass, float64 ``[P]``; added to.
        capacity: Load that a partition may reach.
        alpha: Fennel's penalty; 0 for LDG.
        gamma: Fennel's exponent.

    Returns:
        How many nodes changed their partition.
    """
    num_parts = len(loads)
    counts = np.zeros(num_parts, dtype=np.int64)
    penalties = np.empty(num_parts)
    for part in range(num_parts):
        penalties[part] = _penalty(loads[part], capacity, alpha, gamma)
    moved = 0
    for k in range(len(indptr) - 1):
        node = first + k
        for e in range(indptr[k], indptr[k + 1]):
            part = parts[indices[e]]
            if part != UNASSIGNED and indices[e] != node:
                counts[part] += 1
        best = 0
        best_score = -np.inf
        for part in range(num_parts):
            load = loads[part]
            if alpha > 0.0:
                score = counts[part] - penalties[part]
            else:
                score = counts[part] * penalties[part]
            if load + weights[k] > capacity:  # over capacity: only the lightest will do
                score = -1e300 - load
            if score > best_score or (score == best_score and load < loads[best]):
                best, best_score = part, score
        if parts[node] != best:
            moved += 1
        parts[node] = best
        loads[best] += weights[k]
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
        indices: Neighbours of the whole index.
        base: Added to every neighbour.
        cursor: Next place of every row in ``out``, int64 ``[n]``; advanced.
        out: The block's neighbours.
    """
    for row in range(len(cursor)):
        for e in range(indptr[row], indptr[row + 1]):
            out[cursor[row]] = np.int64(indices[e]) + base
            cursor[row] += 1
