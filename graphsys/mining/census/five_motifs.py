"""Copies of the connected graphs of 5 nodes.

Found one by one are only triangles, 4-cycles, 4- and 5-cliques, 5-cycles, wedges and
diamonds; the rest are products of what lies around a node, an edge or a triangle, less the
ways in which two of its parts fall together. ``further`` means beyond what the graph has
already: the degree of a triangle's node less 2, and so on.
"""

from dataclasses import dataclass
from math import comb

import numpy as np

from graphsys.kernels.cpu.mining import five_motifs, four_cycles
from graphsys.mining.census.sums import (
    Counts,
    Kernels,
    Numbers,
    degrees_of,
    edge_triangles,
    exact_dot,
    exact_sum,
    number_edges,
    row_sums,
    sum_over_degrees,
)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Degrees and triangles of a graph.

    Attributes:
        kernels: Of the graph.
        pairs: Number of the edge of every entry ``[2 M]``.
        triangles: Triangles of every edge, int32 ``[M]``.
        degrees: Of every node ``[N]``.
        around: Triangles of every node ``[N]``.
        steps: Sum over a node's neighbors of their degrees less 1 ``[N]``.
        ends: Degrees of the smaller and the larger node of every edge, two times ``[M]``.
    """

    kernels: Kernels
    pairs: Numbers
    triangles: Numbers
    degrees: Counts
    around: Counts
    steps: Counts
    ends: tuple[Counts, Counts]

    @property
    def num_triangles(self) -> int:
        """Number of triangles."""
        return exact_sum(self.triangles.astype(np.int64)) // 3

    @property
    def num_diamonds(self) -> int:
        """Number of diamonds, edge-induced."""
        wide = self.triangles.astype(np.int64)
        return exact_sum(wide * (wide - 1) // 2)


def copies_of_5(kernels: Kernels) -> dict[str, int]:
    """Return the numbers of copies of the connected graphs of 5 nodes, by name."""
    parts = _parts(kernels)
    pairs, hoods = _pair_and_neighborhood_sums(parts)
    return {
        **_trees(parts, pairs[five_motifs.TWICE_SQUARES] // 2),
        **_with_triangles(parts),
        **_with_squares(parts, pairs),
        **_within_neighborhoods(hoods),
        "5-clique": kernels.clique_counts(5)[2],
    }


def _parts(kernels: Kernels) -> _Parts:
    """Count the triangles, and gather what all formulas share."""
    pairs = number_edges(kernels)
    triangles = edge_triangles(kernels, pairs)
    degrees = degrees_of(kernels)
    owners = np.repeat(np.arange(kernels.num_nodes), degrees)
    larger = kernels.indices > owners  # in their order the edges are numbered
    return _Parts(
        kernels=kernels,
        pairs=pairs,
        triangles=triangles,
        degrees=degrees,
        around=row_sums(kernels, triangles[pairs].astype(np.int64)) // 2,
        steps=row_sums(kernels, degrees[kernels.indices] - 1),
        ends=(degrees[owners[larger]], degrees[kernels.indices[larger]]),
    )


def _trees(parts: _Parts, num_squares: int) -> dict[str, int]:
    """Count the trees."""
    degrees, around, steps = parts.degrees, parts.around, parts.steps
    one, other = parts.ends
    forks = exact_dot(_choose_two(one - 1), other - 1)
    forks += exact_dot(_choose_two(other - 1), one - 1)
    # two steps to both sides of the middle; ends on the other side's neighbor, or one end
    further = np.maximum(degrees - 1, 0)
    walks = exact_dot(steps, steps) - exact_dot(degrees, further * further)
    closed = 2 * exact_dot(around, further) - 3 * parts.num_triangles + 4 * num_squares
    return {
        "5-star": sum_over_degrees(parts.kernels, lambda degree: comb(degree, 4)),
        "fork": forks - 2 * exact_dot(around, np.maximum(degrees - 2, 0)),
        "5-path": walks // 2 - closed,
    }


def _with_triangles(parts: _Parts) -> dict[str, int]:
    """Count what follows from the triangles of nodes and edges."""
    degrees, around, diamonds = parts.degrees, parts.around, parts.num_diamonds
    wide = parts.triangles.astype(np.int64)
    in_two = wide > 1
    one, other = (np.maximum(end - 2, 0) for end in parts.ends)
    further = np.maximum(degrees - 1, 0)
    books = np.unique(parts.triangles, return_counts=True)
    return {
        "cricket": exact_dot(around, _choose_two(np.maximum(degrees - 2, 0))),
        "long-tailed-triangle": exact_dot(around, parts.steps)
        - 2 * exact_dot(around, further)
        - 4 * diamonds,
        "bull": exact_dot(wide, one * other) - 2 * diamonds,
        "bowtie": exact_sum(_choose_two(around)) - 2 * diamonds,
        "dart": exact_dot(_choose_two(wide[in_two]), (one + other)[in_two] - 2),
        "book": sum(
            n * comb(t, 3) for t, n in zip(*(part.tolist() for part in books), strict=True)
        ),
    }


def _pair_and_neighborhood_sums(parts: _Parts) -> tuple[list[int], list[int]]:
    """Run the kernels that read the listed triangles; the list is dropped after."""
    kernels, pairs = parts.kernels, parts.pairs
    starts = np.zeros(kernels.num_edges + 1, dtype=np.int64)
    np.cumsum(parts.triangles, out=starts[1:])
    thirds = kernels.allocate(int(starts[-1]), kernels.indices.dtype)
    after = kernels.scratch(np.uint8), starts, thirds
    kernels.run(four_cycles.list_edge_triangles, pairs, after=after)
    cyclic = parts.degrees[kernels.indices] > 1
    stops = kernels.indptr[:-1] + row_sums(kernels, cyclic.astype(np.int64))
    of_pairs = kernels.sums(
        five_motifs.sum_pairs,
        5,
        stops,
        pairs,
        parts.triangles,
        starts,
        thirds,
        after=(kernels.scratch(np.int32), kernels.scratch(np.uint8)),
    )
    of_neighborhoods = kernels.sums(
        five_motifs.sum_neighborhoods,
        7,
        pairs,
        starts,
        thirds,
        after=(kernels.scratch(np.int32), kernels.scratch(np.int64)),
    )
    return of_pairs, of_neighborhoods


def _with_squares(parts: _Parts, sums: list[int]) -> dict[str, int]:
    """Count what follows from common neighbors of two nodes, and the 5-cycles."""
    kernels, diamonds = parts.kernels, parts.num_diamonds
    scratch = kernels.scratch(np.int32), kernels.scratch(np.int64)
    reached = kernels.scratch(kernels.indices.dtype)
    closed, fallen = kernels.sums(five_motifs.sum_pentagons, 2, after=(*scratch, reached))
    return {
        "banner": sums[five_motifs.BANNERS] - 2 * diamonds,
        "5-cycle": closed - fallen,
        "house": sums[five_motifs.TWICE_HOUSES] // 2 - 4 * diamonds,
        "2-3-biclique": sums[five_motifs.BICLIQUES],
        "wheel-minus-spoke": sums[five_motifs.CHORDS],
    }


def _within_neighborhoods(sums: list[int]) -> dict[str, int]:
    """Count what follows from 4-cliques and from 4-cycles among a node's neighbors."""
    twelve_cliques = sums[five_motifs.CLIQUES_4]
    return {
        "kite": sums[five_motifs.KITES] // 2 - twelve_cliques,
        "tailed-4-clique": sums[five_motifs.TAILED] // 3,
        "gem": sums[five_motifs.GEMS] - twelve_cliques,
        "wheel": sums[five_motifs.TWICE_WHEELS] // 2,
        "hatted-4-clique": sums[five_motifs.HATTED] // 4,
        "5-clique-minus-edge": sums[five_motifs.NEAR_CLIQUES] // 3,
    }


def _choose_two(values: Counts) -> Counts:
    return values * (values - 1) // 2
