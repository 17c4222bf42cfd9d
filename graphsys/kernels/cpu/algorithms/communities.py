"""Communities as numbers: compact numbering, folding a graph by them, modularity."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import jit


@jit
def number_communities(community: npt.NDArray[np.int64]) -> int:
    """Renumber communities 0, 1, 2 ... by their first node, in place; return how many."""
    numbers = np.full(len(community), -1, dtype=np.int64)
    found = 0
    for node in range(len(community)):
        c = community[node]
        if numbers[c] < 0:
            numbers[c] = found
            found += 1
        community[node] = numbers[c]
    return found


@jit
def fold_graph(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    weight: npt.NDArray[np.float64],
    strength: npt.NDArray[np.float64],
    community: npt.NDArray[np.int64],
    num_communities: int,
) -> tuple[
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.float64],
    npt.NDArray[np.float64],
]:
    """Make a graph whose nodes are communities, weights added up, inner edges left out.

    Returns:
        Row offsets, neighbors, weights and strengths of the folded graph.
    """
    starts = np.zeros(num_communities + 1, dtype=np.int64)
    folded_strength = np.zeros(num_communities, dtype=np.float64)
    for node in range(len(community)):
        starts[community[node] + 1] += 1
        folded_strength[community[node]] += strength[node]
    for c in range(num_communities):
        starts[c + 1] += starts[c]
    members = np.empty(len(community), dtype=np.int64)
    for node in range(len(community) - 1, -1, -1):
        c = community[node] + 1
        members[starts[c] - 1] = node
        starts[c] -= 1
    links = np.zeros(num_communities, dtype=np.float64)
    touched = np.empty(num_communities, dtype=np.int64)
    folded_indptr = np.zeros(num_communities + 1, dtype=np.int64)
    folded_indices = np.empty(len(indices), dtype=np.int64)
    folded_weight = np.empty(len(indices), dtype=np.float64)
    place = 0
    for c in range(num_communities):
        num_touched = 0
        begin = starts[c + 1]
        end = starts[c + 2] if c + 2 <= num_communities else len(community)
        for m in range(begin, end):
            for k in range(indptr[members[m]], indptr[members[m] + 1]):
                target = community[indices[k]]
                if target != c:
                    if links[target] == 0.0:
                        touched[num_touched] = target
                        num_touched += 1
                    links[target] += weight[k]
        for j in range(num_touched):
            folded_indices[place] = touched[j]
            folded_weight[place] = links[touched[j]]
            links[touched[j]] = 0.0
            place += 1
        folded_indptr[c + 1] = place
    return (
        folded_indptr,
        folded_indices[:place].copy(),
        folded_weight[:place].copy(),
        folded_strength,
    )


@jit
def modularity(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    weight: npt.NDArray[np.float64],
    strength: npt.NDArray[np.float64],
    loops: float,
    resolution: float,
    community: npt.NDArray[np.int64],
) -> float:
    """Return the modularity of communities numbered below n; ``loops`` is loops' weight."""
    total = strength.sum()
    if total == 0.0:
        return 0.0
    totals = np.zeros(len(strength), dtype=np.float64)
    inside = 2.0 * loops
    for node in range(len(strength)):
        totals[community[node]] += strength[node]
        for k in range(indptr[node], indptr[node + 1]):
            if community[indices[k]] == community[node]:
                inside += weight[k]
    squares = 0.0
    for c in range(len(totals)):
        squares += (totals[c] / total) ** 2
    return float(inside / total - resolution * squares)
