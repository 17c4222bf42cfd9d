"""Rabbit order: communities inside communities, then numbers along that tree.

Method: Arai, Shiokawa, Yamamuro, Onizuka, Iwamura, "Rabbit Order: just-in-time parallel
reordering for fast graph analysis", IPDPS 2016. Nodes are taken by rising degree; each is
merged into the neighbor that raises modularity most, if any does. Who merged into whom is
a forest, and nodes are numbered along it, each tree from its root down, depth first.

Departs from the paper: one thread, so the result is the same everywhere; ties go to the
smaller number. A node's edges are collected only when its turn comes: its own row and the
lists of those merged into it before, ends replaced by what they were merged into. A list
is kept only while the node that it waits for is still to come, so all lists together are
never longer than the graph, and the space of dead ones is reused.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.components import root_of
from graphsys.kernels.jit import jit


@jit
def _compact(
    order: npt.NDArray[np.int32],
    turn: int,
    begins: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int32],
    pool: npt.NDArray[np.int32],
    pool_weights: npt.NDArray[np.float32],
) -> int:
    """Move the lists in use to the front, in the order in which they were made."""
    tail = 0
    for k in range(turn):
        node = order[k]
        if lengths[node] > 0:
            begin = begins[node]
            for e in range(lengths[node]):
                pool[tail + e] = pool[begin + e]
                pool_weights[tail + e] = pool_weights[begin + e]
            begins[node] = tail
            tail += lengths[node]
    return tail


# long: one compiled loop over shared state; each part alone would take most of it
@jit
def merge_communities(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    order: npt.NDArray[np.int32],
    pool: npt.NDArray[np.int32],
    pool_weights: npt.NDArray[np.float32],
    first_child: npt.NDArray[np.int32],
    next_child: npt.NDArray[np.int32],
    parents: npt.NDArray[np.int32],
) -> bool:
    """Merge every node into a neighbor, or leave it as the root of a community.

    Args:
        indptr: Row offsets of a symmetric graph, int64 ``[N + 1]``.
        indices: Neighbors, int32 ``[E]``.
        order: Nodes by rising degree, int32 ``[N]``.
        pool: Space for the lists, int32; ``E`` is always enough, half of that mostly.
        pool_weights: The same for their weights, float32.
        first_child: Receives the last that merged into each node, or -1, ``[N]``.
        next_child: Receives who merged into the same node before, or -1, ``[N]``.
        parents: Receives what each node was merged into in the end; roots: themselves.

    Returns:
        Whether the pool was long enough; if not, nothing that was received counts.
    """
    num_nodes = len(indptr) - 1
    weights = np.zeros(num_nodes, dtype=np.float32)
    touched = np.empty(num_nodes, dtype=np.int32)
    strengths = np.empty(num_nodes, dtype=np.float64)
    is_done = np.zeros(num_nodes, dtype=np.bool_)
    begins = np.zeros(num_nodes, dtype=np.int64)
    lengths = np.zeros(num_nodes, dtype=np.int32)
    for node in range(num_nodes):
        parents[node] = node
        first_child[node] = next_child[node] = -1
        strengths[node] = indptr[node + 1] - indptr[node]
    # Edges count once from each end, so that this is twice their number, the 2 m of
    # modularity.
    total = max(float(len(indices)), 1.0)
    tail = 0
    for turn in range(num_nodes):
        node = order[turn]
        # The row's ends stand for communities by now; parallel edges between two are
        # summed.
        num_touched = 0
        for e in range(indptr[node], indptr[node + 1]):
            other = root_of(parents, indices[e])
            if other != node:
                if weights[other] == 0.0:
                    touched[num_touched] = other
                    num_touched += 1
                weights[other] += np.float32(1.0)
        # Those merged into this node left lists of their edges: collected here, when its
        # turn comes, each list is read once in its life.
        child = first_child[node]
        while child >= 0:
            for e in range(begins[child], begins[child] + lengths[child]):
                other = root_of(parents, pool[e])
                if other != node:
                    if weights[other] == 0.0:
                        touched[num_touched] = other
                        num_touched += 1
                    weights[other] += pool_weights[e]
            # A dead list: `_compact` reuses its space.
            lengths[child] = 0
            child = next_child[child]
        best, best_gain = -1, 0.0
        for k in range(num_touched):
            other = touched[k]
            # Modularity's gain, up to a factor that all candidates share.
            gain = weights[other] - strengths[node] * strengths[other] / total
            if gain > best_gain or (gain == best_gain and best >= 0 and other < best):
                best, best_gain = other, gain
        # Set before the merge: a node that is done takes no list, for none would read it.
        is_done[node] = True
        if best >= 0:
            parents[node] = best
            strengths[best] += strengths[node]
            next_child[node] = first_child[best]
            first_child[best] = node
            if not is_done[best]:  # its turn will come, and it will want these edges
                if tail + num_touched > len(pool):
                    tail = _compact(order, turn, begins, lengths, pool, pool_weights)
                    if tail + num_touched > len(pool):
                        return False
                begins[node] = tail
                for k in range(num_touched):
                    # The edges to `best` have become loops, which no longer attract
                    # anything.
                    if touched[k] != best:
                        pool[tail] = touched[k]
                        pool_weights[tail] = weights[touched[k]]
                        tail += 1
                lengths[node] = tail - begins[node]
        # Only what was touched is cleared: zeroing all would cost O(N) a node.
        for k in range(num_touched):
            weights[touched[k]] = 0.0
    return True


@jit
def number_forest(
    first_child: npt.NDArray[np.int32],
    next_child: npt.NDArray[np.int32],
    is_root: npt.NDArray[np.bool_],
    places: npt.NDArray[np.uint64],
) -> None:
    """Number the nodes tree by tree, depth first, roots in their own order.

    Args:
        first_child: The last child of every node, or -1, ``[N]``.
        next_child: The child before it of the same node, or -1, ``[N]``.
        is_root: Which nodes are roots, bool ``[N]``.
        places: Receives the place of every node, uint64 ``[N]``.
    """
    stack = np.empty(len(places), dtype=np.int32)
    place = 0
    for root in range(len(places)):
        if not is_root[root]:
            continue
        stack[0] = root
        depth = 1
        while depth:
            depth -= 1
            node = stack[depth]
            places[node] = place
            place += 1
            child = first_child[node]
            while child >= 0:
                stack[depth] = child
                depth += 1
                child = next_child[child]


@jit
def gap_bits(
    first: int,
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int64],
    places: npt.NDArray[np.uint64],
) -> float:
    """Return the sum over a block's edge ends of log2(1 + distance of the places)."""
    total = 0.0
    for k in range(len(indptr) - 1):
        own = np.int64(places[first + k])
        for e in range(indptr[k], indptr[k + 1]):
            total += np.log2(1.0 + abs(own - np.int64(places[indices[e]])))
    return total
