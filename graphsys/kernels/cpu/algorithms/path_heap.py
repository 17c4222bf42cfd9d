"""A heap of nodes by the length of a path to them, then by its number of edges.

It knows where each node is in it, so that it holds every node once, and a shorter path
moves it.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.shortest_paths import weight_shift
from graphsys.kernels.cpu.rows.csr import WeightedCsr
from graphsys.kernels.jit import lean_inline_jit, lean_jit

UNSEEN, DONE = -1, -2
"""Places of nodes that are not in the heap."""


class PathHeap(NamedTuple):
    """The heap, and what orders it.

    Attributes:
        distance: Length of the path found to every node ``[N]``.
        edges: Its number of edges ``[N]``.
        place: Where the node is in the heap; :data:`UNSEEN` at first ``[N]``.
        nodes: The heap ``[N]``.
    """

    distance: npt.NDArray[np.float64]
    edges: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]


class LengthSearch(NamedTuple):
    """What each thread takes for its searches by Dijkstra.

    Attributes:
        distance: Scratch ``[T, N]``.
        edges: Zeros ``[T, N]``; lengths alone order the heap.
        place: -1 everywhere ``[T, N]``; the same after.
        nodes: Scratch ``[T, N]``.
        order: Scratch ``[T, N]``.
    """

    distance: npt.NDArray[np.float64]
    edges: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]


@lean_inline_jit
def length_of(rows: WeightedCsr, node: Any, entry: int) -> float:
    """Return the length of an entry of a node's row."""
    return np.float64(rows.weight[entry + weight_shift(rows, node)])


@lean_jit
def _comes_before(heap: PathHeap, one: int, other: int) -> bool:
    if heap.distance[one] != heap.distance[other]:
        return bool(heap.distance[one] < heap.distance[other])
    return bool(heap.edges[one] < heap.edges[other])


@lean_jit
def rise(heap: PathHeap, place: int) -> None:
    """Move an entry of the heap up to where it belongs."""
    # The hole moves, not the node: each step writes one entry in place of two.
    nodes, node = heap.nodes, heap.nodes[place]
    while place > 0:
        above = (place - 1) >> 1
        if not _comes_before(heap, node, nodes[above]):
            break
        nodes[place] = nodes[above]
        heap.place[nodes[place]] = place
        place = above
    nodes[place] = node
    heap.place[node] = place


@lean_jit
def take_first(heap: PathHeap, size: int) -> int:
    """Take the first node out of a heap of so many."""
    nodes, first = heap.nodes, heap.nodes[0]
    heap.place[first] = DONE
    size -= 1
    if size == 0:
        return int(first)
    node, place = nodes[size], 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _comes_before(heap, nodes[below + 1], nodes[below]):
            below += 1
        if not _comes_before(heap, nodes[below], node):
            break
        nodes[place] = nodes[below]
        heap.place[nodes[place]] = place
        place = below
    nodes[place] = node
    heap.place[node] = place
    return int(first)
