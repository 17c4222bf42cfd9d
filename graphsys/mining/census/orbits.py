"""How often every node and every edge stands in each place of the graphs of up to 4 nodes.

Hocevar, Demsar, "A combinatorial approach to graphlet counting", Bioinformatics 30(4),
2014, is the idea: most orbits follow from few. Kernels: kernels/cpu/mining/orbits.py.
"""

from dataclasses import dataclass

import numpy as np

from graphsys.core.errors import InvalidGraphError
from graphsys.kernels.cpu.mining import orbits as kernel
from graphsys.mining.census.rooted import (
    EDGE_ORBITS,
    NODE_ORBITS,
    Columns,
    induced_orbits,
)
from graphsys.mining.census.sums import (
    Counts,
    DegreeOrderedGraph,
    Kernels,
    Numbers,
    degrees_of,
    edge_triangles,
    kernels_of,
    number_edges,
    row_sums,
)

_MOST_NEIGHBORS = 1_000_000  # of which the cube, times 6, is below 2**63


@dataclass(frozen=True, slots=True)
class _Counted:
    """What the orbits follow from.

    Attributes:
        rows: The graph.
        pairs: Number of the edge of every entry ``[2 M]``.
        degrees: Of every node ``[N]``.
        triangles: Of every edge ``[M]``.
        squares: 4-cycles of every edge ``[M]``.
        cliques: 4-cliques of every edge ``[M]``.
        third_degrees: Sum of the third nodes' degrees over an edge's triangles ``[M]``.
        sides: Sum over an edge's triangles of the triangles of both other edges ``[M]``.
        tips: Sum over a node's triangles of the triangles of the opposite edge ``[N]``.
    """

    rows: DegreeOrderedGraph
    pairs: Numbers
    degrees: Counts
    triangles: Counts
    squares: Counts
    cliques: Counts
    third_degrees: Counts
    sides: Counts
    tips: Counts

    def over_edges(self, values: Counts) -> Counts:
        """Sum values of edges over the edges of every node ``[N]``."""
        return row_sums(self.rows, values[self.pairs])

    def over_neighbors(self, values: Counts) -> Counts:
        """Sum values of nodes over the neighbors of every node ``[N]``."""
        return row_sums(self.rows, values[self.rows.indices])


def node_orbits(rows: DegreeOrderedGraph, *, num_threads: int | None = None) -> Columns:
    """Count the 15 orbits of every node, vertex-induced.

    Args:
        rows: The graph.
        num_threads: All cores by default.

    Returns:
        ``orbit_0`` to ``orbit_14``, int64 ``[N]`` each, numbered as by ORCA.

    Raises:
        InvalidGraphError: a node with so many neighbors that counts may need more than 64
            bits.
    """
    counted = _count(rows, num_threads)
    degrees, around = counted.degrees, counted.over_edges(counted.triangles) // 2
    further = np.maximum(degrees - 1, 0)
    steps = counted.over_neighbors(further)
    copies = {
        "orbit_1": steps,
        "orbit_2": degrees * further // 2,
        "orbit_3": around,
        "orbit_4": counted.over_neighbors(steps) - degrees * further - 2 * around,
        "orbit_5": further * steps - 2 * around,
        "orbit_6": counted.over_neighbors(_choose_two(further)),
        "orbit_7": degrees * further * np.maximum(degrees - 2, 0) // 6,
        "orbit_8": counted.over_edges(counted.squares) // 2,
        "orbit_9": counted.over_neighbors(around) - 2 * around,
        "orbit_10": _tails_at_others(counted),
        "orbit_11": around * np.maximum(degrees - 2, 0),
        "orbit_12": counted.tips - around,
        "orbit_13": counted.over_edges(_choose_two(counted.triangles)),
        "orbit_14": counted.over_edges(counted.cliques) // 3,
    }
    return {"orbit_0": degrees, **induced_orbits(NODE_ORBITS, copies)}


def edge_orbits(
    rows: DegreeOrderedGraph, *, num_threads: int | None = None
) -> tuple[Counts, Counts, Columns]:
    """Count the 12 orbits of every edge in graphs of 3 and 4 nodes, vertex-induced.

    Args:
        rows: The graph.
        num_threads: All cores by default.

    Returns:
        Smaller and larger node of every edge ``[M]``, and the counts, int64 ``[M]`` each,
        by the names of ``EDGE_ORBITS``.

    Raises:
        InvalidGraphError: as for :func:`node_orbits`.
    """
    counted = _count(rows, num_threads)
    owners = np.repeat(np.arange(len(counted.degrees)), counted.degrees)
    is_first = rows.indices > owners
    ends = owners[is_first], rows.indices[is_first].astype(np.int64)
    further = np.maximum(counted.degrees - 1, 0)
    around = counted.over_edges(counted.triangles) // 2
    triangles, steps = counted.triangles, counted.over_neighbors(further)
    one, other = further[ends[0]], further[ends[1]]
    copies = {
        "3-path": one + other,
        "triangle": triangles,
        "4-path_end": steps[ends[0]] + steps[ends[1]] - one - other - 2 * triangles,
        "4-path_middle": one * other - triangles,
        "4-star": _choose_two(one) + _choose_two(other),
        "4-cycle": counted.squares,
        "tailed-triangle_tail": around[ends[0]] + around[ends[1]] - 2 * triangles,
        "tailed-triangle_side": triangles * np.maximum(one + other - 2, 0),
        "tailed-triangle_base": counted.third_degrees - 2 * triangles,
        "diamond_side": counted.sides - 2 * triangles,
        "diamond_chord": _choose_two(triangles),
        "4-clique": counted.cliques,
    }
    return *ends, induced_orbits(EDGE_ORBITS, copies)


def _tails_at_others(counted: _Counted) -> Counts:
    """Count the triangles of every node with an edge at one of their other nodes."""
    degrees = np.maximum(counted.degrees - 2, 0)
    return row_sums(
        counted.rows, counted.triangles[counted.pairs] * degrees[counted.rows.indices]
    )


def _count(rows: DegreeOrderedGraph, num_threads: int | None) -> _Counted:
    """Run the kernels."""
    degrees = degrees_of(rows)
    most = int(degrees.max(initial=0))
    if most > _MOST_NEIGHBORS:
        raise InvalidGraphError(
            f"a node has {most:,} neighbors, so counts of its orbits may exceed 64 bits; "
            f"up to {_MOST_NEIGHBORS:,} are counted: leave such nodes out, or count the "
            "motifs of the whole graph, which is exact at any size"
        )
    with kernels_of(rows, num_threads) as kernels:
        pairs = number_edges(kernels)
        triangles = edge_triangles(kernels, pairs)
        squares = np.zeros(kernels.num_edges, dtype=np.int64)
        after = kernels.scratch(np.int32), squares
        kernels.run(kernel.count_edge_squares, pairs, after=after)
        flat, tips = _sum_triangles(kernels, pairs, triangles)
    return _Counted(
        rows=rows,
        pairs=pairs,
        degrees=degrees,
        triangles=triangles.astype(np.int64),
        squares=squares,
        cliques=flat[kernel.CLIQUES],
        third_degrees=flat[kernel.THIRD_DEGREES],
        sides=flat[kernel.SIDES],
        tips=tips,
    )


def _sum_triangles(
    kernels: Kernels, pairs: Numbers, triangles: Numbers
) -> tuple[Counts, Counts]:
    """Return the sums over triangles, of edges ``[3, M]`` and of nodes ``[N]``."""
    lengths = np.zeros(kernels.num_nodes, dtype=np.int64)
    most_inner = int(kernel.longest_prefixes(kernels.indptr, kernels.indices, lengths))
    longest, threads = int(lengths.max(initial=0)), kernels.threads
    flat = np.zeros(3 * kernels.num_edges, dtype=np.int64)
    tips = np.zeros(kernels.num_nodes, dtype=np.int64)
    scratch = (
        kernels.scratch(np.int64),
        np.zeros((threads, longest + 1), dtype=np.int64),
        np.zeros((threads, 2, most_inner), dtype=np.int64),
        np.zeros((threads, longest, 3), dtype=np.int64),
    )
    kernels.run(kernel.sum_edge_triangles, pairs, triangles, after=(*scratch, flat, tips))
    return flat.reshape(3, -1), tips


def _choose_two(values: Counts) -> Counts:
    return values * (values - 1) // 2
