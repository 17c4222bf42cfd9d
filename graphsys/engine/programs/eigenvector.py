"""Eigenvector centrality: a node is as important as the nodes that point to it, together.

Bonacich, "Power and centrality: a family of measures", 1987, by power iteration on A' + I,
which has the eigenvectors of A' and does not oscillate on bipartite graphs. O(N + E) per
superstep; the number of supersteps grows as the two largest eigenvalues come close. A
directed graph without a cycle has no such ranking, and is refused.
"""

import math
from typing import Any

import numpy as np

from graphsys.core.errors import InvalidGraphError
from graphsys.core.types import number_dtype
from graphsys.engine import program as gs
from graphsys.engine.edge_weights import ONCE, refuse_infinite, refuse_negative
from graphsys.engine.topology import Topology
from graphsys.kernels.cpu.algorithms.strong_components import release

CYCLE_BYTES = 24
"""What :func:`has_cycle` takes a node, at most: in-degrees, a copy of them, an order."""


def has_cycle(topology: Topology) -> bool:
    """Return whether a directed graph has a cycle; a loop is one.

    Nodes without edges into them are taken out, and then those that have none left. The
    rows of a store are read where they lie, file by file, in any number of types.

    Complexity:
        O(N + E) time, and a pass over the files for each time that an order of the nodes
        goes back to an earlier one.
    """
    left = topology.in_degree.copy()
    released = np.empty(topology.num_nodes, dtype=number_dtype(topology.num_nodes))
    sources = np.flatnonzero(left == 0)
    count = len(sources)
    released[:count] = sources
    del sources
    if topology.graph is None:
        out = topology.rows("out")
        rows = [(out.begins, out.ends, out.indices, 0, 0)]
    else:
        rows = [
            (
                it.index.indptr[:-1],
                it.index.indptr[1:],
                it.index.indices,
                it.row_base,
                it.column_base,
            )
            for it in topology.blocks("out")
        ]
    looked_at = [0] * len(rows)
    while any(number < count for number in looked_at):
        for k, some in enumerate(rows):
            count = release(*some, left, released, looked_at[k], count)
            looked_at[k] = count
    return count < topology.num_nodes


_MOST_WEIGHT = 1e150
"""Of all edges together: a score that is larger overflows when it is squared."""


_ROUNDING = 1e-16
"""A change of scores, per node, that additions may make for ever."""


class Eigenvector(gs.VertexProgram):
    """Scores of Euclidean norm 1, none negative.

    Stops when scores moved by less than N times ``tolerance`` in all, as NetworkX does.
    """

    tolerance: float = 1e-6
    score = gs.state("float64")
    squares = gs.aggregator(gs.sum_)
    change = gs.aggregator(gs.sum_)

    class Iterate(gs.Phase):
        """Add the in-neighbors' scores, and divide by the last norm."""

        combine = gs.sum_
        repeat = True
        max_supersteps = 1000

        def message(self, src: Any, edge: Any) -> Any:
            return src.score

        def update(self, node: Any, message: Any) -> Any:
            return (node.score + message) / math.sqrt(self.total("squares"))

        def aggregate(self, before: Any, node: Any) -> Any:
            return node.score * node.score, abs(node.score - before.score)

        def until(self, totals: Any) -> bool:
            return bool(totals["change"] <= self.num_nodes * self.tolerance)

    class Scale(gs.Phase):
        """Bring the norm to 1."""

        def update(self, node: Any) -> Any:
            return node.score / math.sqrt(self.total("squares"))

    phases = (Iterate, Scale)
    start_bytes = CYCLE_BYTES

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.tolerance < _ROUNDING:
            self.when_cut_short = (  # type: ignore[misc] # which depends on a parameter
                f"rounding moves scores by more than tolerance = {self.tolerance} at any "
                "number of supersteps; take one above that, tolerance=1e-12 (--param "
                "tolerance=1e-12)"
            )

    def start(self, graph: Any) -> None:
        """Refuse a graph without cycles, whose powers come to nothing."""
        if graph.is_directed and graph.num_edges and not has_cycle(graph):
            raise InvalidGraphError(
                "the graph has no cycle, so all eigenvalues of its adjacency matrix are 0 "
                "and there is no eigenvector centrality; take katz or pagerank"
            )

    def init(self, node: Any) -> Any:
        return 1.0 / self.num_nodes


class WeightedEigenvector(Eigenvector):
    """Scores where in-neighbors count as much as the weights of their edges."""

    class Iterate(Eigenvector.Iterate):
        """Add the in-neighbors' scores times the weights, and divide by the last norm."""

        def message(self, src: Any, edge: Any) -> Any:
            return src.score * edge.weight

        def until(self, totals: Any) -> bool:
            # scores are as large as the eigenvalue until they are divided by their norm
            norm = math.sqrt(totals["squares"])
            return bool(totals["change"] <= self.num_nodes * self.tolerance * norm)

    phases = (Iterate, Eigenvector.Scale)

    def start(self, graph: Any) -> None:
        super().start(graph)
        total = refuse_negative(graph, "eigenvector", remedy=ONCE)
        refuse_infinite(graph, "eigenvector")
        if not total <= _MOST_WEIGHT:
            raise InvalidGraphError(
                f"eigenvector needs weights that add up to {_MOST_WEIGHT:g} at most, but "
                f"they add up to {total:g}; scale the weights down, which changes no score"
            )


def eigenvector_centrality(
    *, tolerance: float = 1e-6, weighted: bool = False
) -> Eigenvector:
    """Return the program with or without weights."""
    return (WeightedEigenvector if weighted else Eigenvector)(tolerance=tolerance)
