"""Patterns whose number follows from few sums, without a loop for each of their nodes.

Stars follow from degrees; 2-edge paths to diamonds from degrees and the triangles of
edges; a 4-cycle is a pair of wedges between the same two nodes; a house is a triangle and
a 4-cycle that share an edge, less those whose tip lies on the cycle: four for every
diamond. Cliques are counted by words of bits. All counts are edge-induced.
"""

from collections.abc import Callable
from math import comb
from typing import Final

import numpy as np

from graphsys.core.progress import SILENT, Progress
from graphsys.kernels.cpu.mining import four_cycles
from graphsys.mining.census.device import device_kernels
from graphsys.mining.census.small import copies_by_sums
from graphsys.mining.census.sums import (
    DegreeOrderedGraph,
    Kernels,
    SmallCounts,
    edge_triangles,
    exact_sum,
    kernels_of,
    number_edges,
    sum_over_degrees,
)

SumsForm = Callable[[SmallCounts], int]
ClosedForm = Callable[[Kernels], int]


def houses_of(kernels: Kernels) -> int:
    """Count the houses, edge-induced."""
    pairs = number_edges(kernels)
    triangles = edge_triangles(kernels, pairs)
    scratch = (kernels.scratch(np.int32),)
    both = kernels.sums(four_cycles.sum_squares, 1, triangles[pairs], after=scratch)[0]
    wide = triangles.astype(np.int64)
    return both - 4 * exact_sum(wide * (wide - 1) // 2)


def _star(size: int) -> SumsForm:
    return lambda kernels: sum_over_degrees(kernels, lambda degree: comb(degree, size - 1))


def _by_sums(name: str) -> SumsForm:
    return lambda kernels: copies_by_sums(kernels.small_sums())[name]


SUMS_FORMS: Final[dict[str, SumsForm]] = {
    "3-path": _star(3),
    "triangle": lambda kernels: kernels.clique_counts(3)[0],
    "4-star": _star(4),
    "5-star": _star(5),
    "4-path": _by_sums("4-path"),
    "tailed-triangle": _by_sums("tailed-triangle"),
    "4-cycle": lambda kernels: kernels.num_squares(),
    "diamond": _by_sums("diamond"),
    "4-clique": lambda kernels: kernels.clique_counts(4)[1],
    "5-clique": lambda kernels: kernels.clique_counts(5)[2],
}
"""How a graph is counted on any device, by its name in census/shapes.py."""

CLOSED_FORMS: Final[dict[str, ClosedForm]] = {**SUMS_FORMS, "house": houses_of}
"""How a graph is counted on the CPU."""


def count_closed(
    rows: DegreeOrderedGraph,
    name: str,
    num_threads: int | None = None,
    progress: Progress = SILENT,
    device: str = "cpu",
) -> int:
    """Count the copies of a graph, edge-induced, by its closed form.

    Args:
        rows: The graph.
        name: A name of :data:`CLOSED_FORMS`; of :data:`SUMS_FORMS` on CUDA.
        num_threads: All cores by default.
        progress: Receives a stage for each kernel.
        device: ``cpu`` or ``cuda``.
    """
    if device == "cuda":
        with device_kernels(rows, progress) as on_device:
            return SUMS_FORMS[name](on_device)
    with kernels_of(rows, num_threads, progress) as kernels:
        return CLOSED_FORMS[name](kernels)
