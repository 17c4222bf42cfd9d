"""Brandes' betweenness where edges have lengths: a search by Dijkstra from every source.

Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociol. 25(2), 2001.
Repeated edges lie next to each other in a row; the shortest of them counts, once.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.algorithms.path_heap import (
    DONE,
    UNSEEN,
    LengthSearch,
    PathHeap,
    length_of,
    rise,
    take_first,
)
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.rows.csr import WeightedCsr
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
VANISHES, OVERFLOWS = 1, 2
"""What a thread tells of lengths that float64 cannot add up."""


class SearchSpace(NamedTuple):
    """What each thread takes for its searches, and what it finds.

    Attributes:
        search: Of each thread.
        paths: Scratch ``[T, N]``.
        shares: Scratch ``[T, N]``.
        scores: Each thread's sums ``[T, N]``; updated.
        refused: Zeros ``[T]``; receives :data:`VANISHES` or :data:`OVERFLOWS`.
    """

    search: LengthSearch
    paths: Floats
    shares: Floats
    scores: Floats
    refused: Integers


@lean_inline_jit
def _is_repeated(rows: WeightedCsr, node: Any, entry: int) -> bool:
    """Whether the next entry leads to the same neighbor."""
    following = entry + 1
    return bool(
        following < np.int64(rows.ends[node])
        and rows.indices[following] == rows.indices[entry]
    )


@lean_jit
def accumulate_by_length(
    thread: int, rows: WeightedCsr, sources: Integers, counter: Integers, space: SearchSpace
) -> None:
    """Add the dependencies of whole sources, each in one thread.

    Args:
        rows: Out-neighbors.
        sources: Sources ``[S]``.
        space: See there.
    """
    search, paths = space.search, space.paths[thread]
    distance, place = search.distance[thread], search.place[thread]
    nodes, order = search.nodes[thread], search.order[thread]
    heap = PathHeap(distance, search.edges[thread], place, nodes)
    shares, scores = space.shares[thread], space.scores[thread]
    for k in claimed_range(0, len(sources), 1, counter):
        source = sources[k]
        distance[source], paths[source] = 0.0, 1.0
        nodes[0], place[source] = source, 0
        size, count = 1, 0
        while size > 0:
            node = np.int64(take_first(heap, size))
            size -= 1
            order[count] = node
            count += 1
            least = np.inf
            for entry in range(np.int64(rows.begins[node]), np.int64(rows.ends[node])):
                # Copies of an edge are one: the last of them relaxes by the shortest.
                least = min(least, length_of(rows, node, entry))
                if _is_repeated(rows, node, entry):
                    continue
                other, far = np.int64(rows.indices[entry]), distance[node] + least
                least = np.inf
                if far == np.inf:
                    space.refused[thread] = OVERFLOWS
                elif other == node:
                    pass
                # A length below the rounding: two nodes would each come before the other,
                # and neither would know its paths when it is its turn.
                elif far == distance[node]:
                    space.refused[thread] = VANISHES
                elif place[other] == UNSEEN:
                    distance[other], paths[other] = far, paths[node]
                    nodes[size], place[other] = other, size
                    size += 1
                    rise(heap, place[other])
                elif place[other] != DONE and far < distance[other]:
                    distance[other], paths[other] = far, paths[node]
                    rise(heap, place[other])
                elif far == distance[other]:
                    paths[other] += paths[node]
        # Farthest first: who hands shares up has got all of its own.
        for last in range(count - 1, -1, -1):
            node = order[last]
            total, least = 0.0, np.inf
            for entry in range(np.int64(rows.begins[node]), np.int64(rows.ends[node])):
                least = min(least, length_of(rows, node, entry))
                if _is_repeated(rows, node, entry):
                    continue
                other = np.int64(rows.indices[entry])
                if other != node and distance[node] + least == distance[other]:
                    total += shares[other]
                least = np.inf
            if last > 0:
                scores[node] += paths[node] * total
            # (1 + dependency) / paths, so that each path up is one addition.
            shares[node] = total + 1.0 / paths[node]
        # Only what was reached is reset; distances mean nothing while a place says unseen.
        for last in range(count):
            place[order[last]] = UNSEEN
