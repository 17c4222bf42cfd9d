"""The connected graphs of 3 to 5 nodes, and from counts of copies to induced counts.

A *copy* of a graph is edge-induced: further edges among its nodes are allowed. Every set of
nodes that induces graph ``j`` holds a fixed number of copies of graph ``i`` on all of these
nodes, so that copies are a triangular linear combination of induced counts.
"""

import functools
from itertools import combinations, permutations
from typing import Final

from graphsys.core.errors import ConfigError

SHAPES: Final[dict[int, dict[str, str]]] = {
    3: {"3-path": "01 12", "triangle": "01 12 02"},
    4: {
        "4-star": "01 02 03",
        "4-path": "01 12 23",
        "tailed-triangle": "01 12 02 23",
        "4-cycle": "01 12 23 03",
        "diamond": "01 12 23 03 02",
        "4-clique": "01 12 23 03 02 13",
    },
    5: {
        "5-star": "01 02 03 04",
        "fork": "01 02 03 34",
        "5-path": "01 12 23 34",
        "cricket": "01 12 02 23 24",
        "long-tailed-triangle": "01 12 02 23 34",
        "bull": "01 12 02 13 24",
        "banner": "01 12 23 03 34",
        "5-cycle": "01 12 23 34 04",
        "bowtie": "01 12 02 23 34 24",
        "kite": "01 12 23 03 02 34",
        "dart": "01 12 23 03 02 24",
        "house": "01 12 23 34 04 14",
        "2-3-biclique": "02 03 04 12 13 14",
        "book": "01 02 03 04 12 13 14",
        "tailed-4-clique": "01 12 23 03 02 13 34",
        "gem": "01 12 23 04 14 24 34",
        "wheel-minus-spoke": "01 12 23 03 04 14 24",
        "wheel": "01 12 23 03 04 14 24 34",
        "hatted-4-clique": "01 12 23 03 02 13 24 34",
        "5-clique-minus-edge": "01 12 23 03 02 13 04 14 24",
        "5-clique": "01 12 23 03 02 13 04 14 24 34",
    },
}
"""Their edges, by number of nodes and name, in an order in which no graph contains a later
one."""


def shapes_of(size: int) -> dict[str, str]:
    """Return names and edges of the connected graphs of a size.

    Raises:
        ConfigError: not 3, 4 or 5.
    """
    if size not in SHAPES:
        raise ConfigError(
            f"motifs of {size} nodes are not counted; all motifs of 3, 4 and 5 nodes are, "
            "larger patterns one by one: 6-cycle, for example"
        )
    return SHAPES[size]


def edge_set(text: str) -> frozenset[tuple[int, int]]:
    """Return the edges that a text of :data:`SHAPES` names, smaller node first."""
    return frozenset((min(pair), max(pair)) for pair in _pairs(text))


def _pairs(text: str) -> list[tuple[int, int]]:
    return [(int(edge[0]), int(edge[1])) for edge in text.split()]


def mask_of(edges: frozenset[tuple[int, int]], order: tuple[int, ...]) -> int:
    """Return the edges as bits after node ``i`` is renamed ``order[i]``."""
    places = {pair: k for k, pair in enumerate(combinations(range(len(order)), 2))}
    mask = 0
    for a, b in edges:
        x, y = order[a], order[b]
        mask |= 1 << places[min(x, y), max(x, y)]
    return mask


@functools.cache
def copies_within(size: int) -> tuple[tuple[int, ...], ...]:
    """Return how many copies of graph ``i`` the graph ``j`` holds on all its nodes.

    Args:
        size: Number of nodes, 3 to 5.
    """
    orders = list(permutations(range(size)))
    graphs = [edge_set(text) for text in shapes_of(size).values()]
    masks = [{mask_of(graph, order) for order in orders} for graph in graphs]
    wholes = [mask_of(graph, orders[0]) for graph in graphs]
    return tuple(
        tuple(sum(copy & whole == copy for copy in copies) for whole in wholes)
        for copies in masks
    )


def induced_counts(size: int, copies: dict[str, int]) -> dict[str, int]:
    """Return how many sets of nodes induce each graph, from the numbers of copies.

    Args:
        size: Number of nodes, 3 to 5.
        copies: Edge-induced count by name, of all graphs of the size.
    """
    names = list(shapes_of(size))
    within = copies_within(size)
    induced: dict[str, int] = {}
    for i in reversed(range(len(names))):
        later = zip(within[i][i + 1 :], names[i + 1 :], strict=True)
        induced[names[i]] = copies[names[i]] - sum(num * induced[j] for num, j in later)
    return {name: induced[name] for name in names}
