"""Components after changes: pieces that deletions cut off, and joins by new edges."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.components import root_of
from graphsys.kernels.jit import jit

_HERE, _KNOWN = 1, 2


@jit
def split_components(
    out_begins: npt.NDArray[Any],
    out_ends: npt.NDArray[Any],
    out_indices: npt.NDArray[Any],
    in_begins: npt.NDArray[Any],
    in_ends: npt.NDArray[Any],
    in_indices: npt.NDArray[Any],
    is_directed: bool,
    component: npt.NDArray[np.int64],
    terminals: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    budget: int,
    num_components: int,
    mark: npt.NDArray[np.uint8],
    queue: npt.NDArray[np.int64],
) -> int:
    """Give the pieces that components fell into numbers of their own.

    Every piece holds an end of an edge that was removed. From the first of a component's
    ends as many entries are searched as ``budget`` allows; the search from each other ends
    where it meets what was searched before, or has found a whole piece. So no node is
    searched twice, and ends that are still close to each other cost little.

    Args:
        out_begins: Where out rows begin ``[N]``.
        out_ends: Where they end ``[N]``.
        out_indices: Neighbors.
        in_begins: The same of in rows.
        in_ends: The same of in rows.
        in_indices: The same of in rows.
        is_directed: Whether the in rows are to be searched too.
        component: Component of every node ``[N]``; changed.
        terminals: Ends of removed edges, grouped by component.
        starts: First of each group, and their number.
        budget: Entries of the first search.
        num_components: Numbers of components so far.
        mark: Zeros ``[N]``; scratch.
        queue: Scratch ``[N]``.

    Returns:
        How many numbers of components there are now.
    """
    for group in range(len(starts) - 1):
        own = component[terminals[starts[group]]]
        is_one_known = False
        for place in range(starts[group], starts[group + 1]):
            first = terminals[place]
            # Another end's search has been here.
            if component[first] != own or mark[first] != 0:
                continue
            queue[0], mark[first] = first, _HERE
            head, tail, entries, meets = 0, 1, 0, False
            while head < tail and not meets and (is_one_known or entries <= budget):
                node = queue[head]
                head += 1
                entries += int(out_ends[node]) - int(out_begins[node])
                tail, meets = _visit(
                    out_begins, out_ends, out_indices, node, component, mark, queue, tail
                )
                if is_directed and not meets:
                    entries += int(in_ends[node]) - int(in_begins[node])
                    tail, meets = _visit(
                        in_begins, in_ends, in_indices, node, component, mark, queue, tail
                    )
            # It met the known part, or was the first and ran out of budget: that one keeps
            # the number.
            if meets or head < tail:
                is_one_known = True
                for k in range(tail):
                    mark[queue[k]] = _KNOWN
            else:
                for k in range(tail):
                    component[queue[k]] = num_components
                num_components += 1
    return num_components


@jit
def _visit(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    node: int,
    component: npt.NDArray[np.int64],
    mark: npt.NDArray[np.uint8],
    queue: npt.NDArray[np.int64],
    tail: int,
) -> tuple[int, bool]:
    """Queue the neighbors of a node in its component; tell whether one was known."""
    own, meets = component[node], False
    for entry in range(np.int64(begins[node]), np.int64(ends[node])):
        neighbor = np.int64(indices[entry])
        if component[neighbor] != own:
            continue
        if mark[neighbor] == _KNOWN:
            meets = True
        elif mark[neighbor] == 0:
            mark[neighbor] = _HERE
            queue[tail] = neighbor
            tail += 1
    return tail, meets


@jit
def join_components(
    src: npt.NDArray[np.int64], dst: npt.NDArray[np.int64], parent: npt.NDArray[np.int64]
) -> None:
    """Join the components at both ends of every edge.

    Args:
        src: Components of the sources.
        dst: Components of the destinations.
        parent: Parent of every component in the forest of joined ones; changed.
    """
    for k in range(len(src)):
        a, b = root_of(parent, src[k]), root_of(parent, dst[k])
        if a != b:
            parent[max(a, b)] = min(a, b)


@jit
def least_ranks(
    component: npt.NDArray[np.int64],
    parent: npt.NDArray[np.int64],
    rank: npt.NDArray[Any],
    least: npt.NDArray[np.int64],
) -> int:
    """Find the least rank of every component, and replace components by their roots.

    Args:
        component: Component of every node ``[N]``; changed.
        parent: The forest of joined components.
        rank: Rank of every node ``[N]``; empty where numbers are ranks.
        least: Receives the least rank; filled with a value above all ranks.

    Returns:
        How many components have nodes.
    """
    above, found = least[0] if len(least) else 0, 0
    for node in range(len(component)):
        root = root_of(parent, component[node])
        component[node] = root
        if least[root] == above:
            found += 1
        least[root] = min(least[root], np.int64(rank[node]) if len(rank) else node)
    return found
