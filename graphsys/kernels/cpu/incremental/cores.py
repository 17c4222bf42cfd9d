"""Core numbers after pairs of neighbors left a simple graph, and after others came."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.incremental.pairs import add_pair
from graphsys.kernels.jit import jit

_NEW, _CANDIDATE, _OUT = 0, 1, 2


@jit
def lower_cores(
    indptr: npt.NDArray[Any],
    ends: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    touched: npt.NDArray[np.int64],
    core: npt.NDArray[np.int64],
) -> None:
    """Lower core numbers that deletions left too high, node by node.

    A node's number is the largest h of which h neighbors have at least h; from an upper
    bound on, lowering by this ends at the core numbers in any order (Lu, Zhou, Zhang,
    Stanley, "The H-index of a network node and its relation to degree and coreness", 2016).

    Args:
        indices: Neighbors in the symmetric rows of a simple graph.
        touched: Nodes that lost a neighbor.
        core: At least the core numbers ``[N]``; changed.
    """
    is_waiting = np.zeros(len(core), dtype=np.bool_)
    stack = [np.int64(0)]
    stack.clear()
    for node in touched:
        if not is_waiting[node]:
            is_waiting[node] = True
            stack.append(node)
    with_at_least = np.zeros(np.max(core) + 2 if len(core) else 2, dtype=np.int64)
    while len(stack) > 0:
        node = stack.pop()
        is_waiting[node] = False
        old = core[node]
        # Only the counts up to the old number: larger ones cannot change it.
        with_at_least[: old + 1] = 0
        for entry in range(np.int64(indptr[node]), ends[node]):
            with_at_least[min(core[np.int64(indices[entry])], old)] += 1
        new, total = old, with_at_least[old]
        # From the old bound down, to the largest h that h neighbors support.
        while total < new:
            new -= 1
            total += with_at_least[new]
        if new == old:
            continue
        core[node] = new
        for entry in range(np.int64(indptr[node]), ends[node]):
            neighbor = np.int64(indices[entry])
            # Only these counted on this node's old number.
            if new < core[neighbor] <= old and not is_waiting[neighbor]:
                is_waiting[neighbor] = True
                stack.append(neighbor)


# long: rows and lists are visited in three places
@jit
def raise_cores(
    indptr: npt.NDArray[Any],
    ends: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    src: npt.NDArray[np.int64],
    dst: npt.NDArray[np.int64],
    core: npt.NDArray[np.int64],
    budget: int,
) -> int:
    """Raise core numbers pair by pair (Sariyuce et al., VLDB 2013: traversal).

    A pair raises numbers by one at most, and only of nodes that have the lower number of
    its two and are joined to it by such nodes.

    Args:
        indices: Neighbors in the symmetric rows of a simple graph without these pairs.
        src: One node of every pair ``[K]``.
        dst: The other.
        core: Core numbers without the pairs ``[N]``; changed.
        budget: Most entries to visit.

    Returns:
        How many pairs were worked in: fewer than all where the budget was used up.
    """
    num_nodes, num_pairs = len(ends), len(src)
    head = np.full(num_nodes, -1, dtype=np.int64)
    following = np.empty(2 * num_pairs, dtype=np.int64)
    other = np.empty(2 * num_pairs, dtype=np.int64)
    state = np.zeros(num_nodes, dtype=np.uint8)
    support = np.zeros(num_nodes, dtype=np.int64)
    found = np.empty(num_nodes, dtype=np.int64)
    stack = np.empty(num_nodes, dtype=np.int64)
    visited = 0
    for k in range(num_pairs):
        add_pair(k, src[k], dst[k], head, following, other)
        # The end of the larger number keeps it: one neighbor more of a lower one is no
        # support.
        first = src[k] if core[src[k]] <= core[dst[k]] else dst[k]
        low = core[first]
        found[0], state[first], num_found, at = first, _CANDIDATE, 1, 0
        while at < num_found:
            node = found[at]
            at += 1
            strong = 0
            for entry in range(np.int64(indptr[node]), ends[node]):
                strong += core[np.int64(indices[entry])] >= low
            place = head[node]
            while place >= 0:
                strong += core[other[place]] >= low
                place = following[place]
            support[node] = strong
            visited += 2 * (ends[node] - np.int64(indptr[node])) + 1
            if strong <= low:  # it cannot rise, and leads no further
                state[node] = _OUT
                continue
            for entry in range(np.int64(indptr[node]), ends[node]):
                neighbor = np.int64(indices[entry])
                if core[neighbor] == low and state[neighbor] == _NEW:
                    state[neighbor] = _CANDIDATE
                    found[num_found] = neighbor
                    num_found += 1
            place = head[node]
            while place >= 0:
                neighbor = other[place]
                if core[neighbor] == low and state[neighbor] == _NEW:
                    state[neighbor] = _CANDIDATE
                    found[num_found] = neighbor
                    num_found += 1
                place = following[place]
        height = 0
        for place in range(num_found):
            if state[found[place]] == _OUT:
                stack[height] = found[place]
                height += 1
        while height > 0:  # who does not rise supports nobody
            height -= 1
            node = stack[height]
            visited += ends[node] - np.int64(indptr[node]) + 1
            for entry in range(np.int64(indptr[node]), ends[node]):
                neighbor = np.int64(indices[entry])
                if state[neighbor] == _CANDIDATE:
                    support[neighbor] -= 1
                    if support[neighbor] <= low:
                        state[neighbor] = _OUT
                        stack[height] = neighbor
                        height += 1
            place = head[node]
            while place >= 0:
                neighbor = other[place]
                place = following[place]
                if state[neighbor] == _CANDIDATE:
                    support[neighbor] -= 1
                    if support[neighbor] <= low:
                        state[neighbor] = _OUT
                        stack[height] = neighbor
                        height += 1
        for place in range(num_found):
            core[found[place]] += state[found[place]] == _CANDIDATE
            state[found[place]] = _NEW
        if visited > budget:
            return k + 1
    return num_pairs
