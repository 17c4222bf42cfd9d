"""Copies of the graphs of 3 and 4 nodes.

Triangles, 4-cycles and 4-cliques are found one by one, all
others follow from degrees and the triangles of edges.
"""

from math import comb

from graphsys.kernels.cpu.mining.four_cycles import (
    DIAMONDS,
    PATHS,
    SQUARES,
    TAILED,
    TRIANGLES,
)
from graphsys.mining.census.sums import SmallCounts, sum_over_degrees


def copies_of_3(kernels: SmallCounts) -> dict[str, int]:
    """Return the numbers of copies of the graphs of 3 nodes, by name."""
    return {
        "3-path": sum_over_degrees(kernels, lambda degree: comb(degree, 2)),
        "triangle": kernels.clique_counts(3)[0],
    }


def copies_of_4(kernels: SmallCounts) -> dict[str, int]:
    """Return the numbers of copies of the connected graphs of 4 nodes, by name."""
    return {
        "4-star": sum_over_degrees(kernels, lambda degree: comb(degree, 3)),
        **copies_by_sums(kernels.small_sums()),
        "4-clique": kernels.clique_counts(4)[1],
    }


def copies_by_sums(sums: list[int]) -> dict[str, int]:
    """Return the numbers of copies that follow from the small sums, by name."""
    return {
        "4-path": sums[PATHS] - sums[TRIANGLES],  # which are three times the triangles
        "tailed-triangle": sums[TAILED] // 2,
        "4-cycle": sums[SQUARES],
        "diamond": sums[DIAMONDS],
    }
