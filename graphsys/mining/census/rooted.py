"""Orbits: the places of a node, or of an edge, in the connected graphs of up to 4 nodes.

Two nodes of a graph are in one orbit if a renaming of its nodes that keeps all edges moves
one to the other. Orbits of nodes are numbered as in Przulj, "Biological network comparison
using graphlet degree distribution", Bioinformatics 23(2), 2007, and in ORCA.
"""

import functools
from itertools import permutations
from typing import Any, Final, NamedTuple

import numpy.typing as npt

from graphsys.mining.census.shapes import SHAPES, edge_set, mask_of


class Orbit(NamedTuple):
    """A place in a graph.

    Attributes:
        shape: The graph, a name of ``SHAPES``.
        roots: Its nodes that are the place: one, or the two of an edge.
    """

    shape: str
    roots: tuple[int, ...]


NODE_ORBITS: Final[dict[str, Orbit]] = {
    "orbit_1": Orbit("3-path", (0,)),
    "orbit_2": Orbit("3-path", (1,)),
    "orbit_3": Orbit("triangle", (0,)),
    "orbit_4": Orbit("4-path", (0,)),
    "orbit_5": Orbit("4-path", (1,)),
    "orbit_6": Orbit("4-star", (1,)),
    "orbit_7": Orbit("4-star", (0,)),
    "orbit_8": Orbit("4-cycle", (0,)),
    "orbit_9": Orbit("tailed-triangle", (3,)),
    "orbit_10": Orbit("tailed-triangle", (0,)),
    "orbit_11": Orbit("tailed-triangle", (2,)),
    "orbit_12": Orbit("diamond", (1,)),
    "orbit_13": Orbit("diamond", (0,)),
    "orbit_14": Orbit("4-clique", (0,)),
}
"""All but ``orbit_0``, a node of an edge: the degree."""

EDGE_ORBITS: Final[dict[str, Orbit]] = {
    "3-path": Orbit("3-path", (0, 1)),
    "triangle": Orbit("triangle", (0, 1)),
    "4-path_end": Orbit("4-path", (0, 1)),
    "4-path_middle": Orbit("4-path", (1, 2)),
    "4-star": Orbit("4-star", (0, 1)),
    "4-cycle": Orbit("4-cycle", (0, 1)),
    "tailed-triangle_tail": Orbit("tailed-triangle", (2, 3)),
    "tailed-triangle_side": Orbit("tailed-triangle", (0, 2)),
    "tailed-triangle_base": Orbit("tailed-triangle", (0, 1)),
    "diamond_side": Orbit("diamond", (0, 1)),
    "diamond_chord": Orbit("diamond", (0, 2)),
    "4-clique": Orbit("4-clique", (0, 1)),
}

Columns = dict[str, npt.NDArray[Any]]


def size_of(orbit: Orbit) -> int:
    """Return the number of nodes of an orbit's graph."""
    return next(size for size, shapes in SHAPES.items() if orbit.shape in shapes)


@functools.cache
def rooted_copies(small: Orbit, large: Orbit) -> int:
    """Return how many copies of one rooted graph another holds on all its nodes.

    Args:
        small: Its roots must come to lie on those of ``large``.
        large: As many nodes as ``small``.
    """
    size = size_of(small)
    edges = edge_set(SHAPES[size][small.shape])
    whole = mask_of(edge_set(SHAPES[size][large.shape]), tuple(range(size)))
    copies = {
        mask_of(edges, order)
        for order in permutations(range(size))
        if {order[root] for root in small.roots} == set(large.roots)
    }
    return sum(copy & whole == copy for copy in copies)


def induced_orbits(orbits: dict[str, Orbit], copies: Columns) -> Columns:
    """Return counts in induced graphs from counts in copies.

    Args:
        orbits: By name, no graph in front of one that it contains.
        copies: Edge-induced counts by name, all of one length.
    """
    names = list(orbits)
    induced: Columns = {}
    for place in reversed(range(len(names))):
        name = names[place]
        values = copies[name].copy()
        for other in names[place + 1 :]:
            if size_of(orbits[other]) == size_of(orbits[name]):
                times = rooted_copies(orbits[name], orbits[other])
                if times:
                    values -= times * induced[other]
        induced[name] = values
    return {name: induced[name] for name in names}
